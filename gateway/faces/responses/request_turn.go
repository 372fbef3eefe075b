package responses

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/responses"
)

// RequestTurn requests the next turn from the model, and judges it.
func (r *run) RequestTurn(modelCtx, ctx context.Context) (*turns.Turn, error) {
	if err := r.confirm(ctx); err != nil {
		return nil, err
	}
	for {
		t, err := r.requestReply(modelCtx, ctx)
		if err != nil {
			return nil, r.statedFailure(err)
		}
		if again, err := r.approve(ctx, t); err != nil {
			return nil, err
		} else if again {
			continue
		}
		r.last = t
		return r.asTurn(t), nil
	}
}

// statedFailure turns a failure that the provider reports in its reply into one with the provider's
// words, unless the operator's key is among them.
func (r *run) statedFailure(err error) error {
	var failed *responses.ProviderError
	if !errors.As(err, &failed) {
		return err
	}
	return upstream.StatedFailure(r.Route, upstream.Failure{Type: failed.Type, Code: failed.Code, Message: failed.Message}, r.mentionsKey)
}

// requestReply requests one reply, and judges it; not yet where it has calls at the provider that
// are to be approved.
func (r *run) requestReply(modelCtx, ctx context.Context) (*turn, error) {
	if r.Client() == nil {
		return nil, refusal.New(refusal.UpstreamUnavailable, "There is no way to ask the model.")
	}
	request := upstream.Request{Endpoint: upstream.Responses, Body: r.requestBody()}
	if r.stream == nil {
		answer, err := r.Client().Post(modelCtx, r.Route, request)
		if err != nil {
			return nil, err
		}
		r.passHeader(answer.Header)
		r.mentionsKey = answer.MentionsKey
		reply, err := responses.Read(answer.Body, r.reading)
		if err != nil {
			return nil, err
		}
		return r.take(ctx, reply, nil)
	}
	seen := &relay{run: r, ctx: ctx, taken: map[string]bool{}}
	defer seen.abandon(ctx)
	reply, err := r.readStream(modelCtx, request, seen)
	if err != nil {
		return nil, err
	}
	return r.take(ctx, reply, seen)
}

// passHeader passes on what the provider says of its request and its limits.
func (r *run) passHeader(header http.Header) {
	for name, values := range header {
		r.header[name] = values
	}
}

// take checks that a reply has ended, and judges it.
func (r *run) take(ctx context.Context, reply *responses.Reply, seen *relay) (*turn, error) {
	r.settle(reply)
	background := string(r.request.members.Get("background")) == "true"
	if (reply.Status == "queued" || reply.Status == "in_progress") && (!background || len(reply.Items) > 0) {
		return nil, refusal.New(refusal.UpstreamUnavailable, "The model's answer has not ended; nothing of it was used.")
	}
	if err := r.checkRemote(ctx, reply); err != nil {
		return nil, err
	}
	denied := r.hookItems(ctx, reply)
	if !hasApprovals(reply) {
		return r.judge(ctx, reply, seen, denied), nil
	}
	speaks := false
	for _, item := range reply.Items {
		if item.Class == responses.Call {
			return nil, refusal.New(refusal.MixedOutput, "The answer asks for a call at the provider and for something else at once.")
		}
		speaks = speaks || len(item.Parts) > 0
	}
	switch {
	case speaks:
	case denied != nil:
		return nil, denied
	default:
		return &turn{reply: reply, approves: true}, nil
	}
	t := r.judge(ctx, reply, seen, denied)
	t.approves = t.decision.Refusal() == nil
	return t, nil
}

// settle charges what a reply has taken. Tokens that were read from a cache are part of the input's.
func (r *run) settle(reply *responses.Reply) {
	cached := min(turns.CachedTokens(reply.Usage, "input_tokens_details"), reply.InputTokens)
	output := max(reply.OutputTokens, reply.TotalTokens-reply.InputTokens)
	r.Settle(budget.Usage{Input: reply.InputTokens - cached, CachedInput: cached, Output: output})
}

// readStream requests a stream, relays what is released of it, and assembles the reply.
func (r *run) readStream(ctx context.Context, request upstream.Request, seen *relay) (*responses.Reply, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const waitingForModel = "waiting for the model"
	var events *upstream.EventStream
	if err := r.Wait(waitingForModel, func() (err error) {
		events, err = r.Client().Open(ctx, r.Route, request)
		return err
	}); err != nil {
		return nil, err
	}
	defer events.Close()
	r.mentionsKey = events.MentionsKey
	if !r.stream.Begun() {
		r.passHeader(events.Header)
	}
	stream, reserved := responses.NewStream(r.reading), r.Client().Hold()
	defer reserved.Release()
	seen.begin(stream)
	for {
		e, err := r.nextEvent(events, seen, waitingForModel)
		if errors.Is(err, io.EOF) {
			return stream.Close()
		}
		if err != nil {
			return nil, err
		}
		event, err := stream.Add(e.name, e.data)
		if err != nil {
			return nil, err
		}
		if err := reserved.Set(stream.Bytes()); err != nil {
			return nil, err
		}
		if event.Kind == responses.Finished {
			if err := events.End(stream.AddsNothing); err != nil {
				return nil, err
			}
			return stream.Close()
		}
		if err := seen.pass(event); err != nil {
			return nil, err
		}
		r.stream.Pace(events.Ready())
	}
}

// wireEvent is an event as it was read.
type wireEvent struct{ name, data []byte }

// nextEvent reads the next event. While nothing can be sent, signs of life are (RS-64).
func (r *run) nextEvent(events *upstream.EventStream, seen *relay, note string) (wireEvent, error) {
	if events.Ready() || r.isEnforced() && r.stream.ID() != "" && !seen.holds {
		name, data, err := events.Next()
		return wireEvent{name, data}, err
	}
	return r.awaitEvent(events, note)
}

// awaitEvent is apart, since what a closure changes is allocated.
func (r *run) awaitEvent(events *upstream.EventStream, note string) (wireEvent, error) {
	var e wireEvent
	err := r.Wait(note, func() (err error) {
		e.name, e.data, err = events.Next()
		return err
	})
	return e, err
}
