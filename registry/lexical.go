package registry

import (
	"strconv"
	"unicode/utf8"
)

// quote renders a short text of the author or of the model so that nothing in
// it hides, breaks the line or goes on for ever.
func quote(s string) string { return strconv.Quote(shorten(s)) }

// maxShown is the number of runes of a foreign name that a message shows.
const maxShown = 64

func shorten(s string) string {
	n := 0
	for i := range s {
		if n == maxShown {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// maxText is the number of characters that CutText keeps.
const maxText = 80

// CutText keeps the first characters of a text that the operator wrote.
func cutText(s string) string {
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	return string([]rune(s)[:maxText]) + "…"
}

// allDigits reports whether a text is one or more ASCII digits.
func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// leadingDigits counts the ASCII digits that a text starts with.
func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// digits returns the value of a text of ASCII digits, or -1.
func digits(s string) int {
	if !allDigits(s) {
		return -1
	}
	n := 0
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}
