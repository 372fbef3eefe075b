// Package ascii checks which texts consist of plain ASCII characters, for values that are
// compared byte for byte or that must be ASCII: in headers, keys and URLs. It also parses
// ASCII digits.
package ascii

import "strings"

// IsVisible reports whether a text holds nothing but the visible characters of ASCII, without
// spaces: ! to ~. The empty text is visible.
func IsVisible(s string) bool { return within(s, '!') }

// IsPrintable is IsVisible with spaces.
func IsPrintable(s string) bool { return within(s, ' ') }

func within(s string, least byte) bool {
	for i := range len(s) {
		if s[i] < least || s[i] > '~' {
			return false
		}
	}
	return true
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

// IsLetter reports whether a byte is an ASCII letter.
func IsLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// IsDigit reports whether a byte is an ASCII digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// IsHexDigit reports whether a byte is a hexadecimal digit.
func IsHexDigit(c byte) bool { return IsDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// IsToken reports whether a text can be the name of a header, or a part of one (RFC 9110,
// section 5.6.2).
func IsToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; !IsLetter(c) && !IsDigit(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// IsPlainID reports whether an identifier of a provider consists of letters, digits and
// punctuation in which no text can be hidden: no spaces, quotes or brackets.
func IsPlainID(id string) bool {
	return id != "" && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/+=~@|#") == ""
}

// Folded is a text's letters and digits, the letters small: a reader that is careless of words
// could take two texts for one if these are the same.
func Folded(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		}
		return -1
	}, s)
}
