package rawjson

import (
	"bytes"

	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/parser"
)

// HoldsNoCall reports whether no reader can find a call in a JSON value that was read
// strictly already: neither in the value as it stands, nor in any string of it, names
// included. It is judged like text beside native calls.
func HoldsNoCall(value []byte) bool {
	return IsProse(value) && strictjson.EveryString(value, IsProse)
}

// IsProse reports whether a text passes as text beside native calls.
func IsProse(text []byte) bool {
	// Marks, and members of objects, begin with one of these.
	if !bytes.ContainsAny(text, "<[`{,") {
		return true
	}
	return parser.Parse(text, false, parser.Options{TextOnly: true, MaxBytes: len(text)}).Kind == parser.Text
}
