package messages

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/sse"
)

// writer writes one answer to the application: a message, or the stream of one, also of several turns.
type writer struct {
	requested string        // the model
	runID     func() string // for errors
	reply     *turns.Reply
	started   bool            // message_start was sent
	blocks    int             // that were sent: the next index
	open      []sent          // those that have not ended
	earlier   int             // the first of them, of turns before
	calls     map[string]bool // that went to the application, by their ids
}

// sent is a block that was sent, and has not ended.
type sent struct {
	part        *turns.Part
	index       int
	text, marks int // that were sent of it: bytes of its text, and other deltas
}

// Turn is of turns.Writer. The head of the stream is that of the first turn that shows something.
func (w *writer) Turn(r *turns.Reply) { w.reply, w.earlier = r, len(w.open) }

// begin sends message_start, once: the message without content.
func (w *writer) begin(b []byte) []byte {
	if w.started {
		return b
	}
	w.started = true
	b = append(b, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	return append(append(b, rawjson.OneLine(w.message(nil, w.reply, nil, w.reply.Usage.Raw))...), "}\n\n"...)
}

// message writes a message. Without content it has not ended.
func (w *writer) message(b []byte, r *turns.Reply, content, usage []byte) []byte {
	ended := content != nil
	if !ended {
		content = []byte("[]")
	}
	b = append(b, '{')
	for _, m := range r.Head {
		value := w.headMember(r, m)
		switch {
		case m.Name == "content":
			value = content
		case m.Name == "usage":
			value = usage
		case m.Name == "stop_reason" && ended:
			value = rawjson.Quote(stopReason(r))
		case m.Name == "stop_reason", m.Name == "stop_sequence" && !ended:
			value = []byte("null")
		case m.Name == memberVerdicts && !ended: // they are of the calls, which come later
			continue
		}
		b = appendMember(b, m.Name, value)
	}
	return append(b, '}')
}

// headMember is the value of a member of the head, without what a reader could take for a call: nobody judges it. A
// stop_sequence is the request's own text.
func (w *writer) headMember(r *turns.Reply, m rawjson.Member) []byte {
	switch {
	case m.Name == "model":
		return rawjson.Quote(turns.ModelName(r.Model, w.requested))
	case m.Name == memberVerdicts && rawjson.HoldsNoCall(m.Value):
		return keepSafeguards(m.Value, func(id string) bool { return w.calls[id] })
	case slices.Contains(madeUp, m.Name) && !rawjson.HoldsNoCall(m.Value):
		return []byte("null")
	case m.Name == "stop_sequence" && r.Answers[0].Reason == "": // of an answer in place of the model's
		return []byte("null")
	}
	return m.Value
}

// stopReason is why a message ended. A client looks for calls where one ended to have them executed.
func stopReason(r *turns.Reply) string {
	a := r.Answers[0]
	called := slices.ContainsFunc(a.Parts, func(p *turns.Part) bool { return p.Call.ID != "" })
	switch {
	case a.Reason == "" || a.Reason == reasonCalls && !called:
		return reasonDone
	case a.Reason == reasonDone && slices.ContainsFunc(a.Parts, func(p *turns.Part) bool { return p.Kind == turns.Call }):
		return reasonCalls
	}
	return a.Reason
}

// start is a block as it begins in a stream: what deltas bring is empty.
func start(p *turns.Part) []byte {
	switch {
	case p.Kind == turns.Text && p.Beside.Get("citations") != nil:
		return with(p.Raw, member{"text", []byte(`""`)}, member{"citations", []byte("[]")})
	case p.Kind == turns.Text:
		return with(p.Raw, member{"text", []byte(`""`)})
	case p.Row == &rowThinking.Row && !p.Sealed:
		return with(p.Raw, member{"thinking", []byte(`""`)})
	case p.Row == &rowThinking.Row:
		return with(p.Raw, member{"thinking", []byte(`""`)}, member{"signature", []byte(`""`)})
	case p.Kind == turns.Unknown: // whatever it has
	case p.Call.ID != "":
		return with(p.Raw, member{"input", []byte("{}")})
	case p.Kind == turns.Summary:
		return with(p.Raw, member{"content", []byte("null")})
	}
	return p.Raw
}

// brought are the deltas that bring what start leaves out.
func brought(p *turns.Part) (deltas []turns.Delta) {
	mark := func(raw []byte) { deltas = append(deltas, turns.Delta{Is: turns.Mark, Part: p, Raw: raw}) }
	if len(p.Text) > 0 {
		deltas = append(deltas, turns.Delta{Is: turns.Grown, Part: p})
	}
	switch {
	case p.Kind == turns.Text:
		if citations := p.Beside.Get("citations"); citations != nil {
			_ = part{citations, citations}.elements(func(citation part) error {
				mark(citationDelta(citation.checked))
				return nil
			})
		}
	case p.Row == &rowThinking.Row && p.Sealed:
		_ = rawjson.Each(p.Raw, func(name, value []byte) error {
			if string(name) == "signature" {
				mark(append(appendMember([]byte(`{"type":"signature_delta"`), string(name), value), '}'))
			}
			return nil
		})
	case p.Kind == turns.Unknown:
		others, _ := p.Wire.([][]byte)
		for _, raw := range others {
			mark(raw)
		}
	case p.Call.ID != "":
		if !isEmptyObject(p.Call.Arguments) {
			mark(appendTextDelta(nil, inputDelta, p.Call.Arguments))
		}
	case p.Kind == turns.Summary:
		if raw := deltaOfCompaction(p.Raw); raw != nil {
			mark(raw)
		}
	}
	return deltas
}

// appendTextDelta writes a delta of a kind that has a text.
func appendTextDelta(b []byte, kind deltaKind, text []byte) []byte {
	b = append(append(append(b, `{"type":"`...), deltaNames[kind-1]...), `","`...)
	return append(rawjson.AppendQuote(append(append(b, textOf[kind]...), `":`...), text), '}')
}

// citationDelta is the delta that brings a citation.
func citationDelta(citation []byte) []byte {
	return append(append([]byte(`{"type":"citations_delta","citation":`), citation...), '}')
}

// deltaOfCompaction is the delta with the content of a compaction; nil if it has none.
func deltaOfCompaction(block []byte) []byte {
	raw, found := []byte(`{"type":"compaction_delta"`), false
	_ = rawjson.Each(block, func(of, value []byte) error {
		name := string(of)
		if (name == "content" || name == "encrypted_content") && !rawjson.IsNull(value) {
			raw, found = appendMember(raw, name, value), true
		}
		return nil
	})
	if !found {
		return nil
	}
	return append(raw, '}')
}

// appendEvent writes an event of a block.
func appendEvent(b []byte, name string, index int) []byte {
	b = append(append(append(b, "event: "...), name...), "\ndata: {\"type\":\""...)
	return strconv.AppendInt(append(append(b, name...), `","index":`...), int64(index), 10)
}

// sentOf returns the open block of a part, or nil.
func (w *writer) sentOf(p *turns.Part) *sent {
	for i := range w.open {
		if w.open[i].part == p {
			return &w.open[i]
		}
	}
	return nil
}

func (w *writer) startBlock(b []byte, p *turns.Part, raw []byte) []byte {
	for b = w.begin(b); w.earlier > 0; w.earlier-- {
		b = w.stopBlock(b, &w.open[0])
	}
	w.open = append(w.open, sent{part: p, index: w.blocks})
	b = append(appendEvent(b, "content_block_start", w.blocks), `,"content_block":`...)
	w.blocks++
	return append(append(b, rawjson.OneLine(raw)...), "}\n\n"...)
}

func (w *writer) stopBlock(b []byte, o *sent) []byte {
	index := o.index
	w.open = slices.DeleteFunc(w.open, func(o sent) bool { return o.index == index })
	return append(appendEvent(b, "content_block_stop", index), "}\n\n"...)
}

// Delta is of turns.Writer.
func (w *writer) Delta(b []byte, d *turns.Delta, text []byte) []byte {
	switch {
	case d.Is == turns.Ping && w.started:
		return append(b, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
	case d.Is == turns.Ping: // some clients expect nothing but the start of the message
		return b
	case d.Is == turns.Start:
		return w.startBlock(b, d.Part, d.Raw)
	case d.Is == turns.Stop:
		return w.stopBlock(b, w.sentOf(d.Part))
	case d.Part == nil:
		return sse.AppendEvent(w.begin(b), d.Name, rawjson.OneLine(d.Raw))
	}
	return w.sentOf(d.Part).delta(b, d, text)
}

// delta writes a delta of a block.
func (o *sent) delta(b []byte, d *turns.Delta, text []byte) []byte {
	b = append(appendEvent(b, "content_block_delta", o.index), `,"delta":`...)
	if d.Is == turns.Mark {
		o.marks++
		return append(append(b, rawjson.OneLine(d.Raw)...), "}\n\n"...)
	}
	o.text += len(text)
	kind := textDelta
	if d.Part.Kind == turns.Thought {
		kind = thinkingDelta
	}
	return append(appendTextDelta(b, kind, text), "}\n\n"...)
}

// shownRaw is a part that passed, as it is written whole.
func (w *writer) shownRaw(p *turns.Shown) []byte {
	switch {
	case p.Raw == nil: // a text in place of the model's
		return append(rawjson.AppendQuote([]byte(`{"type":"text","text":`), p.Text), '}')
	case p.Kind != turns.Call:
	default:
		if w.calls == nil {
			w.calls = map[string]bool{}
		}
		w.calls[p.Call.ID] = true
		if !bytes.Equal(p.Arguments, p.Call.Arguments) {
			return with(p.Raw, member{"input", p.Arguments})
		}
	}
	return p.Raw
}

// Rest is of turns.Writer.
func (w *writer) Rest(b []byte, _ *turns.Answer, shown []turns.Shown, _, _ bool) []byte {
	for _, o := range slices.Clone(w.open) {
		if !slices.ContainsFunc(shown, func(s turns.Shown) bool { return s.Part == o.part }) {
			b = w.stopBlock(b, &o)
		}
	}
	w.earlier = 0
	for i := range shown {
		p := *shown[i].Part
		p.Raw = w.shownRaw(&shown[i])
		switch p.Kind {
		case turns.Text:
			p.Text = shown[i].Text
		case turns.Call:
			p.Call.Arguments = shown[i].Arguments
		}
		o := w.sentOf(shown[i].Part)
		if o == nil {
			b = w.startBlock(b, shown[i].Part, start(&p))
			o = w.sentOf(shown[i].Part)
		} else if p.Kind == turns.Thought {
			p.Text = p.Text[o.text:]
		}
		sentMarks := o.marks
		for _, d := range brought(&p) {
			if sentMarks > 0 && d.Is == turns.Mark {
				sentMarks--
				continue
			}
			b = o.delta(b, &d, p.Text)
		}
		b = w.stopBlock(b, o)
	}
	return b
}

// Whole is of turns.Writer.
func (w *writer) Whole(r *turns.Reply, shown [][]turns.Shown, usage []byte) []byte {
	content := []byte{'['}
	for i := range shown[0] {
		if i > 0 {
			content = append(content, ',')
		}
		content = append(content, w.shownRaw(&shown[0][i])...)
	}
	return w.message(nil, r, append(content, ']'), usage)
}

// ofDelta are the members of a message that a message_delta brings, beside its stop_reason.
var ofDelta = []string{"stop_sequence", "stop_details", "container", memberVerdicts}

// Close is of turns.Writer: one message_delta, and message_stop.
func (w *writer) Close(b, usage []byte) []byte {
	b = append(w.begin(b), "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"...)
	b = appendMember(b, "stop_reason", rawjson.AppendQuote(nil, stopReason(w.reply)))
	for _, name := range ofDelta {
		value := w.reply.Head.Get(name)
		if value != nil {
			value = w.headMember(w.reply, rawjson.Field(name, value))
		} else if name == "stop_sequence" {
			value = []byte("null")
		}
		if value != nil {
			b = appendMember(b, name, rawjson.OneLine(value))
		}
	}
	b = append(append(b, `},"usage":`...), rawjson.OneLine(usage)...)
	if value := w.reply.Head.Get("context_management"); value != nil {
		b = append(append(b, `,"context_management":`...),
			rawjson.OneLine(w.headMember(w.reply, rawjson.Field("context_management", value)))...)
	}
	return append(b, "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
}

// Fail is of turns.Writer: an error event (AM-47, AM-64). No block is closed before it.
func (w *writer) Fail(b []byte, f *turns.Failure) []byte {
	return sse.AppendEvent(b, "error", errorBody(f, w.runID()))
}

// Alive is of turns.Writer: a ping, or a comment before the message has begun.
func (w *writer) Alive(b []byte, note string) []byte {
	if !w.started {
		return sse.AppendComment(b, note)
	}
	return w.Delta(b, &turns.Delta{Is: turns.Ping}, nil)
}
