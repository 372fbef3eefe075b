// Package similar compares names that may have been mistyped. It serves
// suggestions alone: no name is ever accepted because it is similar.
package similar

import (
	"math/bits"
	"strings"
	"unicode"
)

// confusables are characters that are easily taken for an ASCII one; read only. The table
// is used only for suggestions: no name is ever accepted by it.
var confusables = map[rune]byte{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'ѕ': 's', 'і': 'i', 'ј': 'j', 'ԁ': 'd', 'һ': 'h', 'ԛ': 'q',
	'ԝ': 'w', 'ѵ': 'v', 'к': 'k', 'м': 'm', 'т': 't', 'в': 'b', 'н': 'h', 'г': 'r', 'п': 'n',
	'α': 'a', 'β': 'b', 'γ': 'y', 'ε': 'e', 'η': 'n', 'ι': 'i', 'κ': 'k', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'σ': 'o', 'τ': 't', 'υ': 'u',
	'χ': 'x', 'ω': 'w', 'ϲ': 'c', 'ϳ': 'j',
	'ı': 'i', 'ɑ': 'a', 'ɡ': 'g', 'ɩ': 'i', 'ʏ': 'y', 'ᴄ': 'c', 'ᴏ': 'o', 'ᴜ': 'u', 'ᴠ': 'v', 'ᴡ': 'w', 'ᴢ': 'z', 'ſ': 'f', 'ℓ': 'l',
	'ⅼ': 'l', 'ⅰ': 'i', 'ⅴ': 'v', 'ⅹ': 'x', 'ⅽ': 'c', 'ⅾ': 'd', 'ⅿ': 'm', 'օ': 'o', 'ո': 'n', 'ս': 'u', 'հ': 'h', 'ց': 'g', 'զ': 'q',
	'ӏ': 'l',
}

// Skeleton reduces a name to the skeleton by which near names are compared: lower
// case, without separators and invisible characters, look-alikes as ASCII.
func Skeleton(name string) string {
	var b strings.Builder
	for _, r := range name {
		r = plainForm(r)
		if r > unicode.MaxASCII {
			if ascii, ok := confusables[unicode.ToLower(r)]; ok {
				r = rune(ascii)
			}
		}
		switch {
		case r >= 'A' && r <= 'Z':
			b.WriteByte(byte(r) | 0x20)
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteByte(byte(r))
		case r <= unicode.MaxASCII, !unicode.IsGraphic(r), unicode.IsSpace(r), unicode.Is(unicode.Cf, r), unicode.IsPunct(r):
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// plainForm undoes full-width forms and mathematical letters and digits.
func plainForm(r rune) rune {
	switch {
	case r >= 0xFF01 && r <= 0xFF5E:
		return r - 0xFF01 + '!'
	case r >= 0x1D400 && r <= 0x1D6A3:
		letter := (r - 0x1D400) % 52
		if letter < 26 {
			return 'A' + letter
		}
		return 'a' + letter - 26
	case r >= 0x1D7CE && r <= 0x1D7FF:
		return '0' + (r-0x1D7CE)%10
	}
	return r
}

// LetterSet is a set of bytes that two near names must nearly share.
func LetterSet(s string) (set uint64) {
	for i := range len(s) {
		set |= 1 << (s[i] % 64)
	}
	return set
}

// LetterDifference counts the bytes that only one of two sets has. One edit
// changes a set by two at most.
func LetterDifference(a, b uint64) int { return bits.OnesCount64(a ^ b) }
