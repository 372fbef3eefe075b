// Package identity turns credentials into principals.
//
// A key is a bearer token with 256 bits of randomness. Only its SHA-256 is stored:
// a key is looked up by its hash, and the hashes are then compared in constant
// time. So response times reveal nothing about a key, and a file of principals holds
// no usable credential.
//
// A token is a JWT that an issuer has signed; TokenVerifier verifies it.
package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
)

// APIKeys are the principals of a configuration by the hashes of their keys. It is
// immutable and safe for concurrent use; nil and the zero value refuse every key.
type APIKeys struct {
	byHash map[[sha256.Size]byte]hashedPrincipal
}

type hashedPrincipal struct {
	hash      [sha256.Size]byte
	principal *Principal
}

// NewAPIKeys returns the principals for the SHA-256 of their keys in hex. An invalid or
// repeated hash is an error, and so is a name with the prefix of principals of tokens.
func NewAPIKeys(principals map[string]*Principal) (*APIKeys, error) {
	k := &APIKeys{byHash: make(map[[sha256.Size]byte]hashedPrincipal, len(principals))}
	for text, p := range principals {
		raw, err := hex.DecodeString(text)
		if err != nil || len(raw) != sha256.Size || p == nil {
			return nil, fmt.Errorf("identity: the key of a principal is not a SHA-256 in hex")
		}
		if strings.HasPrefix(p.Name, tokenPrefix) {
			return nil, fmt.Errorf("identity: the name of a principal with a key starts with %s, the prefix of principals of tokens",
				tokenPrefix)
		}
		hash := [sha256.Size]byte(raw)
		if _, twice := k.byHash[hash]; twice {
			return nil, fmt.Errorf("identity: two principals have one key")
		}
		k.byHash[hash] = hashedPrincipal{hash, p}
	}
	return k, nil
}

// maxKey bounds the length of a key in bytes.
const maxKey = 4096

// Authenticate returns the principal of a key, or nil.
func (k *APIKeys) Authenticate(key string) *Principal {
	if k == nil || key == "" || len(key) > maxKey {
		return nil
	}
	hash := sha256.Sum256([]byte(key))
	found, ok := k.byHash[hash]
	if !ok || subtle.ConstantTimeCompare(found.hash[:], hash[:]) != 1 {
		return nil
	}
	return found.principal
}

// keyPrefix lets people and scanners recognize a leaked key.
const keyPrefix = "cgk_"

// NewAPIKey makes a key, and its SHA-256 in hex for the file of principals. The key
// is not stored.
func NewAPIKey() (key, sha string) {
	raw := make([]byte, 32)
	rand.Read(raw) // never fails (crypto/rand)
	key = keyPrefix + base64.RawURLEncoding.EncodeToString(raw)
	sum := sha256.Sum256([]byte(key))
	return key, hex.EncodeToString(sum[:])
}

// Bearer returns the token of an Authorization header's one value, or "" where
// it is of another scheme or form (RFC 6750, section 2.1): a token is of visible
// ASCII, without a comma.
func Bearer(header string) string {
	scheme, token, ok := strings.Cut(header, " ")
	token = strings.TrimLeft(token, " ") // RFC 9110, section 11.6.2, allows several
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" || !ascii.IsVisible(token) || strings.Contains(token, ",") {
		return ""
	}
	return token
}
