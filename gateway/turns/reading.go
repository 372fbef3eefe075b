package turns

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// read requests a reply, and reads it. What of a stream is released goes to the application meanwhile.
func (x *exchange) read(modelCtx, ctx context.Context) (*Reply, error) {
	request, reader := x.request(), x.dialogue.Reader()
	reply := reader.Reply()
	err := contained(func() error { // what was sent is recorded, whatever the wire does
		if !x.streams {
			return x.readWhole(modelCtx, request, reader)
		}
		x.whole, x.hooked, x.quiet = x.buffersWhole(), x.Admission.Hooks().AtTexts(), true
		x.writer.Turn(reply)
		return x.readStream(modelCtx, ctx, request, reader)
	})
	if err == nil {
		err = x.check(ctx, reply)
	}
	if err != nil {
		x.abandon(ctx, reply)
	}
	return reply, err
}

// request is the next request to the model.
func (x *exchange) request() upstream.Request {
	request := x.dialogue.Body()
	if x.options.Budgets != nil {
		request.Meter = &x.spending
	}
	return request
}

// readWhole requests a reply that is no stream, and reads it.
func (x *exchange) readWhole(ctx context.Context, request upstream.Request, reader Reader) error {
	answer, err := x.post(ctx, request)
	if err != nil {
		return err
	}
	if err := reader.Whole(answer.Body); err != nil {
		return x.unreadable(err, answer.MentionsKey)
	}
	return nil
}

// errMisread is the error of a reply, or of a piece of it, that its wire has not read as it must: a part of no kind would
// be lost, and text that the kernel has not read would be shown.
var errMisread = errors.New("the wire has read a reply wrongly")

// check fails a reply that is none, and one with a part of no kind or that the upstream's entry does not allow.
func (x *exchange) check(ctx context.Context, reply *Reply) error {
	if len(reply.Answers) == 0 {
		return errMisread
	}
	for _, a := range reply.Answers {
		for _, p := range a.Parts {
			if !p.hasKind() {
				return errMisread
			}
			if err := x.checkAllowed(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// post requests a whole answer.
func (x *exchange) post(ctx context.Context, request upstream.Request) (*upstream.Reply, error) {
	if err := x.mayAsk(ctx); err != nil {
		return nil, err
	}
	reply, err := x.Client().Post(ctx, x.Route, request)
	if err == nil {
		x.answered = reply.Header
	}
	return reply, err
}

// mayAsk returns why the model is not asked: operators have stopped that, or there is no way to.
func (x *exchange) mayAsk(ctx context.Context) error {
	if x.Client() == nil {
		return refusal.New(refusal.UpstreamUnavailable, "There is no way to ask the model.")
	}
	return x.Admission.Stopped(ctx)
}

// checkAllowed fails a reply with a part that the upstream's entry does not allow. A call that the provider has
// executed cannot be taken back, and another answer of the model would not undo it.
func (x *exchange) checkAllowed(ctx context.Context, p *Part) error {
	if p.checked {
		return nil
	}
	p.checked = true
	var found, key string
	if p.Allowed != nil {
		found, key = p.Allowed(&x.Route.Rules, p)
	}
	if found == "" {
		if c, ok := x.dialogue.(Checking); ok {
			return c.Check(ctx, p)
		}
		return nil
	}
	return x.notAllowed(found, key)
}

// notAllowed is the failure of a reply with what the upstream's entry does not allow; key would, where it is not empty.
func (x *exchange) notAllowed(found, key string) error {
	message := fmt.Sprintf("The model's provider has answered with %s, which the upstream %s does not allow. Nothing of the answer was used.", found, x.Route.Upstream)
	if key != "" {
		message += " The operator can allow it, with " + key + " at the upstream."
	}
	return &Failure{Refused: refusal.New(refusal.PermissionDenied, message)}
}

// abandon records the text that was sent of answers that broke off.
func (x *exchange) abandon(ctx context.Context, reply *Reply) {
	for _, a := range reply.Answers {
		if w := &a.relay; w.stream != nil {
			w.stream.Close(context.WithoutCancel(ctx), true).Release()
			w.stream = nil
		}
	}
}

// waitingForModel is what a stream waits for.
const waitingForModel = "waiting for the model"

// readStream requests a stream, and reads it to its end.
func (x *exchange) readStream(ctx, runCtx context.Context, request upstream.Request, reader Reader) error {
	if err := x.mayAsk(ctx); err != nil {
		return err
	}
	events, err := x.open(ctx, request)
	if events != nil { // also where it is the sign of life that failed
		defer events.Close()
	}
	if err != nil {
		return err
	}
	x.answered = events.Header
	held := x.Client().Hold()
	defer held.Release()
	for {
		taken, size, at := reader.State()
		if err := held.Set(taken); err != nil {
			return err
		}
		if most := x.Route.MaxBody(); size > most {
			return upstream.TooLarge(x.Route, fmt.Errorf("found a stream of an answer over %d bytes", most))
		}
		if at == Ended {
			if err := events.End(reader.AddsNothing); err != nil {
				return err
			}
			return x.ended(reader, events)
		}
		name, data, err := x.next(events, at)
		if errors.Is(err, io.EOF) {
			return x.ended(reader, events)
		}
		if err != nil {
			return err
		}
		deltas, err := reader.Event(name, data)
		if err != nil {
			return x.unreadable(err, events.MentionsKey)
		}
		x.quiet = true
		for i := range deltas {
			if err := x.release(runCtx, &deltas[i]); err != nil {
				return err
			}
		}
		x.events.Pace(events.Ready())
	}
}

// open requests a stream. The stream may be there although there is an error: that of a sign of life.
func (x *exchange) open(ctx context.Context, request upstream.Request) (events *upstream.EventStream, err error) {
	x.beginWait(waitingForModel)
	defer func() { err = x.endWait(err) }()
	return x.Client().Open(ctx, x.Route, request)
}

func (x *exchange) ended(reader Reader, events *upstream.EventStream) error {
	if err := reader.End(); err != nil {
		return x.unreadable(err, events.MentionsKey)
	}
	return nil
}

// next reads the next event. The provider's own events keep the application's stream alive; where nothing
// was sent of the last one, or the run has several turns, signs of life are sent.
func (x *exchange) next(events *upstream.EventStream, at Progress) (name, data []byte, err error) {
	if !events.Ready() && (x.Mode == gateway.ModeCall || x.quiet) {
		x.beginWait(waitingForModel)
		defer func() { err = x.endWait(err) }()
	}
	if at == Settled {
		return events.NextIfAny()
	}
	return events.Next()
}

// unreadable is the failure of a reply that breaks the rules of its wire.
func (x *exchange) unreadable(err error, mentionsKey func([]byte) bool) error {
	var (
		stated *ProviderError
		unfit  *Unfit
	)
	switch {
	case errors.As(err, &stated) && stated.Body != nil:
		status := &upstream.StatusError{Upstream: x.Route.Upstream, Status: stated.Status}
		if mentionsKey(stated.Body) {
			status.Withheld = upstream.WithheldKey
		} else {
			status.Type, status.Body, status.ContentType = stated.Failure.Type, stated.Body, "application/json"
		}
		return &Failure{Upstream: status, Retryable: true}
	case errors.As(err, &stated):
		return upstream.StatedFailure(x.Route, stated.Failure, mentionsKey)
	case errors.Is(err, ErrIncomplete):
		return upstream.BrokenOff(x.Route, err)
	case errors.Is(err, ErrUnknown):
		return x.notAllowed(err.Error(), x.spec.UnknownKey)
	}
	refused := upstream.Malformed(x.Route, err)
	if errors.As(err, &unfit) {
		refused.Message += " " + unfit.Cure
	}
	return refused
}
