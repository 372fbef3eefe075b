// Package lexical shows texts of authors, operators and models in the messages of the
// registry and its packages.
package lexical

import (
	"strconv"
	"unicode/utf8"
)

// Quote renders a short text of the author or of the model so that nothing in
// it hides, breaks the line or never ends.
func Quote(s string) string { return strconv.Quote(Shorten(s)) }

// maxShown is the number of runes of a foreign name that a message shows.
const maxShown = 64

// Shorten cuts a text after maxShown characters.
func Shorten(s string) string {
	n := 0
	for i := range s {
		if n == maxShown {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// maxText is the number of characters that Cut keeps.
const maxText = 80

// Cut keeps the first characters of a text that the operator wrote.
func Cut(s string) string {
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	return string([]rune(s)[:maxText]) + "…"
}
