package turns

import (
	"context"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/upstream"
)

// relay is the text of one answer of a stream, on its way through the kernel to the application.
type relay struct {
	stream   *gateway.Stream // nil: nothing came but white space, or it is judged whole
	leading  []byte          // the white space
	fed      int             // bytes of the text that it has taken
	sent     bool            // some text was sent
	called   bool            // a call has begun, or what refuses: no text behind it is shown
	thoughts map[string]*hook.Texts
}

// refused reports whether the text is refused, whatever follows.
func (w *relay) refused() bool { return w.stream != nil && w.stream.Refused() }

// buffersWhole reports whether a stream is sent only once it has been judged: if that is
// configured, or if a later part decides on an earlier one.
func (x *exchange) buffersWhole() bool {
	rules := &x.Route.Rules
	return rules.StreamBuffer == upstream.Whole || x.Choice.Required || !x.CallsAreText() && (rules.NativeProse == upstream.Drop || rules.CallFormat == upstream.AsContent)
}

// release sends what a delta releases: text as the kernel does, up to the first call, and thoughts at once.
func (x *exchange) release(ctx context.Context, d *Delta) error {
	w := &d.Answer.relay
	switch {
	case d.Answer.Index >= x.answers(): // it is refused at the end
	case d.Is == Start:
		w.called, x.holds = true, true
	case x.whole:
	case d.Part.Kind == Thought:
		x.releaseThought(d)
	case d.Part.Kind == Text && !w.called:
		return x.releaseText(ctx, d)
	}
	return nil
}

// releaseText has the kernel read a piece of text, and sends what it releases. White space alone is no text yet.
func (x *exchange) releaseText(ctx context.Context, d *Delta) error {
	w, text := &d.Answer.relay, d.Part.Text[d.From:]
	w.fed += len(text)
	if w.stream == nil {
		if w.leading = append(w.leading, text...); IsBlank(text) {
			return nil
		}
		stream, err := x.Admission.WithConstraints(x.Constraints()).Stream(ctx, x.Mode, !x.CallsAreText())
		if err != nil {
			return err
		}
		w.stream, text, w.leading = stream, w.leading, nil
	}
	if out := w.stream.Write(text); len(out) > 0 {
		w.sent = true
		x.write(d, out)
	}
	x.holds = x.holds || w.refused()
	return nil
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
	x.shows = true
	x.events.Buffer = x.writer.Delta(x.events.Buffer, d, text)
}

// IsBlank reports whether a text is nothing but JSON's white space.
func IsBlank[text string | []byte](s text) bool { return strings.Trim(string(s), " \t\r\n") == "" }
