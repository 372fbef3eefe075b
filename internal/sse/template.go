package sse

import (
	"bytes"

	"github.com/callgate/callgate/internal/rawjson"
)

// Template is the form of a JSON document that was read in full: most events of a stream are the one
// before but for a few strings and numbers. The bytes around those say which values they are, so that a document
// with the same bytes around others has the same members. A document that differs anywhere else, or has no
// strict literal at a place of one, does not match and is to be read in full. Spaces at the end tell nothing.
// The zero value matches nothing.
type Template struct {
	// Values are the literals that the last match found at the places, in their order.
	Values [MaxPlaces][]byte

	document []byte
	places   [MaxPlaces]Place
	count    int // of places; 0: nothing was learned
}

// MaxPlaces is how many values of a document may differ.
const MaxPlaces = 8

// Place is where a string literal stands, or the digits of a whole number.
type Place struct {
	Start, End int
	Number     bool
}

// Learn takes the form of a document, whose values at the places may differ. They stand in the order of
// the document; a document with more than MaxPlaces is not learned.
func (t *Template) Learn(document []byte, places []Place) {
	t.count = 0
	if len(places) > MaxPlaces {
		return
	}
	t.document = append(t.document[:0], bytes.TrimRight(document, " ")...)
	t.count = copy(t.places[:], places)
}

// Forget is for the end of what the documents say alike.
func (t *Template) Forget() { t.count = 0 }

// Match reports whether a document has the form that was learned. The values are parts of the document.
func (t *Template) Match(document []byte) bool {
	if t.count == 0 {
		return false
	}
	at, rest := 0, document
	for i := range t.count {
		place := &t.places[i]
		behind, same := bytes.CutPrefix(rest, t.document[at:place.Start])
		if !same {
			return false
		}
		var length int
		if place.Number {
			length = numberLength(behind)
		} else {
			length = rawjson.LiteralLength(behind)
		}
		if length == 0 {
			return false
		}
		t.Values[i], at, rest = behind[:length:length], place.End, behind[length:]
	}
	return bytes.Equal(bytes.TrimRight(rest, " "), t.document[at:])
}

// numberLength is how many digits b begins with, as JSON writes a whole number; 0 where there are none, or more
// than every reader takes.
func numberLength(b []byte) (length int) {
	const most = 12
	for length < len(b) && '0' <= b[length] && b[length] <= '9' {
		if length++; length > most || length > 1 && b[0] == '0' {
			return 0
		}
	}
	return length
}
