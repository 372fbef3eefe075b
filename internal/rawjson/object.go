package rawjson

import (
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/parser"
)

// Object is a JSON object as it was written: its members in their order, each
// value as it stood.
type Object []Member

// Member is one member of an Object.
type Member struct {
	Name  string
	Value []byte
}

// Field makes a member.
func Field(name string, value []byte) Member { return Member{name, value} }

// Get returns the value of a member; nil if it is absent or null.
func (o Object) Get(name string) []byte {
	for _, m := range o {
		if m.Name == name && m.Value[0] != 'n' {
			return m.Value
		}
	}
	return nil
}

// Set returns the object with another value of a member, which comes last where
// it was not there.
func (o Object) Set(name string, value []byte) Object { return o.With(Member{name, value}) }

// With is Set for several members.
func (o Object) With(members ...Member) Object {
	out := append(make(Object, 0, len(o)+len(members)), o...)
	for _, m := range members {
		if i := slices.IndexFunc(out, func(x Member) bool { return x.Name == m.Name }); i >= 0 {
			out[i].Value = m.Value
		} else {
			out = append(out, m)
		}
	}
	return out
}

// Without returns the object without some members.
func (o Object) Without(names ...string) Object {
	isOut := func(m Member) bool { return slices.Contains(names, m.Name) }
	if !slices.ContainsFunc(o, isOut) {
		return o[:len(o):len(o)]
	}
	return slices.DeleteFunc(slices.Clone(o), isOut)
}

// Bytes writes the object.
func (o Object) Bytes() []byte {
	size := len("{}")
	for _, m := range o {
		size += len(m.Name) + len(m.Value) + len(`"":,`)
	}
	b := append(make([]byte, 0, size), '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(AppendQuote(b, m.Name), ':'), m.Value...)
	}
	return append(b, '}')
}

// MaxDepth is how deep the reader goes that names a fault. A request itself may
// nest as deep as AnyDepth.
const MaxDepth = 500

// Read reads one strict JSON object. Its error says where it is not one, and is parser.ErrNoObject for
// another value.
func Read(raw []byte) (Object, error) {
	if TooManyMembers(raw) {
		return nil, fmt.Errorf("there are too many members: more than %d in objects that stand in one another", MaxOpenMembers)
	}
	if !Valid(raw) {
		if fault := parser.CheckValue(raw, MaxDepth); fault != nil {
			return nil, fault // the same fault, in the usual wording
		}
		return nil, errors.New("not strict JSON")
	}
	o, ok := Members(raw)
	if !ok {
		return nil, parser.ErrNoObject
	}
	return o, nil
}

// Readable reports whether a text is one strict JSON value within the bounds of Read, whitespace
// around it aside.
func Readable(text []byte) bool {
	return !TooManyMembers(text) && parser.CheckValue(text, MaxDepth) == nil
}
