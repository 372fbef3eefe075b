package gateway

import (
	"crypto/rand"
	"strings"
)

const (
	callIDPrefix = "call_"
	callIDRandom = 26 // of base 32
)

// newCallID makes the id of a call, which nobody can guess: 130 random bits, in the alphabet of base 32.
func newCallID() string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	var id [len(callIDPrefix) + callIDRandom]byte
	rand.Read(id[copy(id[:], callIDPrefix):])
	for i := len(callIDPrefix); i < len(id); i++ {
		id[i] = alphabet[id[i]%32]
	}
	return string(id[:])
}

// IsCallID reports whether a text has the form of an id that the kernel gives to a call.
func IsCallID(s string) bool {
	random, ok := strings.CutPrefix(s, callIDPrefix)
	return ok && len(random) >= callIDRandom && !strings.ContainsFunc(random, func(c rune) bool {
		return (c < 'A' || c > 'Z') && (c < '2' || c > '7')
	})
}
