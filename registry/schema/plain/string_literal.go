package plain

import (
	"unicode/utf16"
	"unicode/utf8"
)

// literal is where a text stands, without its quotes.
type literal struct {
	from, to int
	ascii    bool
	// escapes is by how many characters the escapes are longer than what they stand for.
	escapes int
}

// special marks the bytes that do not simply stand for themselves in a text.
var special = func() [256]bool {
	var t [256]bool
	for c := range t {
		t[c] = c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf
	}
	return t
}()

// literal passes over a text.
func (r *run) literal() (literal, bool) {
	if r.peek() != '"' {
		return literal{}, false
	}
	s := literal{from: r.i + 1, ascii: true}
	b, i := r.b, r.i+1
	for i < len(b) {
		c := b[i]
		switch {
		case !special[c]:
			i++
		case c == '"':
			s.to, r.i = i, i+1
			return s, s.ascii || utf8.Valid(b[s.from:s.to])
		case c == '\\':
			_, size := escape(b[i:])
			if size == 0 {
				return s, false
			}
			s.escapes += size - 1
			i += size
		case c < ' ':
			return s, false
		default:
			s.ascii = false
			i++
		}
	}
	return s, false
}

// escape reads the escape that b begins with: its character and its size, or 0 for what is none.
func escape(b []byte) (c rune, size int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		c, ok := unit(b)
		if !ok {
			return 0, 0
		}
		if !utf16.IsSurrogate(c) {
			return c, 6
		}
		low, ok := unit(b[6:])
		if c = utf16.DecodeRune(c, low); !ok || c == utf8.RuneError {
			return 0, 0
		}
		return c, 12
	}
	return 0, 0
}

// unit reads a \u escape.
func unit(b []byte) (c rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, d := range b[2:6] {
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d|0x20 >= 'a' && d|0x20 <= 'f':
			d = d | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		c = c<<4 | rune(d)
	}
	return c, true
}

// appendUnescaped appends a text that literal has passed over.
func appendUnescaped(to, raw []byte) []byte {
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			to = append(to, raw[i])
			i++
			continue
		}
		c, size := escape(raw[i:])
		if size == 0 {
			return to // literal has refused it
		}
		to = utf8.AppendRune(to, c)
		i += size
	}
	return to
}
