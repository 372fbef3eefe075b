package wrapper

import (
	"unicode"
	"unicode/utf8"
)

// Hidden returns the first code point of a text that shows nothing, controls a
// terminal, or changes how its neighbors show. It is for texts that people and models
// both read, such as the description of a tool: tabs, the ends of lines, and joiners
// within emoji and within the scripts that are written with them, are not hidden. A
// byte that is not UTF-8 counts as U+FFFD.
func Hidden(s string) (r rune, found bool) {
	for i, r := range s {
		if concealed(s, i, r) {
			return r, true
		}
	}
	return 0, false
}

// EscapeHidden returns text in which every code point that Hidden would find is written out
// as its \u escape.
func EscapeHidden(s string) string {
	var out []byte
	from := 0
	for i, r := range s {
		if !concealed(s, i, r) {
			continue
		}
		out = appendEscape(append(out, s[from:i]...), r)
		_, size := utf8.DecodeRuneInString(s[i:])
		from = i + size
	}
	if out == nil {
		return s
	}
	return string(append(out, s[from:]...))
}

// concealed reports whether the code point at a position of a text is hidden there.
func concealed(s string, i int, r rune) bool {
	switch {
	case r == '\t' || r == '\n':
		return false
	case r == '\r':
		return i+1 == len(s) || s[i+1] != '\n'
	case r < ' ' || r == 0x7F:
		return true
	case r < utf8.RuneSelf:
		return false
	case r == utf8.RuneError:
		_, size := utf8.DecodeRuneInString(s[i:])
		return size == 1
	}
	if !hidden(r, last(s[:i])) {
		return false
	}
	if r != zeroWidthJoiner && r != zeroWidthNonJoiner {
		return true
	}
	before := last(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
	return !joins(r, before, after)
}

const (
	zeroWidthNonJoiner = 0x200C
	zeroWidthJoiner    = 0x200D
)

// joins reports whether a joiner is part of ordinary writing: within an emoji sequence, or
// between two characters of a script that uses joiners.
func joins(r, before, after rune) bool {
	if r == zeroWidthJoiner && (emoji(before) || before == 0xFE0F) && emoji(after) {
		return true
	}
	for _, script := range joinedScripts {
		if unicode.Is(script, before) {
			return unicode.Is(script, after) && written(before) && written(after)
		}
	}
	return false
}

// emoji reports whether a symbol can be next to a joiner in an emoji sequence. Digits and
// signs of Latin-1 have an emoji form, and are never joined.
func emoji(r rune) bool { return r > 0xFF && takesPresentation(r) }

// written reports whether a code point of such a script is a letter, or a sign on one.
func written(r rune) bool { return (unicode.IsLetter(r) || unicode.IsMark(r)) && !hidden(r, 0) }

// joinedScripts are the scripts in which joiners choose the form of a letter. It is
// read only.
var joinedScripts = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati,
	unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar,
}
