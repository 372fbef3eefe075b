package parser

import "encoding/json"

// Decode builds the value of strict JSON that Parse has read: objects as
// map[string]any, arrays as []any, numbers as json.Number with the digits that
// were written. It must not be called with bytes that were not read; it returns nil
// if they are not a JSON value.
func Decode(b []byte) any {
	d := decoder{b: b}
	d.space()
	return d.value()
}

// DecodeObject is Decode for the arguments of a call; nil where b is no object.
func DecodeObject(b []byte) map[string]any {
	object, _ := Decode(b).(map[string]any)
	return object
}

// decoder walks JSON whose grammar has been read already.
type decoder struct {
	b []byte
	i int
}

func (d *decoder) space() { d.i = SkipSpace(d.b, d.i) }

func (d *decoder) value() any {
	if d.i >= len(d.b) {
		return nil
	}
	switch d.b[d.i] {
	case '{':
		object := map[string]any{}
		d.each(func(name []byte, _ int) { object[unquote(name)] = d.value() })
		return object
	case '[':
		array := []any{}
		d.each(func([]byte, int) { array = append(array, d.value()) })
		return array
	case '"':
		return unquote(d.text())
	case 't':
		d.i += len("true")
		return true
	case 'f':
		d.i += len("false")
		return false
	case 'n':
		d.i += len("null")
		return nil
	}
	from := d.i
	d.scalar()
	return json.Number(d.b[from:d.i])
}

// each calls visit at the first byte of every element of the array, or of every
// member's value of the object, at the decoder; for a member with its raw name
// and the name's offset. visit must consume the value.
func (d *decoder) each(visit func(name []byte, at int)) {
	object := d.b[d.i] == '{'
	d.i++
	d.space()
	for d.i < len(d.b) && d.b[d.i] != '}' && d.b[d.i] != ']' {
		var name []byte
		at := d.i
		if object {
			name = d.text()
			d.space()
			d.i++ // the colon
			d.space()
		}
		visit(name, at)
		d.space()
		if d.i < len(d.b) && d.b[d.i] == ',' {
			d.i++
			d.space()
		}
	}
	d.i++
}

// text consumes a string and returns its raw bytes between the quotes.
func (d *decoder) text() []byte {
	from := d.i + 1
	for d.i = from; d.i < len(d.b) && d.b[d.i] != '"'; d.i++ {
		if d.b[d.i] == '\\' {
			d.i++
		}
	}
	raw := d.b[from:min(d.i, len(d.b))]
	d.i++
	return raw
}

// scalar consumes a number or a literal.
func (d *decoder) scalar() {
	for d.i < len(d.b) {
		switch c := d.b[d.i]; {
		case c == ',' || c == '}' || c == ']' || isSpace(c):
			return
		}
		d.i++
	}
}

// skip consumes one value without building it.
func (d *decoder) skip() {
	depth := 0
	for d.i < len(d.b) {
		switch d.b[d.i] {
		case '{', '[':
			depth++
			d.i++
		case '}', ']':
			depth--
			d.i++
		case '"':
			d.text()
		case ',', ':', ' ', '\t', '\r', '\n':
			d.i++
			continue
		default:
			d.scalar()
		}
		if depth == 0 {
			return
		}
	}
}
