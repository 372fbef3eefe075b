package openai

import (
	"bytes"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/callgate/callgate/parser"
)

// object is a JSON object as it was written: its members in their order, each
// value as it stood.
type object []member

type member struct {
	name  string
	value []byte
}

// get returns the value of a member; nil where there is none, or null.
func (o object) get(name string) []byte {
	for _, m := range o {
		if m.name == name && m.value[0] != 'n' {
			return m.value
		}
	}
	return nil
}

// set returns the object with another value of a member, which comes last where
// it was not there.
func (o object) set(name string, value []byte) object {
	out := slices.Clone(o)
	for i := range out {
		if out[i].name == name {
			out[i].value = value
			return out
		}
	}
	return append(out, member{name, value})
}

// without returns the object without some members.
func (o object) without(names ...string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return slices.Contains(names, m.name) })
}

// bytes writes the object.
func (o object) bytes() []byte {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(quote(b, m.name), ':'), m.value...)
	}
	return append(b, '}')
}

var errNoObject = errors.New("found no object")

// maxDepth is how deep the reader goes that names a fault. A request itself may
// nest as deep as jsontext allows.
const maxDepth = 500

// readObject reads one strict JSON object. Its error says where it is not one.
func readObject(raw []byte) (object, error) {
	o, err := membersOf(raw)
	if err == nil || errors.Is(err, errNoObject) {
		return o, err
	}
	if _, told := parser.ReadValue(raw, maxDepth); told != nil {
		err = told // the same fault, in the words that are used everywhere
	} else {
		err = errors.New("not strict JSON")
	}
	return nil, err
}

// membersOf takes an object apart.
func membersOf(raw []byte, options ...jsontext.Options) (object, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), options...)
	if d.PeekKind() != '{' {
		if _, err := d.ReadValue(); err != nil {
			return nil, err
		}
		return nil, errNoObject
	}
	_, _ = d.ReadToken() // it was peeked
	o := make(object, 0, 16)
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: name.String()}
		if m.value, err = next(d, raw); err != nil {
			return nil, err
		}
		o = append(o, m)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	if len(bytes.TrimLeft(raw[d.InputOffset():], " \t\r\n")) > 0 {
		return nil, errors.New("more follows")
	}
	return o, nil
}

// next reads a value and returns its bytes within raw.
func next(d *jsontext.Decoder, raw []byte) ([]byte, error) {
	v, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(d.InputOffset())
	return raw[end-len(v) : end : end], nil
}

// known is what a value that was read already need not be searched for again.
var known = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// within takes apart an object that is part of what was read.
func within(raw []byte) (object, bool) {
	o, err := membersOf(raw, known...)
	return o, err == nil
}

// elements takes apart an array that is part of what was read.
func elements(raw []byte) ([][]byte, bool) {
	if raw == nil || raw[0] != '[' {
		return nil, false
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), known...)
	_, _ = d.ReadToken() // the bracket
	var list [][]byte
	for d.PeekKind() != ']' {
		v, err := next(d, raw)
		if err != nil {
			return nil, false
		}
		list = append(list, v)
	}
	return list, true
}

// text is what a JSON string says.
func text(raw []byte) (string, bool) {
	if raw == nil || raw[0] != '"' {
		return "", false
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	return string(s), err == nil
}

// quote appends a string that is valid UTF-8 as JSON.
func quote[text string | []byte](b []byte, s text) []byte {
	b, _ = jsontext.AppendQuote(b, s) // fails on invalid UTF-8 alone, and then writes replacement characters
	return b
}
