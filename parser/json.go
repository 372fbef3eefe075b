package parser

import (
	"unicode/utf8"

	"github.com/callgate/callgate/refusal"
)

// The bounds of a number literal.
const (
	maxNumberBytes = 256
	maxExponent    = 400
)

// reader reads strict JSON from the left, once. Its methods return false when
// they have set fault; the first fault found is the one that starts lowest.
type reader struct {
	b        []byte
	i        int
	maxDepth int
	fault    *fault
	names    nameSet
}

// fail sets the fault at offset. At the end of the window the input has ended,
// which is remembered: a cut completion has no other fault.
func (r *reader) fail(offset int, code refusal.Code, expected string) bool {
	r.fault = &fault{offset: offset, code: code, detail: expected, ended: offset >= len(r.b)}
	return false
}

// unexpected fails at a byte that the grammar does not allow: a byte that can
// start no UTF-8 sequence is a fault of the encoding first.
func (r *reader) unexpected(offset int, expected string) bool {
	if offset < len(r.b) {
		if c := r.b[offset]; c >= utf8.RuneSelf {
			if _, broken := sequence(r.b[offset:]); broken == 0 {
				return r.fail(offset, refusal.InvalidUTF8, "")
			}
		}
	}
	return r.fail(offset, refusal.MalformedJSON, expected)
}

func (r *reader) space() {
	for r.i < len(r.b) && isSpace(r.b[r.i]) {
		r.i++
	}
}

// value reads one value within containers nested depth deep.
func (r *reader) value(depth int) bool {
	if r.i >= len(r.b) {
		return r.unexpected(r.i, "a value")
	}
	switch c := r.b[r.i]; {
	case c == '"':
		return r.string()
	case c == '{':
		return r.object(depth+1, nil)
	case c == '[':
		return r.array(depth+1, nil)
	case c == '-' || '0' <= c && c <= '9':
		return r.number()
	case c == 't':
		return r.literal("true")
	case c == 'f':
		return r.literal("false")
	case c == 'n':
		return r.literal("null")
	}
	return r.unexpected(r.i, "a value")
}

func (r *reader) literal(word string) bool {
	for k := range len(word) {
		if r.i+k >= len(r.b) || r.b[r.i+k] != word[k] {
			return r.unexpected(r.i+k, "the literal "+word)
		}
	}
	r.i += len(word)
	return true
}

// object reads an object that nests depth deep. For each member it calls read,
// when there is one, with the member's raw name (between the quotes), the
// offset of the name, and the reader at the first byte of the value; without,
// it reads the value itself.
func (r *reader) object(depth int, read func(name []byte, at int) bool) bool {
	if depth > r.maxDepth {
		return r.fail(r.i, refusal.TooDeep, "")
	}
	r.i++
	r.space()
	if r.i < len(r.b) && r.b[r.i] == '}' {
		r.i++
		return true
	}
	scope := r.names.enter()
	for {
		if r.i >= len(r.b) || r.b[r.i] != '"' {
			return r.unexpected(r.i, "a member name in double quotes")
		}
		at := r.i
		if !r.string() {
			return false
		}
		name := r.b[at+1 : r.i-1]
		if !r.names.add(name) {
			return r.fail(at, refusal.DuplicateKey, unquote(name))
		}
		r.space()
		if r.i >= len(r.b) || r.b[r.i] != ':' {
			return r.unexpected(r.i, "a colon")
		}
		r.i++
		r.space()
		if read == nil {
			if !r.value(depth) {
				return false
			}
		} else if !read(name, at) {
			return false
		}
		switch r.separator('}') {
		case ',':
		case '}':
			r.names.leave(scope)
			return true
		default:
			return r.unexpected(r.i, "a comma or a closing brace")
		}
	}
}

// array reads an array that nests depth deep. For each element it calls read,
// when there is one, with the reader at the element's first byte.
func (r *reader) array(depth int, read func() bool) bool {
	if depth > r.maxDepth {
		return r.fail(r.i, refusal.TooDeep, "")
	}
	r.i++
	r.space()
	if r.i < len(r.b) && r.b[r.i] == ']' {
		r.i++
		return true
	}
	for {
		if read == nil {
			if !r.value(depth) {
				return false
			}
		} else if !read() {
			return false
		}
		switch r.separator(']') {
		case ',':
		case ']':
			return true
		default:
			return r.unexpected(r.i, "a comma or a closing bracket")
		}
	}
}

// separator reads the comma or the closing bracket after an element and returns it. It
// returns 0, and reads no more than whitespace, if there is neither.
func (r *reader) separator(closing byte) byte {
	r.space()
	if r.i >= len(r.b) {
		return 0
	}
	c := r.b[r.i]
	switch c {
	case ',':
		r.i++
		r.space()
	case closing:
		r.i++
	default:
		return 0
	}
	return c
}

// plain marks the bytes that a string may hold as they are, one by one.
var plain = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// string reads a string literal and stops after its closing quote.
func (r *reader) string() bool {
	b, i := r.b, r.i+1
	for i < len(b) {
		c := b[i]
		switch {
		case plain[c]:
			i++
		case c == '"':
			r.i = i + 1
			return true
		case c == '\\':
			n := r.escape(i)
			if n == 0 {
				return false
			}
			i += n
		case c < 0x20:
			r.fail(i, refusal.MalformedJSON, "an escape in place of a raw control character")
			// White space after which nothing comes is not part of a completion, which then ends within the string.
			r.fault.ended = SkipSpace(b, i) == len(b)
			return false
		default:
			size, broken := sequence(b[i:])
			if broken >= 0 {
				return r.fail(i+broken, refusal.InvalidUTF8, "")
			}
			if size == 0 {
				return r.fail(len(b), refusal.InvalidUTF8, "")
			}
			i += size
		}
	}
	return r.unexpected(i, "the closing quote of a string")
}

// escape reads the escape at i and returns its length, or 0 with the fault set.
// A high surrogate and the low one that must follow are one escape, so that a
// lone one is a fault where it starts.
func (r *reader) escape(i int) int {
	b := r.b
	if i+1 >= len(b) {
		r.unexpected(i+1, "an escape")
		return 0
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
	default:
		r.unexpected(i+1, `one of the escapes \" \\ \/ \b \f \n \r \t \u`)
		return 0
	}
	var unit uint32
	for k := i + 2; k < i+6; k++ {
		if k >= len(b) || !isHex(b[k]) {
			r.unexpected(k, "four hexadecimal digits")
			return 0
		}
		unit = unit<<4 | hexValue(b[k])
	}
	switch {
	case unit < 0xD800 || unit > 0xDFFF:
		return 6
	case unit >= 0xDC00:
		r.fail(i, refusal.MalformedJSON, "a surrogate pair")
		return 0
	}
	// The pattern of the low surrogate, \uDC00 to \uDFFF, byte by byte.
	for k := i + 6; k < i+12; k++ {
		if k >= len(b) {
			r.unexpected(k, "the second half of a surrogate pair")
			return 0
		}
		c := b[k]
		var ok bool
		switch k - i - 6 {
		case 0:
			ok = c == '\\'
		case 1:
			ok = c == 'u'
		case 2:
			ok = c == 'd' || c == 'D'
		case 3:
			ok = 'c' <= c && c <= 'f' || 'C' <= c && c <= 'F'
		default:
			ok = isHex(c)
		}
		if !ok {
			r.fail(i, refusal.MalformedJSON, "a surrogate pair")
			return 0
		}
	}
	return 12
}

// number reads a number literal. One that is too long or whose exponent is out
// of bounds is a fault at its first byte, whatever follows.
func (r *reader) number() bool {
	b, start := r.b, r.i
	i := start
	digits := func() bool {
		from := i
		for i < len(b) && '0' <= b[i] && b[i] <= '9' {
			i++
		}
		return i > from
	}
	stop := func() bool {
		if i-start > maxNumberBytes {
			return r.fail(start, refusal.InvalidNumber, "a number of at most 256 bytes")
		}
		return r.unexpected(i, "a digit")
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return stop()
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return stop()
		}
	}
	exponent := 0
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from := i
		if !digits() {
			return stop()
		}
		for _, c := range b[from:i] {
			if exponent = exponent*10 + int(c-'0'); exponent > maxExponent {
				break
			}
		}
	}
	if i-start > maxNumberBytes {
		return r.fail(start, refusal.InvalidNumber, "a number of at most 256 bytes")
	}
	if exponent > maxExponent {
		return r.fail(start, refusal.InvalidNumber, "an exponent from -400 to 400")
	}
	r.i = i
	return true
}
