package gateway

import (
	"crypto/rand"
	"strings"
)

const (
	idPrefix  = "call_"
	minRandom = 26 // of base 32, which nobody can guess
)

// newID makes the id of a call.
func newID() string { return idPrefix + rand.Text() }

// IsID reports whether a text has the form of an id that newID makes.
func IsID(s string) bool {
	random, ok := strings.CutPrefix(s, idPrefix)
	return ok && len(random) >= minRandom && !strings.ContainsFunc(random, func(c rune) bool {
		return (c < 'A' || c > 'Z') && (c < '2' || c > '7')
	})
}
