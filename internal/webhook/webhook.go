// Package webhook signs messages by the specification Standard Webhooks 1.0.0
// (https://www.standardwebhooks.com), for receivers that verify them by any of its libraries.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Key is a key that messages are signed with. The zero value signs nothing.
type Key struct{ secret []byte }

// The form of a key: a prefix, and base64 of so many bytes.
const (
	prefix       = "whsec_"
	leastSecret  = 24
	longestBytes = 64
)

var errKey = errors.New("expected a key of Standard Webhooks: whsec_ and base64 of 24 to 64 random bytes")

// ParseKey reads a key. The error does not repeat it.
func ParseKey(text string) (Key, error) {
	encoded, prefixed := strings.CutPrefix(text, prefix)
	secret, err := base64.StdEncoding.Strict().DecodeString(encoded)
	// The decoder passes over line breaks.
	if !prefixed || err != nil || len(secret) < leastSecret || len(secret) > longestBytes || strings.ContainsAny(encoded, "\r\n") {
		return Key{}, errKey
	}
	return Key{secret}, nil
}

// Headers returns the headers of a message: its id, which must not contain a dot and is the same
// whenever it is sent again, the time of sending, and a signature by each key.
func Headers(id string, sent time.Time, body []byte, keys []Key) http.Header {
	at := strconv.FormatInt(sent.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key.secret)
		mac.Write([]byte(id + "." + at + ".")) // a hash takes everything
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {at}, "Webhook-Signature": {strings.Join(signatures, " ")}}
}
