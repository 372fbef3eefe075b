package chat

import (
	"context"
	"errors"
	"io"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/chat"
)

// relay is the content of one choice of a stream, on its way through the parser
// to the application.
type relay struct {
	stream       *gateway.Stream // nil: nothing came but white space, or it is judged whole
	leadingSpace []byte          // the white space
	sent         bool
	thoughts     map[string]*hook.Texts // by their members; nil: no hook is to see them
}

// refused reports whether the content is refused, whatever follows.
func (w *relay) refused() bool { return w.stream != nil && w.stream.Refused() }

// close judges the content together with the calls beside it.
func (w *relay) close(ctx context.Context, cut bool, beside ...gateway.Input) *gateway.Decision {
	d := w.stream.Close(ctx, cut, beside...)
	w.stream = nil
	return d
}

// requestTurn requests the next turn from the model, and judges it. ctx is the request's
// own; modelCtx may end before it.
func (r *run) requestTurn(modelCtx, ctx context.Context) (*turn, error) {
	body, err := r.requestBody()
	if err != nil {
		return nil, err
	}
	if r.Client() == nil {
		return nil, refusal.New(refusal.UpstreamUnavailable, "There is no way to ask the model.")
	}
	var (
		completion *chat.Completion
		relays     map[int]*relay
	)
	if r.stream == nil {
		completion, err = r.Client().Complete(modelCtx, r.Route, body)
	} else {
		relays = map[int]*relay{}
		r.stream.beginTurn()
		defer func() { abandon(ctx, relays) }()
		completion, err = r.readStream(modelCtx, body, relays)
	}
	if err != nil {
		return nil, err
	}
	r.settle(completion.Usage)
	if len(completion.Choices) > r.request.n {
		return nil, refusal.New(refusal.UpstreamUnavailable, "The model gave more answers than were asked for; none of them was used.")
	}
	t := &turn{Completion: completion}
	denied := r.hookBeside(ctx, completion, relays)
	for i := range completion.Choices {
		c := &completion.Choices[i]
		j := r.judge(ctx, c, relays[c.Index], denied)
		j.buffered = r.stream != nil && r.buffersWhole()
		t.choices = append(t.choices, j)
	}
	return t, nil
}

// abandon records the text that was sent of answers that broke off.
func abandon(ctx context.Context, relays map[int]*relay) {
	for _, w := range relays {
		if w.stream != nil {
			w.close(context.WithoutCancel(ctx), true).Release()
		}
	}
}

// buffersWhole reports whether a stream is sent only once it has been judged: if that is
// configured, or if a later part decides on an earlier one.
func (r *run) buffersWhole() bool {
	rules := &r.Route.Rules
	native := rules.Protocol != upstream.Text
	return rules.StreamBuffer == upstream.Whole || r.Choice.Required || native && (rules.NativeProse == upstream.Drop || rules.CallFormat == upstream.AsContent)
}

// readStream requests a stream, relays the text that is released, and assembles the answer.
func (r *run) readStream(ctx context.Context, body []byte, relays map[int]*relay) (*chat.Completion, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next, events, err := r.openStream(ctx, body)
	if err != nil {
		return nil, err
	}
	defer events.Close()
	events.Choices = r.request.n
	all := r.Client().Assembler(r.Route)
	defer all.Release()
	whole := r.buffersWhole()
	r.held = whole
	for {
		chunk, err := next()
		if errors.Is(err, io.EOF) {
			return all.Complete()
		}
		if err != nil {
			return nil, err
		}
		if err := all.Add(chunk); err != nil {
			return nil, err
		}
		if whole {
			continue
		}
		if err := r.relayChunk(ctx, chunk, relays); err != nil {
			return nil, err
		}
		r.stream.Pace(events.Ready())
	}
}

// relayChunk sends the text that a chunk releases.
func (r *run) relayChunk(ctx context.Context, chunk *chat.Chunk, relays map[int]*relay) error {
	from := completionHead{chunk.ID, chunk.Model, chunk.Created, chunk.Extra}
	hooked := r.Admission.Hooks().AtTexts()
	for i := range chunk.Choices {
		d := &chunk.Choices[i]
		if d.Index >= r.request.n {
			continue // it is refused at the end
		}
		w, thought := relays[d.Index], d.Delta.Extra
		if hooked && len(thought) > 0 {
			if w == nil {
				w = &relay{}
				relays[d.Index] = w
			}
			if w.thoughts == nil {
				w.thoughts = map[string]*hook.Texts{}
			}
			thought = r.hookThoughts(w, thought)
		}
		r.held = r.held || len(d.Delta.ToolCalls) > 0 || w != nil && w.refused()
		if w == nil || !w.refused() {
			r.stream.writeReasoning(from, d.Index, thought)
		}
		if d.Delta.Content == nil || *d.Delta.Content == "" {
			continue
		}
		if w == nil {
			w = &relay{}
			relays[d.Index] = w
		}
		r.textBuffer = append(r.textBuffer[:0], *d.Delta.Content...)
		text := r.textBuffer
		if w.stream == nil {
			if w.leadingSpace = append(w.leadingSpace, text...); isBlank(*d.Delta.Content) {
				continue
			}
			stream, err := r.Admission.WithConstraints(r.Constraints()).Stream(ctx, r.Mode, r.Route.Rules.Protocol != upstream.Text)
			if err != nil {
				return err
			}
			w.stream, text, w.leadingSpace = stream, w.leadingSpace, nil
		}
		if out := w.stream.Write(text); len(out) > 0 {
			w.sent = true
			var logprobs []byte
			if string(out) == *d.Delta.Content {
				logprobs = verifiedLogprobs(d.Extra.Lookup("logprobs"), *d.Delta.Content, nil)
			}
			r.stream.writeText(from, d.Index, out, logprobs)
		}
	}
	return nil
}

// openStream requests a stream, and returns a function that reads its chunks. While nothing can be sent,
// comments are.
func (r *run) openStream(ctx context.Context, body []byte) (next func() (*chat.Chunk, error), events *upstream.Events, err error) {
	client := r.Client()
	const waitingForModel = "waiting for the model"
	if err := r.Wait(waitingForModel, func() (err error) {
		events, err = client.Stream(ctx, r.Route, body)
		return err
	}); err != nil {
		return nil, nil, err
	}
	return func() (chunk *chat.Chunk, err error) {
		if events.Ready() || r.Mode != gateway.ModeCall && r.stream.shows() && !r.held {
			return events.Next()
		}
		err = r.Wait(waitingForModel, func() (err error) {
			chunk, err = events.Next()
			return err
		})
		return chunk, err
	}, events, nil
}
