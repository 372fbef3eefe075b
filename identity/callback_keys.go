package identity

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// CallbackKeys issues and verifies tokens for the addresses at which tools answer. A token
// is a capability for one call id until a time. It is authenticated by a key, so that no
// token is stored. CallbackKeys is immutable and safe for concurrent use; nil and the zero
// value have no keys.
type CallbackKeys struct {
	keys []callbackKey // the oldest first
}

type callbackKey struct {
	secret []byte
	since  time.Time // since when it signs
}

// A token is base64url of
//
//	version key expiry id mac
//	version = 1 byte, 1
//	key     = the id of the key, 4 bytes
//	expiry  = seconds since 1970, 8 bytes
//	id      = the call id
//	mac     = HMAC-SHA-256 of a label and all before it, 32 bytes
const (
	tokenVersion     = 1
	macLabel         = "callgate capability\x00"
	keyIDBytes       = 4
	headerBytes      = 1 + keyIDBytes + 8
	maxCallbackToken = 512 // of a token, in characters
	maxSubjectBytes  = 128
)

// The bounds of a file of keys.
const (
	secretBytes     = 32 // bytes
	maxCallbackKeys = 32
	endLine         = "# end"
	fileHeader      = "# The keys of the addresses at which tools answer, the oldest first: a key, and since when it signs."
)

// ParseCallbackKeys parses keys as Encode writes them: one on each line, followed by the
// time since when it signs, the oldest first, and the line "# end" after the last. The error
// shows no key.
func ParseCallbackKeys(text string) (*CallbackKeys, error) {
	lines := strings.Split(strings.TrimRight(text, " \t\r\n"), "\n")
	if strings.TrimSpace(lines[len(lines)-1]) != endLine {
		return nil, fmt.Errorf("the last line is not %q, so the file is incomplete", endLine)
	}
	c := &CallbackKeys{}
	names := map[string]bool{}
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d is not a key and a time", i+1)
		}
		secret, ok := decodeSegment(fields[0])
		if !ok || len(secret) != secretBytes {
			return nil, fmt.Errorf("line %d does not begin with a key of %d bytes in base64url", i+1, secretBytes)
		}
		from, err := time.Parse(time.RFC3339, fields[1])
		if err != nil {
			return nil, fmt.Errorf("line %d does not end with a time such as 2026-01-02T15:04:05Z", i+1)
		}
		k := callbackKey{secret, from}
		if names[string(k.id())] {
			return nil, fmt.Errorf("line %d repeats a key", i+1)
		}
		names[string(k.id())] = true
		if n := len(c.keys); n > 0 && from.Before(c.keys[n-1].since) {
			return nil, fmt.Errorf("line %d has an earlier time than the one before", i+1)
		}
		c.keys = append(c.keys, k)
	}
	if len(c.keys) == 0 || len(c.keys) > maxCallbackKeys {
		return nil, fmt.Errorf("found %d keys; expected 1 to %d", len(c.keys), maxCallbackKeys)
	}
	return c, nil
}

// Rotate returns the keys with a new one that signs from a time on, and at most keep of the
// old ones. Tokens of dropped keys are invalid from then on.
func (c *CallbackKeys) Rotate(from time.Time, keep int) *CallbackKeys {
	var keys []callbackKey
	if c != nil {
		keys = slices.Clone(c.keys)
	}
	keep = min(max(keep, 0), maxCallbackKeys-1)
	keys = keys[max(0, len(keys)-keep):]
	if n := len(keys); n > 0 && from.Before(keys[n-1].since) {
		from = keys[n-1].since
	}
	secret := make([]byte, secretBytes)
	rand.Read(secret) // never fails (crypto/rand)
	return &CallbackKeys{append(keys, callbackKey{secret, from.UTC().Truncate(time.Second)})}
}

// Len returns the number of keys.
func (c *CallbackKeys) Len() int {
	if c == nil {
		return 0
	}
	return len(c.keys)
}

// Encode writes the keys, which are secret, in the format of ParseCallbackKeys.
func (c *CallbackKeys) Encode() []byte {
	var b strings.Builder
	b.WriteString(fileHeader + "\n")
	for _, k := range c.keys {
		fmt.Fprintf(&b, "%s %s\n", base64.RawURLEncoding.EncodeToString(k.secret), k.since.Format(time.RFC3339))
	}
	b.WriteString(endLine + "\n")
	return []byte(b.String())
}

// String shows no key.
func (c *CallbackKeys) String() string { return fmt.Sprintf("%d keys", c.Len()) }

// GoString shows no key.
func (c *CallbackKeys) GoString() string { return c.String() }

// Issue returns the token of an id, valid until a time.
func (c *CallbackKeys) Issue(id string, now, until time.Time) (string, error) {
	switch {
	case c.Len() == 0:
		return "", errors.New("there is no key")
	case id == "" || len(id) > maxSubjectBytes:
		return "", fmt.Errorf("an id has 1 to %d bytes", maxSubjectBytes)
	}
	key := c.keys[0]
	for _, k := range c.keys {
		if !k.since.After(now) {
			key = k
		}
	}
	token := append(make([]byte, 0, headerBytes+len(id)+sha256.Size), tokenVersion)
	token = append(token, key.id()...)
	token = binary.BigEndian.AppendUint64(token, uint64(max(0, ceilSeconds(until))))
	token = append(token, id...)
	token = append(token, key.mac(token)...)
	return base64.RawURLEncoding.EncodeToString(token), nil
}

// ceilSeconds rounds up: a token never expires early.
func ceilSeconds(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

// Verify returns the id of a token that is valid now, or "". Its time reveals nothing about
// how close an invalid token is to a valid one.
func (c *CallbackKeys) Verify(token string, now time.Time) string {
	if c.Len() == 0 || len(token) > maxCallbackToken {
		return ""
	}
	raw, ok := decodeSegment(token) // strictly, so that a token has one spelling
	if !ok || len(raw) <= headerBytes+sha256.Size || raw[0] != tokenVersion {
		return ""
	}
	body, mac := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	key, known := c.keys[0], false // an unknown key takes as long as a known one
	for _, k := range c.keys {
		if hmac.Equal(k.id(), body[1:1+keyIDBytes]) {
			key, known = k, true
		}
	}
	valid := hmac.Equal(key.mac(body), mac)
	expiry := binary.BigEndian.Uint64(body[1+keyIDBytes : headerBytes])
	if !valid || !known || expiry > 1<<40 || !now.Before(time.Unix(int64(expiry), 0)) {
		return ""
	}
	return string(body[headerBytes:])
}

// id identifies a key without revealing it.
func (k callbackKey) id() []byte {
	sum := sha256.Sum256(append([]byte("callgate key name\x00"), k.secret...))
	return sum[:keyIDBytes]
}

func (k callbackKey) mac(body []byte) []byte {
	m := hmac.New(sha256.New, k.secret)
	m.Write([]byte(macLabel)) // never fails
	m.Write(body)
	return m.Sum(nil)
}
