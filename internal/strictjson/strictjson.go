// Package strictjson reads JSON that others wrote, where two readers must not find two
// things in it: RFC 8259 in valid UTF-8, without a name that stands twice in one object,
// without half of a surrogate pair, and nested no deeper than the caller says. Names are
// compared byte for byte, after their escapes. Its errors quote nothing of what was read.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// The errors of this package.
var (
	ErrSyntax    = errors.New("not one strict JSON value")
	ErrDuplicate = errors.New("a name stands twice in one JSON object")
	ErrDepth     = errors.New("JSON that is nested too deeply")
	ErrNoObject  = errors.New("found no object")
)

// AnyDepth is for JSON that was judged before: it is deeper than any of it nests.
const AnyDepth = 10_000

// Check returns nil for bytes that are one strict JSON value, whitespace around it aside. The
// outermost object or array is nested one deep.
func Check(data []byte, maxDepth int) error {
	if Deeper(data, maxDepth) {
		return ErrDepth
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(data)) // which it reads in place
	if _, err := d.ReadValue(); err != nil {
		return kindOf(err)
	}
	return atEnd(d)
}

// Object checks bytes as Check does, and returns the members of the object that they are,
// with the bytes of their values.
func Object(data []byte, maxDepth int) (map[string]json.RawMessage, error) {
	return object(data, maxDepth)
}

// ObjectAllowingLoneSurrogates is Object for texts that users may have written and a program
// has cut: an escape that is half of a surrogate pair is accepted. In a name it reads as
// U+FFFD, so that two such names are one.
func ObjectAllowingLoneSurrogates(data []byte, maxDepth int) (map[string]json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, ErrSyntax
	}
	return object(data, maxDepth, jsontext.AllowInvalidUTF8(true))
}

func object(data []byte, maxDepth int, options ...jsontext.Options) (map[string]json.RawMessage, error) {
	if Deeper(data, maxDepth) {
		return nil, ErrDepth
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(data), options...) // which it reads in place
	if d.PeekKind() != '{' {
		if err := Check(data, maxDepth); err != nil {
			return nil, err
		}
		return nil, ErrNoObject
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, kindOf(err)
	}
	members := map[string]json.RawMessage{}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, kindOf(err)
		}
		name := token.String() // before the next read
		value, err := d.ReadValue()
		if err != nil {
			return nil, kindOf(err)
		}
		members[name] = bytes.Clone(value)
	}
	if _, err := d.ReadToken(); err != nil { // the closing brace
		return nil, kindOf(err)
	}
	return members, atEnd(d)
}

// Members takes apart an object that was checked before; ok is false for any other value.
func Members(checked json.RawMessage) (members map[string]json.RawMessage, ok bool) {
	if !begins(checked, '{') {
		return nil, false
	}
	return members, json.Unmarshal(checked, &members) == nil
}

// Elements takes apart an array that was checked before; ok is false for any other value.
func Elements(checked json.RawMessage) (elements []json.RawMessage, ok bool) {
	if !begins(checked, '[') {
		return nil, false
	}
	return elements, json.Unmarshal(checked, &elements) == nil
}

func begins(value []byte, with byte) bool {
	value = bytes.TrimLeft(value, " \t\r\n")
	return len(value) > 0 && value[0] == with
}

func kindOf(err error) error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return ErrDuplicate
	}
	return ErrSyntax
}

func atEnd(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return ErrSyntax
	}
	return nil
}

// Deeper reports whether brackets outside of strings nest deeper than maxDepth. It does not
// check that data is JSON.
func Deeper(data []byte, maxDepth int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
