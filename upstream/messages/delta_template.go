package messages

import (
	"bytes"

	"github.com/callgate/callgate/internal/strictjson"
)

// template is what stands around the text of the last delta that was read: deltas of one
// block differ in their text alone.
type template struct {
	kind         deltaKind // noDelta: nothing was learned
	name         string
	prefix, rest []byte
	text         []byte // of the last match
}

// learn takes the form of a delta with its literal at a span of data.
func (t *template) learn(d *delta, data []byte, start, end int) {
	t.kind, t.name = d.kind, d.name
	t.prefix = append(t.prefix[:0], data[:start]...)
	t.rest = append(t.rest[:0], data[end:]...)
}

// forget is for the end of a block: the form holds its index.
func (t *template) forget() { t.kind = noDelta }

// match returns the text of a delta of the learned form, valid until the next match. If it is
// not ok, data is to be read in full.
func (t *template) match(data []byte) (_ []byte, ok bool) {
	if t.kind == noDelta || !bytes.HasPrefix(data, t.prefix) {
		return nil, false
	}
	literal := data[len(t.prefix):]
	end := strictjson.LiteralLength(literal)
	if end == 0 || !sameEnd(literal[end:], t.rest) {
		return nil, false
	}
	var err error
	t.text, err = strictjson.AppendUnquote(t.text[:0], literal[:end])
	return t.text, err == nil
}

// sameEnd reports whether two ends of an event mean the same: the provider adds spaces of
// random length behind the last brace.
func sameEnd(a, b []byte) bool {
	return bytes.Equal(a, b) || bytes.Equal(bytes.TrimRight(a, " "), bytes.TrimRight(b, " "))
}
