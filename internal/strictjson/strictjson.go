// Package strictjson reads foreign JSON that every reader must understand alike: RFC 8259
// in valid UTF-8, without duplicate names in an object, without half of a surrogate pair,
// and nested no deeper than the caller allows. Names are compared byte for byte, after
// decoding their escapes. Its errors quote no input.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Check returns nil for bytes that are one strict JSON value, whitespace around it aside. The
// outermost object or array is nested one deep.
func Check(data []byte, maxDepth int) error {
	if Deeper(data, maxDepth) {
		return ErrDepth
	}
	if Valid(data) {
		return nil
	}
	r := NewReader(data) // which knows the fault
	if _, err := r.Value(); err != nil {
		return err
	}
	return r.End()
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
	var r Reader
	r.reset(data, options...)
	if r.Kind() != '{' {
		if err := Check(data, maxDepth); err != nil {
			return nil, err
		}
		return nil, ErrNoObject
	}
	members := map[string]json.RawMessage{}
	err := r.Object(func(name []byte) error {
		kept := string(name) // before the next read
		value, err := r.Value()
		members[kept] = bytes.Clone(value)
		return err
	})
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return nil, err
	}
	return members, nil
}

// EveryString reports whether every string of a value that was checked before, names included,
// has a property. Its argument is valid during the call.
func EveryString(checked []byte, has func(text []byte) bool) bool {
	if bytes.IndexByte(checked, '"') < 0 {
		return true
	}
	var r Reader
	r.ResetChecked(checked)
	for {
		if r.Kind() == '"' {
			if text, err := r.Text(); err != nil || !has(text) {
				return false
			}
			continue
		}
		if _, err := r.decoder.ReadToken(); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
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

// Deeper reports whether brackets outside of strings nest deeper than maxDepth. It does not
// check that data is JSON.
func Deeper(data []byte, maxDepth int) bool {
	if bytes.Count(data, []byte{'{'})+bytes.Count(data, []byte{'['}) <= maxDepth {
		return false // nearly always: counting costs next to nothing
	}
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			if i = literalEnd(data, i) - 1; i < 0 {
				return false // nothing follows the string
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}
