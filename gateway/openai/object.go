package openai

import (
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/parser"
)

// object is a JSON object as it was written: its members in their order, each
// value as it stood.
type object []member

type member struct {
	name  string
	value []byte
}

// get returns the value of a member; nil if it is absent or null.
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
	size := len("{}")
	for _, m := range o {
		size += len(m.name) + len(m.value) + len(`"":,`)
	}
	b := append(make([]byte, 0, size), '{')
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
// nest as deep as strictjson.AnyDepth.
const maxDepth = 500

// readObject reads one strict JSON object. Its error says where it is not one.
func readObject(raw []byte) (object, error) {
	if tooManyMembers(raw) {
		return nil, fmt.Errorf("there are too many members: more than %d in objects that stand in one another", maxOpenMembers)
	}
	if !strictjson.Valid(raw) {
		if fault := parser.CheckValue(raw, maxDepth); fault != nil {
			return nil, fault // the same fault, in the usual wording
		}
		return nil, errors.New("not strict JSON")
	}
	o, ok := readMembers(raw[parser.SkipSpace(raw, 0):])
	if !ok {
		return nil, errNoObject
	}
	return o, nil
}

// stringOf returns the value of a JSON string.
func stringOf(raw []byte) (string, bool) {
	if raw == nil || raw[0] != '"' {
		return "", false
	}
	s, err := strictjson.Unquote(raw)
	return string(s), err == nil
}

// quote appends a string that is valid UTF-8 as JSON.
func quote[text string | []byte](b []byte, s text) []byte { return strictjson.AppendQuote(b, s) }
