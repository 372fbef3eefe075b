// Package text words texts: it shortens them, and counts things.
package text

import (
	"strconv"
	"unicode/utf8"
)

// Cut is the longest beginning of a text that has at most so many bytes and ends with a whole code
// point.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// Shorten cuts a text after so many characters, and marks the cut by "…".
func Shorten(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// Count says how many there are of what a noun names, whose plural ends in s.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
