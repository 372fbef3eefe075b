package invented

import (
	"errors"
	"fmt"
	"strings"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/upstream"
)

var (
	rowText    = &turns.Row{Type: "text", Kind: turns.Text}
	rowThought = &turns.Row{Type: "thought", Kind: turns.Thought}
	rowCall    = &turns.Row{Type: "call", Kind: turns.Call}
)

// ends are the words for why a reply ended.
var ends = map[string]turns.End{"done": turns.Done, "calls": turns.Called, "length": turns.Cut, "filter": turns.Cut}

// reader reads one reply: a whole one is one event with all.
type reader struct {
	reply  turns.Reply
	answer turns.Answer
	open   *turns.Part // the last one, until it stops
	begun  bool
	size   int
	deltas []turns.Delta
}

func newReader() *reader {
	r := &reader{}
	r.reply.Answers = []*turns.Answer{&r.answer}
	return r
}

func (r *reader) Reply() *turns.Reply { return &r.reply }

// State is of turns.Reader.
func (r *reader) State() (held, size int, at turns.Progress) {
	if r.answer.End != turns.Open {
		return r.size, r.size, turns.Ended
	}
	return r.size, r.size, turns.Coming
}

func (*reader) AddsNothing(_, _ []byte) bool { return false }

// isLast reports whether an event is the last one.
func isLast(data []byte) bool {
	o, _ := rawjson.Read(data)
	return o.Get("end") != nil
}

// Whole is of turns.Reader.
func (r *reader) Whole(body []byte) error {
	if _, err := r.Event(nil, body); err != nil {
		return err
	}
	return r.End()
}

// End is of turns.Reader.
func (r *reader) End() error {
	if r.answer.End == turns.Open {
		return fmt.Errorf("%w before its end", turns.ErrIncomplete)
	}
	return nil
}

var errForm = errors.New("an event that is not of this API")

// Event is of turns.Reader.
func (r *reader) Event(_, data []byte) ([]turns.Delta, error) {
	r.deltas = r.deltas[:0]
	r.size += len(data)
	o, err := rawjson.Read(data)
	if err != nil {
		return nil, errForm
	}
	for _, m := range o {
		if err := r.member(m, data); err != nil {
			return nil, err
		}
	}
	if !r.begun || r.open != nil && r.answer.End == turns.Done || r.open != nil && r.answer.End == turns.Called {
		return nil, errForm
	}
	return r.deltas, nil
}

func (r *reader) member(m rawjson.Member, data []byte) error {
	text, ok := rawjson.String(m.Value)
	switch m.Name {
	case "error":
		return &turns.ProviderError{Failure: upstream.ReadFailure(data)}
	case "id":
		r.begun, r.reply.ID = true, text
		ok = ok && isWord(text)
	case "model":
		r.reply.Model = text
	case "parts":
		list, isList := rawjson.Elements(m.Value)
		if ok = isList; ok {
			for _, raw := range list {
				ok = ok && r.begin(raw)
				r.stop()
			}
		}
	case "begin":
		ok = r.begin(m.Value)
	case "more":
		ok = ok && r.open != nil
		if ok {
			r.grow(text)
		}
	case "stop":
		ok = r.open != nil && string(m.Value) == "true"
		r.stop()
	case "end":
		r.answer.Reason, r.answer.End, r.answer.Partial = text, ends[text], ends[text] == turns.Cut
		ok = r.answer.End != turns.Open
	case "usage":
		in, out := turns.CountOf(m.Value, "in"), turns.CountOf(m.Value, "out")
		r.reply.Usage = turns.Taken{Tokens: turns.SaturatingAdd(in, out), Spent: budget.Usage{Input: in, Output: out},
			Raw: fmt.Appendf(nil, `{"in":%d,"out":%d}`, in, out)}
		ok = true
	default:
		ok = false
	}
	if !ok {
		return errForm
	}
	return nil
}

// begin begins a part, which in a whole reply has its text.
func (r *reader) begin(raw []byte) bool {
	o, _ := rawjson.Members(raw)
	p, texts := &turns.Part{}, "text"
	switch {
	case r.open != nil, len(o) == 0:
		return false
	case o.Get("call") != nil:
		p.Row, texts = rowCall, "input"
		p.Call.Name, _ = rawjson.String(o.Get("call"))
		p.Call.ID, _ = rawjson.String(o.Get("ref"))
	case o.Get("thought") != nil:
		p.Row, texts = rowThought, "thought"
	default:
		p.Row = rowText
	}
	text, ok := rawjson.String(o.Get(texts))
	if !ok || p.Row == rowCall && len(o) != 3 || p.Row != rowCall && len(o) != 1 {
		return false
	}
	r.answer.Parts, r.open = append(r.answer.Parts, p), p
	r.deltas = append(r.deltas, turns.Delta{Is: turns.Start, Answer: &r.answer, Part: p})
	r.grow(text)
	return true
}

func (r *reader) grow(text string) {
	p := r.open
	if p.Kind == turns.Call {
		p.Call.Arguments = append(p.Call.Arguments, text...)
		return
	}
	from := len(p.Text)
	p.Text = append(p.Text, text...)
	r.deltas = append(r.deltas, turns.Delta{Is: turns.Grown, Answer: &r.answer, Part: p, From: from})
}

func (r *reader) stop() {
	if r.open != nil {
		r.deltas = append(r.deltas, turns.Delta{Is: turns.Stop, Answer: &r.answer, Part: r.open})
		r.open = nil
	}
}

// isWord reports whether a text is one word: nobody judges an id.
func isWord(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// writer writes one answer.
type writer struct {
	requested string // the model
	reply     *turns.Reply
	begun     bool // the head of a stream was sent
	open      bool // a part has begun
	called    bool // a call was shown
}

func (w *writer) Turn(r *turns.Reply) { w.reply = r }

// head are the members that a reply begins with.
func (w *writer) head(r *turns.Reply) []byte {
	model := r.Model
	if !rawjson.IsProse([]byte(model)) {
		model = w.requested
	}
	return fmt.Appendf(nil, `"id":%s,"model":%s`, rawjson.Quote(r.ID), rawjson.Quote(model))
}

// end are the members that it ends with.
func (w *writer) end(r *turns.Reply, usage []byte) []byte {
	word := r.Answers[0].Reason
	switch {
	case w.called:
		word = "calls"
	case word == "" || word == "calls":
		word = "done"
	}
	b := append([]byte(`"end":`), rawjson.Quote(word)...)
	if usage != nil {
		b = append(append(b, `,"usage":`...), usage...)
	}
	return b
}

func (w *writer) event(b []byte, format string, values ...any) []byte {
	if !w.begun {
		w.begun = true
		b = w.event(b, "%s", w.head(w.reply))
	}
	return sse.AppendEvent(b, "", fmt.Appendf(nil, "{"+format+"}", values...))
}

// part is a part with a text.
func part(p *turns.Part, text []byte) []byte {
	if p.Kind == turns.Call {
		return callOf(p, text)
	}
	return fmt.Appendf(nil, `{%s:%s}`, rawjson.Quote(p.Type), rawjson.Quote(text))
}

func callOf(p *turns.Part, arguments []byte) []byte {
	return fmt.Appendf(nil, `{"call":%s,"ref":%s,"input":%s}`, rawjson.Quote(p.Call.Name), rawjson.Quote(p.Call.ID),
		rawjson.Quote(arguments))
}

// textOf is what is shown of a part.
func textOf(s *turns.Shown) []byte {
	switch s.Kind {
	case turns.Call:
		return s.Arguments
	case turns.Thought:
		return s.Part.Text
	}
	return s.Text
}

// Delta is of turns.Writer.
func (w *writer) Delta(b []byte, d *turns.Delta, text []byte) []byte {
	switch d.Is {
	case turns.Start:
		w.open = true
		return w.event(b, `"begin":%s`, part(d.Part, nil))
	case turns.Grown:
		return w.event(b, `"more":%s`, rawjson.Quote(text))
	case turns.Stop:
		w.open = false
		return w.event(b, `"stop":true`)
	}
	return b
}

// Rest is of turns.Writer.
func (w *writer) Rest(b []byte, _ *turns.Answer, shown []turns.Shown, _, _ bool) []byte {
	for i := range shown {
		s := &shown[i]
		w.called = w.called || s.Kind == turns.Call
		if w.open && !s.Begun {
			b = w.event(b, `"stop":true`)
		}
		if w.open = true; !s.Begun {
			b = w.event(b, `"begin":%s`, part(s.Part, nil))
		}
		if text := textOf(s); len(text) > 0 {
			b = w.event(b, `"more":%s`, rawjson.Quote(text))
		}
		b = w.event(b, `"stop":true`)
		w.open = false
	}
	return b
}

// Close is of turns.Writer.
func (w *writer) Close(b, usage []byte) []byte {
	if w.open {
		b = w.event(b, `"stop":true`)
	}
	return w.event(b, "%s", w.end(w.reply, usage))
}

// Whole is of turns.Writer.
func (w *writer) Whole(r *turns.Reply, shown [][]turns.Shown, usage []byte) []byte {
	var parts []byte
	for i := range shown[0] {
		s := &shown[0][i]
		w.called = w.called || s.Kind == turns.Call
		parts = append(append(parts, ','), part(s.Part, textOf(s))...)
	}
	return fmt.Appendf(nil, `{%s,"parts":%s,%s}`, w.head(r), listOf(parts), w.end(r, usage))
}

// Fail is of turns.Writer.
func (w *writer) Fail(b []byte, f *turns.Failure) []byte {
	return sse.AppendEvent(b, "", wire{}.Error(f, ""))
}

func (*writer) Alive(b []byte, note string) []byte { return sse.AppendComment(b, note) }
