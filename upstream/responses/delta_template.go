package responses

import (
	"bytes"

	"github.com/callgate/callgate/internal/strictjson"
)

// template is the last delta that was read in full. Most events of a stream are the one before
// but for their number, their text and their padding. The bytes around those values say which
// values they are, so that an event with the same bytes around others has the same members. An
// event that differs anywhere else, or whose values have another form, does not match and is
// read in full.
type template struct {
	data   []byte
	values [maxValues]valueSpan // in their order
	count  int
	event  wireEvent // its kind and item are copies
}

// valueSpan is a value of an event that may be another one in the next event.
type valueSpan struct {
	start, end int
	kind       valueKind
}

type valueKind int

const (
	deltaValue valueKind = iota
	sequenceValue
	paddingValue // obfuscation, of which nothing is read (RS-48)
	maxValues    = 3
)

// note notes where a value of the event stands that differs from delta to delta.
func (e *wireEvent) note(kind valueKind, start, end int) {
	e.values[e.valueCount] = valueSpan{start, end, kind}
	e.valueCount++
}

// isDelta reports whether an event has nothing but a piece of a text, and where it belongs.
func (e *wireEvent) isDelta() bool {
	for _, other := range [...][]byte{
		e.text, e.arguments, e.input, e.diff, e.command, e.refused, e.item, e.part, e.response, e.annotation, e.failure, e.message, e.code,
	} {
		if other != nil {
			return false
		}
	}
	return len(e.delta) > 0 && e.delta[0] == '"'
}

// learn makes an event that was read in full the template.
func (t *template) learn(e *wireEvent) {
	t.count = 0
	if !e.isDelta() {
		return
	}
	t.data = append(t.data[:0], e.data...)
	t.values, t.count = e.values, e.valueCount
	kind, itemID := append(t.event.kind[:0], e.kind...), append(t.event.itemID[:0], e.itemID...)
	t.event = *e
	t.event.kind, t.event.itemID = kind, itemID
}

// match reads the data of an event that matches into e. If it does not, e is unchanged.
func (t *template) match(e *wireEvent, data []byte) bool {
	if t.count == 0 {
		return false
	}
	sequence, delta := t.event.sequence, []byte(nil)
	at, rest := 0, data
	for i := range t.count {
		value := &t.values[i]
		behind, same := bytes.CutPrefix(rest, t.data[at:value.start])
		if !same {
			return false
		}
		var length int
		if value.kind == sequenceValue {
			sequence, length = leadingNumber(behind)
		} else {
			length = strictjson.LiteralLength(behind)
		}
		if length == 0 {
			return false
		}
		if value.kind == deltaValue {
			delta = behind[:length]
		}
		at, rest = value.end, behind[length:]
	}
	if !bytes.Equal(rest, t.data[at:]) {
		return false
	}
	*e = t.event
	e.data, e.delta, e.sequence = data, delta, sequence
	return true
}

// leadingNumber reads the digits that b begins with, as JSON writes a whole number. length is 0
// where there are none, and where number would not take them.
func leadingNumber(b []byte) (n, length int) {
	const most = 12 // digits, which are fewer than the bound of number has
	for length < len(b) && '0' <= b[length] && b[length] <= '9' {
		if length == most {
			return 0, 0
		}
		n = 10*n + int(b[length]-'0')
		length++
	}
	if length > 1 && b[0] == '0' {
		return 0, 0
	}
	return n, length
}
