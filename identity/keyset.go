package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The bounds of what an issuer may answer.
const (
	maxDocument = 1 << 20 // bytes, of a key set and of a discovery document
	maxKeys     = 100
)

// keySet is the keys of an issuer at one time. It is immutable.
type keySet struct {
	byID        map[string][]publicKey
	all         []publicKey
	unusable    int
	confirmedAt time.Time // when its source last said so
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
	var list []json.RawMessage
	if raw := members["keys"]; len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		return nil, errors.New(`the key set has no list "keys"`)
	}
	if len(list) > maxKeys {
		return nil, fmt.Errorf("the key set has %d keys; expected at most %d", len(list), maxKeys)
	}
	set := &keySet{byID: map[string][]publicKey{}}
	for i, raw := range list {
		jwk, err := decodeObject(raw)
		if err != nil {
			return nil, fmt.Errorf("the key set: key %d is not an object", i+1)
		}
		k, ok := parseKey(jwk)
		if !ok {
			set.unusable++
			continue
		}
		if k.id != "" {
			for _, other := range set.byID[k.id] {
				if other.family == k.family {
					return nil, fmt.Errorf("the key set: key %d has the kid and the type of another key", i+1)
				}
			}
			set.byID[k.id] = append(set.byID[k.id], k)
		}
		set.all = append(set.all, k)
	}
	return set, nil
}

// find returns the one key that a token can be verified with. A kid is looked
// up, byte for byte, and nothing else is ever done with it.
func (s *keySet) find(a algorithm, id string) (any, Reason) {
	candidates, missing := s.all, UnknownKey
	if id != "" {
		candidates = s.byID[id]
		if len(candidates) > 0 {
			missing = KeyMisfit
		}
	}
	var found *publicKey
	for i := range candidates {
		if !candidates[i].fits(a) {
			continue
		}
		if found != nil {
			return nil, UnknownKey
		}
		found = &candidates[i]
	}
	if found == nil {
		return nil, missing
	}
	return found.public, ""
}
