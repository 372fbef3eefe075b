package turns

import (
	"bytes"
	"context"
	"slices"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/upstream"
)

// relay is the text of one answer of a stream, on its way through the kernel to the application.
type relay struct {
	stream   *gateway.Stream // nil: nothing came but white space, or it is judged whole
	leading  []byte          // the white space, which goes with what is sent first
	fed      int             // bytes of the text that it has taken
	sent     bool            // some text was sent
	called   bool            // a call has begun, or what refuses: no text behind it is shown
	denied   bool            // a part refuses the answer, whatever follows
	queue    []queued        // of an ordered wire
	seen     int             // deltas behind the front of the queue that were looked at, see waitsForText
	thoughts map[string]*hook.Texts
}

// holds reports whether all behind the beginning of a part waits for the verdict.
func (p *Part) holds() bool {
	return p.Kind == Call || p.Kind == Stray || p.Kind == Ask || p.Kind == Refusal
}

// refused reports whether the answer is refused, whatever follows.
func (w *relay) refused() bool { return w.denied || w.stream != nil && w.stream.Refused() }

// buffersWhole reports whether a stream is sent only once it has been judged: if that is
// configured, or if a later part decides on an earlier one.
func (x *exchange) buffersWhole() bool {
	rules := &x.Route.Rules
	return rules.StreamBuffer == upstream.Whole || x.Choice.Required || x.output != nil ||
		x.spec.Ordered && x.Admission.Hooks().AtTexts() ||
		!x.CallsAreText() && (rules.NativeProse == upstream.Drop || rules.CallFormat == upstream.AsContent)
}

// release sends what a delta releases: text as the kernel does, up to the first call, and thoughts at once.
func (x *exchange) release(ctx context.Context, d *Delta) error {
	if !d.fits() {
		return errMisread
	}
	w := &d.Answer.relay
	switch {
	case d.Answer.Index >= x.answers(): // it is refused at the end
		return nil
	case d.Is == Ping:
		x.events.Buffer = x.writer.Delta(x.events.Buffer, d, nil)
		return nil
	case d.Is == Start:
		if err := x.checkAllowed(ctx, d.Part); err != nil {
			return err
		}
		w.called = w.called || d.Part.holds()
		w.denied = w.denied || d.Part.holdsCall()
		x.quiet = x.quiet || w.called || w.denied
	case d.Is == Grown && d.Part.Kind == Text && !x.whole && !w.called:
		if d.From != d.Part.fed {
			return errMisread
		}
		d.Part.fed = len(d.Part.Text)
	}
	switch {
	case x.whole:
	case x.spec.Ordered:
		return x.releaseInOrder(ctx, d)
	case d.Is != Grown:
	case d.Part.Kind == Thought:
		x.releaseThought(d)
	case d.Part.Kind == Text && !w.called:
		return x.releaseText(ctx, d)
	}
	return nil
}

// fits reports whether a delta is of an answer, and of a part unless it may be of none.
func (d *Delta) fits() bool {
	return d.Answer != nil && (d.Part.hasKind() || d.Part == nil && (d.Is == Mark || d.Is == Ping))
}

// releaseText has the kernel read a piece of text, and sends what it releases. White space alone is no text yet.
func (x *exchange) releaseText(ctx context.Context, d *Delta) error {
	out, err := x.feed(ctx, &d.Answer.relay, d.Part.Text[d.From:])
	if len(out) > 0 {
		x.write(d, out)
	}
	return err
}

// feed has the kernel read a piece of text, and returns what it releases. White space alone is no text yet.
func (x *exchange) feed(ctx context.Context, w *relay, text []byte) ([]byte, error) {
	w.fed += len(text)
	if w.stream == nil {
		if IsBlank(text) {
			w.leading = append(w.leading, text...)
			return nil, nil
		}
		if len(w.leading) > 0 {
			text, w.leading = append(w.leading, text...), nil
		}
		stream, err := x.Admission.WithConstraints(x.Constraints()).Stream(ctx, x.Mode, !x.CallsAreText())
		if err != nil {
			return nil, err
		}
		w.stream = stream
	}
	out := w.stream.Write(text)
	if x.quiet = x.quiet || w.refused(); !w.sent && IsBlank(out) { // a text that is refused then can still be corrected
		w.leading = append(w.leading, out...)
		return nil, nil
	}
	if len(w.leading) > 0 {
		out, w.leading = append(w.leading, out...), nil
	}
	w.sent = true
	return out, nil
}

// queued is a delta that waits for the text in front of it, or is such text.
type queued struct {
	Delta
	text []byte // not sent
}

// isText reports whether it is text that the kernel releases.
func (q *queued) isText() bool { return q.Is == Grown && q.Part.Kind == Text }

// releaseInOrder sends what a delta of an ordered wire releases. All text parts are one text for the kernel: a mark of
// a call can begin in one and end in another.
func (x *exchange) releaseInOrder(ctx context.Context, d *Delta) error {
	w := &d.Answer.relay
	if w.called || w.refused() || d.Part != nil && x.hides(d.Part) {
		return nil
	}
	switch d.Is {
	case Start:
		d.Part.begun = true
	case Stop:
		d.Part.ended = true
	case Grown:
		d.Part.shown = len(d.Part.Text)
	}
	var text []byte
	if d.Is == Grown {
		if text = d.Part.Text[d.From:]; len(text) == 0 {
			return nil
		}
	}
	if d.Is != Grown || d.Part.Kind != Text {
		if len(w.queue) == 0 && (d.Is != Start || d.Part.Kind != Text) {
			x.write(d, text)
			return nil
		}
		w.wait(d, text)
		x.drain(w)
		return nil
	}
	out, err := x.feed(ctx, w, text)
	if err != nil {
		return err
	}
	if len(out) == len(text) && !slices.ContainsFunc(w.queue, func(q queued) bool { return q.isText() }) {
		x.flush(w)
		x.write(d, text)
		return nil
	}
	w.wait(d, text)
	x.send(w, len(out))
	return nil
}

// wait puts a delta, which is valid until the next one, at the end of the queue.
func (w *relay) wait(d *Delta, text []byte) {
	q := queued{*d, bytes.Clone(text)}
	q.Raw = bytes.Clone(d.Raw)
	w.queue = append(w.queue, q)
}

// send sends n bytes of the text in the queue, and what stands before and behind them.
func (x *exchange) send(w *relay, n int) {
	for n > 0 && len(w.queue) > 0 {
		front := &w.queue[0]
		if !front.isText() {
			x.pop(w)
			continue
		}
		length := min(n, len(front.text))
		if n -= length; length == len(front.text) {
			x.pop(w)
			continue
		}
		x.write(&front.Delta, front.text[:length])
		front.text = front.text[length:]
	}
	x.drain(w)
}

// drain sends what waits for no text. The beginning of a text waits for its first piece, so that a turn whose text is
// refused shows nothing of it.
func (x *exchange) drain(w *relay) {
	for len(w.queue) > 0 && !w.queue[0].isText() && !w.waitsForText() {
		x.pop(w)
	}
}

// waitsForText reports whether the front of the queue is the beginning of a text of which nothing is released, or has
// come: citations may stand before it.
func (w *relay) waitsForText() bool {
	if front := &w.queue[0]; front.Is != Start || front.Part.Kind != Text {
		return false
	}
	for w.seen+1 < len(w.queue) && w.queue[w.seen+1].Is == Mark {
		w.seen++
	}
	return w.seen+1 == len(w.queue) || w.queue[w.seen+1].isText()
}

// flush sends all that waits.
func (x *exchange) flush(w *relay) {
	for len(w.queue) > 0 {
		x.pop(w)
	}
}

func (x *exchange) pop(w *relay) {
	front := &w.queue[0]
	x.write(&front.Delta, front.text)
	w.seen = 0
	if w.queue = w.queue[1:]; len(w.queue) == 0 {
		w.queue = nil
	}
}

func (x *exchange) releaseThought(d *Delta) {
	if x.Route.Rules.Reasoning == upstream.Drop {
		return
	}
	if x.hooked {
		d.Beside = x.hookThought(&d.Answer.relay, d)
	}
	if len(d.Beside) > 0 && !d.Answer.relay.refused() {
		x.write(d, nil)
	}
}

// write writes a delta.
func (x *exchange) write(d *Delta, text []byte) {
	x.quiet = false
	x.events.Buffer = x.writer.Delta(x.events.Buffer, d, text)
}

// IsBlank reports whether a text is nothing but JSON's white space.
func IsBlank[text string | []byte](s text) bool {
	for i := range len(s) {
		if c := s[i]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}
