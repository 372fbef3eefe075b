// Package callid makes the ids of calls, which are unguessable, and knows their form.
package callid

import (
	"crypto/rand"
	"strings"
)

const (
	idPrefix  = "call_"
	minRandom = 26 // of base 32, which nobody can guess
)

// New makes the id of a call: 130 random bits, in the alphabet of base 32.
func New() string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	var id [len(idPrefix) + minRandom]byte
	rand.Read(id[copy(id[:], idPrefix):])
	for i := len(idPrefix); i < len(id); i++ {
		id[i] = alphabet[id[i]%32]
	}
	return string(id[:])
}

// Is reports whether a text has the form of an id that New makes.
func Is(s string) bool {
	random, ok := strings.CutPrefix(s, idPrefix)
	return ok && len(random) >= minRandom && !strings.ContainsFunc(random, func(c rune) bool {
		return (c < 'A' || c > 'Z') && (c < '2' || c > '7')
	})
}
