package identity

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/callgate/callgate/internal/rawjson"
)

// maxKeys bounds the keys of an issuer.
const maxKeys = 100

// keySet is the keys of an issuer at one time. It is immutable.
type keySet struct {
	keys        []jose.JSONWebKey // as readKey returns them
	unusable    int
	confirmedAt time.Time // when the source last returned this set
}

// parseKeys reads a JWK set (RFC 7517, section 5). Keys that no token can be
// verified with are left out, as the RFC has it. A set that is well formed and
// holds no key is not an error: the issuer has withdrawn them all.
func parseKeys(document []byte) (*keySet, error) {
	if len(document) > maxDocument {
		return nil, errTooLarge
	}
	members, err := decodeObject(document)
	if err != nil {
		return nil, fmt.Errorf("the key set is %w", err)
	}
	list, ok := rawjson.Elements(members["keys"])
	if !ok {
		return nil, errors.New(`the key set has no list "keys"`)
	}
	set := &keySet{}
	for i, raw := range list {
		if i == maxKeys {
			return nil, fmt.Errorf("the key set has more than %d keys", maxKeys)
		}
		jwk, ok := rawjson.Map(raw)
		if !ok {
			return nil, fmt.Errorf("the key set: key %d is not an object", i+1)
		}
		k, ok := readKey(jwk)
		if !ok {
			set.unusable++
			continue
		}
		if k.KeyID != "" && slices.ContainsFunc(set.keys, func(other jose.JSONWebKey) bool {
			return other.KeyID == k.KeyID && typeOf(other.Key) == typeOf(k.Key)
		}) {
			return nil, fmt.Errorf("the key set: key %d has the kid and the type of another key", i+1)
		}
		set.keys = append(set.keys, k)
	}
	return set, nil
}

// find returns the one key that a token can be verified with. The kid is compared byte for
// byte, and nothing else is ever done with it. Without a kid, exactly one key must fit.
func (s *keySet) find(algorithm, kid string) (key any, reason Reason) {
	reason = UnknownKey
	for _, k := range s.keys {
		if kid != "" && k.KeyID != kid {
			continue
		}
		switch fits := typeOf(k.Key) == keyTypes[algorithm] && (k.Algorithm == "" || k.Algorithm == algorithm); {
		case fits && key != nil:
			return nil, UnknownKey
		case fits:
			key = k.Key
		case kid != "":
			reason = KeyMisfit
		}
	}
	if key != nil {
		return key, ""
	}
	return nil, reason
}
