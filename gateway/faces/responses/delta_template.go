package responses

import "github.com/callgate/callgate/internal/sse"

// template is the last delta that was read in full. Most events of a stream are the one before
// but for their number, their text and their padding.
type template struct {
	form  sse.Template
	event wireEvent // its kind and item are copies
}

// varyingValue is a value of an event that may be another one in the next event.
type varyingValue struct {
	sse.Place
	kind valueKind
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
	e.values[e.valueCount] = varyingValue{sse.Place{Start: start, End: end, Number: kind == sequenceValue}, kind}
	e.valueCount++
}

// isDelta reports whether an event has nothing but a piece of a text, and where it belongs.
func (e *wireEvent) isDelta() bool { return len(e.delta) > 0 && e.delta[0] == '"' && !e.hasMore() }

// hasMore reports whether an event has more than a piece of a text, and where it belongs.
func (e *wireEvent) hasMore() bool {
	for _, other := range [...][]byte{
		e.text, e.arguments, e.input, e.diff, e.command, e.refused, e.item, e.part, e.response, e.annotation, e.failure, e.message, e.code,
	} {
		if other != nil {
			return true
		}
	}
	return false
}

// learn makes an event that was read in full the template.
func (t *template) learn(e *wireEvent) {
	t.form.Forget()
	if !e.isDelta() {
		return
	}
	var places [maxValues]sse.Place
	for i := range e.valueCount {
		places[i] = e.values[i].Place
	}
	t.form.Learn(e.data, places[:e.valueCount])
	kind, itemID := append(t.event.kind[:0], e.kind...), append(t.event.itemID[:0], e.itemID...)
	t.event = *e
	t.event.kind, t.event.itemID = kind, itemID
}

// match reads the data of an event that matches into e. If it does not, e is unchanged.
func (t *template) match(e *wireEvent, data []byte) bool {
	if !t.form.Match(data) {
		return false
	}
	*e = t.event
	e.data = data
	for i := range e.valueCount {
		switch e.values[i].kind {
		case deltaValue:
			e.delta = t.form.Values[i]
		case sequenceValue:
			e.sequence = sequenceOf(t.form.Values[i])
		}
	}
	return true
}
