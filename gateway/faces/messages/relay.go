package messages

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	wire "github.com/callgate/callgate/upstream/messages"
)

// relay is a streamed reply on its way through the kernel to the application. All text blocks are
// one text for the kernel: a mark of a call can begin in one and end in another.
type relay struct {
	run     *run
	stream  *gateway.Stream // nil: nothing came but white space, or it is judged whole
	leading []byte          // the white space
	queue   []wire.Event    // what waits for the text in front of it, or is that text
	whole   bool            // nothing is shown before the verdict
	sent    bool            // some text was shown
	denied  bool            // a summary is refused
	seen    int             // events behind the front of the queue that were looked at, see waitsForText
}

// buffersWhole reports whether a stream is sent only once it has been judged: if that is
// configured, if a later part decides on an earlier one, or if hooks are to see it.
func (r *run) buffersWhole() bool {
	return r.Route.Rules.StreamBuffer == upstream.Whole || r.Choice.Required || r.Admission.Hooks().AtTexts()
}

// requestStream requests a stream, shows what is released of it, and judges the whole.
func (r *run) requestStream(modelCtx, ctx context.Context) (*turn, error) {
	modelCtx, cancel := context.WithCancel(modelCtx)
	defer cancel()
	w := &relay{run: r, whole: r.buffersWhole()}
	reply, err := r.readStream(modelCtx, ctx, w)
	if err == nil && w.whole {
		for i := range reply.Blocks {
			if err = r.checkBlock(&reply.Blocks[i]); err != nil {
				break
			}
		}
	}
	if err != nil {
		w.abandon(ctx)
		return nil, err
	}
	t := newTurn(reply)
	t.relay, t.sent = w, w.sent
	r.hookBlocks(ctx, t)
	if w.stream != nil && r.fault(t) == nil && t.cutOff() == nil {
		w.judgeRest(t)
		t.decision = w.stream.Close(ctx, t.cut(), r.callInputs(t)...)
	} else {
		r.judge(ctx, t) // nothing of it is a decision yet
	}
	return t, nil
}

// judgeRest has the kernel read the text of blocks behind the first call, which was not shown.
func (w *relay) judgeRest(t *turn) {
	for i := t.reply.Shown; i < len(t.reply.Blocks); i++ {
		if b := &t.reply.Blocks[i]; b.Kind == wire.Text {
			w.stream.Write(bytes.Clone(b.Text))
		}
	}
}

// abandon records the text that was sent of a reply that broke off.
func (w *relay) abandon(ctx context.Context) {
	if w.stream != nil {
		w.stream.Close(context.WithoutCancel(ctx), true).Release()
	}
}

// readStream reads a stream to its end.
func (r *run) readStream(modelCtx, ctx context.Context, w *relay) (*wire.Reply, error) {
	events, err := r.openStream(modelCtx)
	if err != nil {
		return nil, err
	}
	defer events.Close()
	r.stream.setHead(events.Header)
	r.mentionsKey = events.MentionsKey
	reserved := r.Client().Hold()
	defer reserved.Release()
	s := wire.NewStream(r.readerOptions())
	for !s.Stopped() {
		next := events.Next
		if s.Complete() {
			next = events.NextIfAny // not each provider sends message_stop
		}
		name, data, err := r.next(events, next, s.Holding() || w.whole || w.refused() || !r.stream.started)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		added, err := s.Add(name, data)
		if err != nil {
			return nil, r.unreadable(err)
		}
		if err = reserved.Set(s.Size()); err != nil {
			return nil, err
		}
		for i := range added {
			if err := w.show(ctx, s, &added[i]); err != nil {
				return nil, err
			}
		}
		r.stream.pace(events.Ready())
	}
	if err := events.End(wire.AddsNothing); err != nil {
		return nil, err
	}
	reply, err := s.End()
	if err != nil {
		return nil, r.unreadable(err)
	}
	for i := reply.Shown; i < len(reply.Blocks); i++ {
		if err := r.checkBlock(&reply.Blocks[i]); err != nil {
			return nil, err
		}
	}
	return reply, nil
}

// waitingForModel is what a stream waits for.
const waitingForModel = "waiting for the model"

// openStream requests a stream. Where nothing was sent for long, signs of life are.
func (r *run) openStream(ctx context.Context) (*upstream.EventStream, error) {
	if r.Client() == nil {
		return nil, refusal.New(refusal.UpstreamUnavailable, "There is no way to ask the model.")
	}
	var events *upstream.EventStream
	err := r.Wait(waitingForModel, func() error {
		var err error
		events, err = r.Client().Open(ctx, r.Route, r.ask(upstream.Messages))
		return err
	})
	return events, err
}

// next reads an event. The provider's own events keep the application's stream alive; where those
// are held, or the run has several turns, Callgate sends signs of life of its own (AM-08).
func (r *run) next(events *upstream.EventStream, next func() (name, data []byte, err error), holding bool) ([]byte, []byte, error) {
	if events.Ready() || !holding && r.Mode != gateway.ModeCall {
		return next()
	}
	var name, data []byte
	err := r.Wait(waitingForModel, func() error {
		var err error
		name, data, err = next()
		return err
	})
	return name, data, err
}

// show takes an event that may be shown as far as the wire goes.
func (w *relay) show(ctx context.Context, s *wire.Stream, e *wire.Event) error {
	switch e.Kind {
	case wire.Ping:
		w.run.stream.ping()
		return nil
	case wire.MessageStart:
		w.run.screen(s.Head())
		w.run.stream.setMessage(s.Head())
		return nil
	case wire.BlockStart:
		if err := w.run.checkBlockStart(e); err != nil {
			return err
		}
		w.denied = w.denied || e.Block == wire.Compaction && refuseCompaction(&s.Head().Blocks[e.Index]) != nil
	}
	if w.whole || w.refused() || !w.run.shows(e.Block) {
		return nil
	}
	if e.Kind != wire.TextDelta {
		w.queue = append(w.queue, copied(e))
		w.drain()
		return nil
	}
	if len(e.Text) == 0 {
		return nil
	}
	out, err := w.write(ctx, e.Text)
	if err != nil {
		return err
	}
	if len(out) == len(e.Text) && !w.waits() {
		w.flush()
		w.run.stream.emit(e)
	} else {
		w.queue = append(w.queue, copied(e))
		w.release(len(out))
	}
	w.sent = w.sent || len(out) > 0
	return nil
}

// checkBlockStart checks a block that begins, as checkBlock checks a whole one.
func (r *run) checkBlockStart(e *wire.Event) error {
	name, server := e.Name, ""
	if e.Call != nil {
		server = e.Call.Server
		if e.Name == "server_tool_use" {
			name = e.Call.Name
		}
	}
	return r.checkHosted(e.Block, e.Name, name, server)
}

// refused reports whether the reply is refused, whatever follows.
func (w *relay) refused() bool { return w.denied || w.stream != nil && w.stream.Refused() }

// write has the kernel read a piece of text, and returns the text that is released. White space
// alone is no text yet.
func (w *relay) write(ctx context.Context, text []byte) ([]byte, error) {
	if w.stream != nil {
		return w.stream.Write(text), nil
	}
	if w.leading = append(w.leading, text...); isBlank(text) {
		return nil, nil
	}
	stream, err := w.run.Admission.WithConstraints(w.run.constraints(w.run.Constraints())).Stream(ctx, w.run.Mode, true)
	if err != nil {
		return nil, err
	}
	w.stream = stream
	return stream.Write(w.leading), nil
}

// waits reports whether text waits to be released.
func (w *relay) waits() bool {
	for i := range w.queue {
		if w.queue[i].Kind == wire.TextDelta {
			return true
		}
	}
	return false
}

// release sends n bytes of the text in the queue, and what stands before and behind them.
func (w *relay) release(n int) {
	for n > 0 && len(w.queue) > 0 {
		front := &w.queue[0]
		if front.Kind != wire.TextDelta {
			w.pop()
			continue
		}
		rest := front.Text[min(n, len(front.Text)):]
		n -= len(front.Text) - len(rest)
		if len(rest) == 0 {
			w.pop()
			continue
		}
		piece := *front
		piece.Text = front.Text[:len(front.Text)-len(rest)]
		w.run.stream.emit(&piece)
		front.Text = rest
	}
	w.drain()
}

// drain sends what waits for no text. The beginning of a text block waits for its first text, so
// that a turn whose text is refused shows nothing of it.
func (w *relay) drain() {
	for len(w.queue) > 0 && w.queue[0].Kind != wire.TextDelta && !w.waitsForText() {
		w.pop()
	}
}

// waitsForText reports whether the front of the queue is the beginning of a text block whose first
// text is not released, or has not come: citations may stand before it.
func (w *relay) waitsForText() bool {
	if front := &w.queue[0]; front.Kind != wire.BlockStart || front.Block != wire.Text {
		return false
	}
	for w.seen+1 < len(w.queue) && w.queue[w.seen+1].Kind == wire.BlockDelta {
		w.seen++
	}
	return w.seen+1 == len(w.queue) || w.queue[w.seen+1].Kind == wire.TextDelta
}

// flush sends all that waits.
func (w *relay) flush() {
	for len(w.queue) > 0 {
		w.pop()
	}
}

func (w *relay) pop() {
	w.run.stream.emit(&w.queue[0])
	w.seen = 0
	if w.queue = w.queue[1:]; len(w.queue) == 0 {
		w.queue = nil
	}
}

// copied is an event that stays valid.
func copied(e *wire.Event) wire.Event {
	c := *e
	c.Text, c.Raw = bytes.Clone(e.Text), bytes.Clone(e.Raw)
	return c
}
