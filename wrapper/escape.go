// Package wrapper makes what goes back: to a model, to a caller, to a terminal.
// Everything is built by an encoder, and nothing in it hides: code points that
// are invisible, that control a terminal or that reverse the direction of text
// stand as JSON escapes. The JSON value is unchanged.
package wrapper

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Marshal encodes a value as one line of JSON in which nothing hides. It does
// not escape for HTML.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return Escape(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// Escape returns JSON in which every hidden code point within strings is a \u
// escape. The input must be valid JSON; it is returned as it is when there is
// nothing to do.
func Escape(b []byte) []byte {
	first := -1
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			if b[i] == 0x7F {
				first = i
				break
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		if hidden(r, previous(b[:i])) {
			first = i
			break
		}
		i += size
	}
	if first < 0 {
		return b
	}
	out := make([]byte, first, len(b)+64)
	copy(out, b)
	for i := first; i < len(b); {
		r, size := rune(b[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(b[i:])
		}
		if r != 0x7F && (r < utf8.RuneSelf || !hidden(r, previous(b[:i]))) {
			out = append(out, b[i:i+size]...)
		} else {
			out = appendEscape(out, r)
		}
		i += size
	}
	return out
}

func previous(b []byte) rune {
	r, _ := utf8.DecodeLastRune(b)
	return r
}

func appendEscape(out []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	unit := func(u rune) {
		out = append(out, '\\', 'u', digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15])
	}
	if r > 0xFFFF {
		r -= 0x10000
		unit(0xD800 + r>>10)
		unit(0xDC00 + r&0x3FF)
	} else {
		unit(r)
	}
	return out
}

// hidden tells whether a code point beyond ASCII shows nothing, or changes how
// its neighbours show. A variation selector counts unless it chooses between
// the text and the emoji form of the symbol before it.
func hidden(r, before rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9F, // C1 controls
		r == 0xAD,                // soft hyphen
		r == 0x34F,               // combining grapheme joiner
		r == 0x61C,               // Arabic letter mark
		r == 0x115F, r == 0x1160, // Hangul fillers
		r == 0x17B4, r == 0x17B5, // Khmer inherent vowels
		r >= 0x180B && r <= 0x180F, // Mongolian variation selectors, vowel separator
		r >= 0x200B && r <= 0x200F, // zero width, direction marks
		r >= 0x2028 && r <= 0x202E, // line and paragraph separators, bidi embeddings
		r >= 0x2060 && r <= 0x206F, // word joiner, invisible operators, bidi isolates
		r == 0x3164, r == 0xFFA0,   // Hangul fillers
		r == 0xFEFF,                // byte order mark
		r >= 0xFFF0 && r <= 0xFFFB, // specials, interlinear annotation
		r >= 0x1BCA0 && r <= 0x1BCA3,
		r >= 0x1D173 && r <= 0x1D17A, // musical format controls
		r >= 0xE0000 && r <= 0xE0FFF: // tags, variation selectors supplement
		return true
	case r == 0xFE0E || r == 0xFE0F:
		return !takesPresentation(before)
	case r >= 0xFE00 && r <= 0xFE0D:
		return true
	}
	return false
}

// takesPresentation tells whether a symbol has a text and an emoji form: the
// key caps, and the blocks in which emoji lie.
func takesPresentation(r rune) bool {
	switch {
	case r >= '0' && r <= '9', r == '#', r == '*', r == 0xA9, r == 0xAE:
		return true
	case r >= 0x203C && r <= 0x3299, r >= 0x1F000 && r <= 0x1FAFF:
		return true
	}
	return false
}
