package rawjson

import (
	"bytes"

	"github.com/callgate/callgate/parser"
)

// HoldsNoCall reports whether no reader can find a call in a JSON value that was read
// strictly already: neither in the value as it stands, nor in any string of it, names
// included. It is judged like text beside native calls.
func HoldsNoCall(value []byte) bool {
	if !bytes.ContainsAny(value, marks+`\`) {
		return true // so is every string in it
	}
	return IsProse(value) && EveryString(value, IsProse)
}

// WithoutCalls is what of a JSON value no reader can find a call in: the value itself, of a list the elements that are such;
// nil: nothing.
func WithoutCalls(value []byte) []byte {
	list, isList := Elements(value)
	switch {
	case HoldsNoCall(value):
		return value
	case !isList:
		return nil
	}
	var kept [][]byte
	for _, element := range list {
		if HoldsNoCall(element) {
			kept = append(kept, element)
		}
	}
	if kept == nil {
		return nil
	}
	return append(append([]byte{'['}, bytes.Join(kept, []byte{','})...), ']')
}

// marks are the bytes that marks, and members of objects, begin with.
const marks = "<[`{,"

// IsProse reports whether a text passes as text beside native calls.
func IsProse(text []byte) bool {
	if !bytes.ContainsAny(text, marks) {
		return true
	}
	return parser.Parse(text, false, parser.Options{TextOnly: true, MaxBytes: len(text)}).Kind == parser.Text
}
