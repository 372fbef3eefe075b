// Package lexical holds the small functions on text that the registry and its
// packages share: texts shown in messages, and ASCII digits.
package lexical

import (
	"strconv"
	"unicode/utf8"
)

// Quote renders a short text of the author or of the model so that nothing in
// it hides, breaks the line or goes on for ever.
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

// AllDigits reports whether a text is one or more ASCII digits.
func AllDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// LeadingDigits counts the ASCII digits that a text starts with.
func LeadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// Number returns the value of a text of ASCII digits, or -1.
func Number(s string) int {
	if !AllDigits(s) {
		return -1
	}
	n := 0
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}
