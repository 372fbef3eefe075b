package grammar

import (
	"fmt"
	"slices"
)

// escapes are the short escapes of JSON strings (RFC 8259, section 7), by character.
var escapes = map[rune]string{'"': `\"`, '\\': `\\`, '/': `\/`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// unescaped is every character that stands for itself within a JSON string.
var unescaped = class{{0x20, 0x21}, {0x23, 0x5B}, {0x5D, firstSurrogate - 1}, {lastSurrogate + 1, lastRune}}

// maxSpelledSpans is how many ranges of characters are written as \u escapes too. The
// classes of Unicode have hundreds; their characters are written as they are.
const maxSpelledSpans = 12

// characters matches one character of a set as it stands within a JSON string.
func (c *compiler) characters(set class) expr {
	if slices.Equal(set, anyRune) {
		return c.shared("char", func() expr { return c.spell(anyRune) })
	}
	if len(set) == 1 && set[0].from == set[0].to && !c.compact {
		r := set[0].from
		return c.shared(fmt.Sprintf("c%x", r), func() expr { return c.spell(set) })
	}
	if len(set) > maxSpelledSpans {
		// A class of Unicode is written once, not in each state that takes it.
		key := fmt.Sprint(set)
		if _, known := c.common[key]; !known {
			c.common[key] = c.rules.define("set", c.spell(set))
		}
		return c.common[key]
	}
	return c.spell(set)
}

func (c *compiler) spell(set class) expr {
	raw := intersect(set, unescaped)
	var parts []expr
	if len(raw) == 1 && raw[0].from == raw[0].to {
		parts = append(parts, literal(string(raw[0].from)))
	} else if len(raw) > 0 {
		parts = append(parts, raw)
	}
	for _, r := range `"\/` + "\b\f\n\r\t" {
		if contains(set, r) && (!c.compact || !contains(unescaped, r)) {
			parts = append(parts, literal(escapes[r]))
		}
	}
	if c.compact {
		// A character that has no short escape has only the long one.
		set = intersect(set, class{{0, 7}, {0xB, 0xB}, {0xE, 0x1F}})
	}
	if len(set) <= maxSpelledSpans {
		for _, s := range set {
			parts = append(parts, c.longEscapes(s)...)
		}
	}
	return oneOf(parts...)
}

// longEscapes matches \uXXXX of the characters of a range. Characters beyond the basic
// plane are matched, as pairs of surrogates, where the range has all of them.
func (c *compiler) longEscapes(s span) []expr {
	var parts []expr
	if s.from <= 0x10000 && s.to == lastRune {
		parts = append(parts, c.shared("surrogates", func() expr {
			hex := hexDigits(0, 15)
			return seq(literal(`\u`), hexDigits(13, 13), hexDigits(8, 11), hex, hex, literal(`\u`), hexDigits(13, 13), hexDigits(12, 15), hex, hex)
		}))
	}
	for _, half := range intersect(class{s}, class{{0, firstSurrogate - 1}, {lastSurrogate + 1, 0xFFFF}}) {
		for _, digits := range hexRange(int(half.from), int(half.to), 4) {
			parts = append(parts, seq(append([]expr{literal(`\u`)}, digits...)...))
		}
	}
	return parts
}

// hexRange gives the numbers of a range, written with so many hexadecimal digits, as lists
// of digit classes.
func hexRange(from, to, digits int) [][]expr {
	if digits == 0 {
		return [][]expr{{}}
	}
	size := 1 << (4 * (digits - 1))
	first, last := from/size, to/size
	var out [][]expr
	add := func(low, high, from, to int) {
		for _, rest := range hexRange(from, to, digits-1) {
			out = append(out, append([]expr{hexDigits(low, high)}, rest...))
		}
	}
	if first == last {
		add(first, last, from%size, to%size)
		return out
	}
	if from%size != 0 {
		add(first, first, from%size, size-1)
		first++
	}
	partial := to%size != size-1
	if partial {
		last--
	}
	if first <= last {
		add(first, last, 0, size-1)
	}
	if partial {
		add(last+1, last+1, 0, to%size)
	}
	return out
}

// hexDigits matches one hexadecimal digit of a range, in either case.
func hexDigits(from, to int) expr {
	var set class
	if from <= 9 {
		set = append(set, span{rune('0' + from), rune('0' + min(to, 9))})
	}
	if to >= 10 {
		low, high := rune(max(from, 10)-10), rune(to-10)
		set = append(set, span{'A' + low, 'A' + high}, span{'a' + low, 'a' + high})
	}
	return set
}

// text matches a JSON string of exactly this text, in each of its spellings, or where the
// grammar is compact in one.
func (c *compiler) text(s string) expr {
	parts := []expr{literal(`"`)}
	for _, r := range s {
		if c.compact {
			parts = append(parts, c.spell(class{{r, r}}))
			continue
		}
		parts = append(parts, c.characters(class{{r, r}}))
	}
	return seq(append(parts, literal(`"`))...)
}
