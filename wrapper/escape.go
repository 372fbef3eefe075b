// Package wrapper builds the answers for models, callers and terminals. An encoder builds
// everything, and nothing in it is hidden: code points that are invisible, that control a
// terminal or that reverse the direction of text are written as JSON escapes. The JSON
// value is unchanged.
package wrapper

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"unicode"
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

// Escape returns JSON in which every hidden code point within strings is a \u escape. The
// input must be valid JSON; without a hidden code point it is returned unchanged.
func Escape(b []byte) []byte {
	first := -1
	for i := 0; i < len(b); {
		// Eight bytes at a time: none of them is DEL or begins a longer code point, if neither
		// they nor they plus one have the highest bit.
		const low, high = 0x0101010101010101, 0x8080808080808080
		if rest := b[i:]; len(rest) >= 8 {
			if word := binary.LittleEndian.Uint64(rest); (word|(word+low))&high == 0 {
				i += 8
				continue
			}
		}
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

// previous is the last code point of b, or none if b ends with an escape: the last digit of
// an escape is not a digit of the text.
func previous(b []byte) rune {
	if n := len(b); n >= 6 && b[n-6] == '\\' && b[n-5] == 'u' {
		return 0
	}
	r, _ := utf8.DecodeLastRune(b)
	return r
}

// EscapeText returns text in which every hidden code point is written out as its \u
// escape. It is for text that reaches its reader without the escapes of JSON.
// Tabs and the ends of lines stay.
func EscapeText(s string) string {
	var out []byte
	from := 0
	for i, r := range s {
		control := r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7F
		if !control && (r < utf8.RuneSelf || !hidden(r, last(s[:i]))) {
			continue
		}
		out = appendEscape(append(out, s[from:i]...), r)
		from = i + utf8.RuneLen(r)
	}
	if out == nil {
		return s
	}
	return string(append(out, s[from:]...))
}

func last(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
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

// hidden reports whether a code point beyond ASCII is invisible, or changes how its
// neighbours are displayed. A variation selector counts unless it chooses between the text
// and the emoji form of the symbol before it.
func hidden(r, before rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9F, // C1 controls
		r == 0xAD,                // soft hyphen
		r == 0x34F,               // combining grapheme joiner
		r == 0x61C,               // Arabic letter mark
		r == 0x70F,               // Syriac abbreviation mark
		r == 0x115F, r == 0x1160, // Hangul fillers
		r == 0x17B4, r == 0x17B5, // Khmer inherent vowels
		r >= 0x180B && r <= 0x180F, // Mongolian variation selectors, vowel separator
		r >= 0x200B && r <= 0x200F, // zero width, direction marks
		r >= 0x2028 && r <= 0x202E, // line and paragraph separators, bidi embeddings
		r >= 0x2060 && r <= 0x206F, // word joiner, invisible operators, bidi isolates
		r == 0x3164, r == 0xFFA0,   // Hangul fillers
		r == 0xFEFF,                  // byte order mark
		r >= 0xFFF0 && r <= 0xFFFB,   // specials, interlinear annotation
		r >= 0x13430 && r <= 0x1343F, // Egyptian hieroglyph format controls
		r >= 0x1BCA0 && r <= 0x1BCA3, // shorthand format controls
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

// takesPresentation reports whether a symbol has a text and an emoji form: the bases of
// Unicode's emoji variation sequences, and the planes of emoji.
func takesPresentation(r rune) bool {
	return r >= 0x1F000 && r <= 0x1FAFF || r <= 0x3299 && unicode.Is(presentable, r)
}

// presentable holds the bases of emoji variation sequences below U+10000
// (Unicode, emoji-variation-sequences). It is read only.
var presentable = &unicode.RangeTable{R16: []unicode.Range16{
	{0x23, 0x23, 1}, {0x2A, 0x2A, 1}, {0x30, 0x39, 1}, {0xA9, 0xA9, 1}, {0xAE, 0xAE, 1},
	{0x203C, 0x203C, 1}, {0x2049, 0x2049, 1}, {0x2122, 0x2122, 1}, {0x2139, 0x2139, 1}, {0x2194, 0x2199, 1},
	{0x21A9, 0x21AA, 1}, {0x231A, 0x231B, 1}, {0x2328, 0x2328, 1}, {0x23CF, 0x23CF, 1}, {0x23E9, 0x23F3, 1},
	{0x23F8, 0x23FA, 1}, {0x24C2, 0x24C2, 1}, {0x25AA, 0x25AB, 1}, {0x25B6, 0x25B6, 1}, {0x25C0, 0x25C0, 1},
	{0x25FB, 0x25FE, 1}, {0x2600, 0x2604, 1}, {0x260E, 0x260E, 1}, {0x2611, 0x2611, 1}, {0x2614, 0x2615, 1},
	{0x2618, 0x2618, 1}, {0x261D, 0x261D, 1}, {0x2620, 0x2620, 1}, {0x2622, 0x2623, 1}, {0x2626, 0x2626, 1},
	{0x262A, 0x262A, 1}, {0x262E, 0x262F, 1}, {0x2638, 0x263A, 1}, {0x2640, 0x2640, 1}, {0x2642, 0x2642, 1},
	{0x2648, 0x2653, 1}, {0x265F, 0x2660, 1}, {0x2663, 0x2663, 1}, {0x2665, 0x2666, 1}, {0x2668, 0x2668, 1},
	{0x267B, 0x267B, 1}, {0x267E, 0x267F, 1}, {0x2692, 0x2697, 1}, {0x2699, 0x2699, 1}, {0x269B, 0x269C, 1},
	{0x26A0, 0x26A1, 1}, {0x26A7, 0x26A7, 1}, {0x26AA, 0x26AB, 1}, {0x26B0, 0x26B1, 1}, {0x26BD, 0x26BE, 1},
	{0x26C4, 0x26C5, 1}, {0x26C8, 0x26C8, 1}, {0x26CE, 0x26CF, 1}, {0x26D1, 0x26D1, 1}, {0x26D3, 0x26D4, 1},
	{0x26E9, 0x26EA, 1}, {0x26F0, 0x26F5, 1}, {0x26F7, 0x26FA, 1}, {0x26FD, 0x26FD, 1}, {0x2702, 0x2702, 1},
	{0x2705, 0x2705, 1}, {0x2708, 0x270D, 1}, {0x270F, 0x270F, 1}, {0x2712, 0x2712, 1}, {0x2714, 0x2714, 1},
	{0x2716, 0x2716, 1}, {0x271D, 0x271D, 1}, {0x2721, 0x2721, 1}, {0x2728, 0x2728, 1}, {0x2733, 0x2734, 1},
	{0x2744, 0x2744, 1}, {0x2747, 0x2747, 1}, {0x274C, 0x274C, 1}, {0x274E, 0x274E, 1}, {0x2753, 0x2755, 1},
	{0x2757, 0x2757, 1}, {0x2763, 0x2764, 1}, {0x2795, 0x2797, 1}, {0x27A1, 0x27A1, 1}, {0x27B0, 0x27B0, 1},
	{0x27BF, 0x27BF, 1}, {0x2934, 0x2935, 1}, {0x2B05, 0x2B07, 1}, {0x2B1B, 0x2B1C, 1}, {0x2B50, 0x2B50, 1},
	{0x2B55, 0x2B55, 1}, {0x3030, 0x3030, 1}, {0x303D, 0x303D, 1}, {0x3297, 0x3297, 1}, {0x3299, 0x3299, 1},
}, LatinOffset: 5}
