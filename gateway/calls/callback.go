package calls

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/execution"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// CallbackMessage identifies a message that a tool posts about a call that it has accepted.
type CallbackMessage struct {
	CallID string // that the address stands for
	// ID and Group are the call and the thread that the message names.
	ID, Group string
	Digest    string // SHA-256 of the message, in hex
	// Thread is the thread of the call, as CallOwner returned it. Messages of one thread are
	// taken in one after the other; without it, those of one call are.
	Thread string
}

// inTurn takes a message in when all those of its thread that came before are. A message
// that has begun is not dropped half-way.
func (e *Executor) inTurn(ctx context.Context, p CallbackMessage, take func(context.Context) error) error {
	leave, err := e.queues.Enter(ctx, cmp.Or(p.Thread, p.CallID))
	if err != nil {
		return err
	}
	defer leave()
	return take(context.WithoutCancel(ctx))
}

// CallbackResult is the answer of a tool that has called back.
type CallbackResult struct {
	Output tool.Result
	// Failure is the tool's error message for the model; then there is no output.
	Failure string
	Display json.RawMessage // how it is shown to people; nil where the tool does not say
	// Subscribed means that the tool sends events from now on.
	Subscribed bool
}

// answerWait bounds how long an answer waits for another to the same call that is
// being taken in.
const answerWait = 5 * time.Second

// Complete ends a call with the answer of its tool. The first answer ends it; the same
// answer again changes nothing and is no error. A message about a call that does not wait
// is not_found, for any reason. A different second answer is idempotency_conflict. Late
// answers, conflicting ones, and messages whose call or thread does not match their address
// are recorded. After any other refusal the tool should post again.
//
// With nil the answer is durable.
func (e *Executor) Complete(ctx context.Context, p CallbackMessage, a CallbackResult) error {
	return e.inTurn(ctx, p, func(ctx context.Context) error { return e.complete(ctx, p, a) })
}

func (e *Executor) complete(ctx context.Context, p CallbackMessage, a CallbackResult) error {
	for {
		call, err := e.findCallOf(ctx, p)
		if err != nil {
			return err
		}
		if call.Expired(e.now()) {
			e.executions.Expire(ctx, call)
			return e.recordDispute(ctx, call, p, refuseNotWaiting(tooLate))
		}
		if call.Step == store.Ended {
			return e.repeatedAnswer(ctx, call, p)
		}
		c := e.executions.Restore(call)
		if !c.Begin() {
			if err := e.waitEnded(ctx, call); err != nil {
				return err
			}
			continue
		}
		subscribed := a.Subscribed && e.events.Begin(call.Feed(), e.now())
		c.Metadata = stored.Metadata{Display: a.Display, AnswerDigest: p.Digest, Subscribed: subscribed}
		o := c.Finish(ctx, a.Output, callbackError(c, a), call.Opened)
		switch {
		case c.EndedByOther(): // somebody was quicker, and that answer may have subscribed
			if subscribed {
				e.closeStale(ctx, call)
			}
		case o.Pending:
			if subscribed {
				e.events.Close(call.ID)
			}
			return stored.RefuseUnknown(ctx, errors.New("the store did not record the answer"))
		default:
			return nil
		}
	}
}

// tooLate is why an answer is refused, for the operator.
const tooLate = "the call has ended, or its time is over"

// findCallOf finds the call that a message is about, which must be the call of its address.
// A message that names another call or thread is recorded.
func (e *Executor) findCallOf(ctx context.Context, p CallbackMessage) (*stored.Call, error) {
	call, err := e.calls.Get(ctx, p.CallID, store.OfAnyone())
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, refuseNotWaiting(notKept)
	case err != nil:
		return nil, stored.RefuseUnknown(ctx, err)
	case call.Step != store.Waiting && call.Step != store.Ended:
		return nil, refuseNotWaiting("the call waits for no answer")
	case p.ID != call.ID, p.Group != call.Group():
		return nil, e.recordDispute(ctx, call, p, refuseForeign())
	}
	return call, nil
}

// CallOwner returns the principal whose call a message is about, or without credentials its
// tool, and the thread of the call. A message about an unknown call is not_found.
func (e *Executor) CallOwner(ctx context.Context, callID string) (principal, thread string, err error) {
	call, err := e.calls.Get(ctx, callID, store.OfAnyone())
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", "", refuseNotWaiting(notKept)
	case err != nil:
		return "", "", stored.RefuseUnknown(ctx, err)
	}
	thread = call.Scope.Principal + "\x00" + call.Group()
	return cmp.Or(call.Scope.Principal, "tool "+call.Task.Tool), thread, nil
}

// notKept is why a message is refused, for the operator.
const notKept = "the call is not kept, or not any more"

// refuseForeign is the refusal for a message whose call id or thread is not that of the
// call of its address.
func refuseForeign() *refusal.Error {
	refused := refuseNotWaiting("the message names another call or thread than its address stands for")
	refused.Stage = refusal.Identity
	return refused
}

// callbackError is why a call has no output, though its tool has answered. The tool is not
// named in it: a call that was kept does not say by which name the model knows it.
func callbackError(c *execution.Call, a CallbackResult) error {
	switch {
	case c.Tool() == nil:
		return refusal.New(refusal.InvalidResult, "The tool is not configured any more, so its answer is not shown.")
	case a.Failure == "":
		return nil
	case int64(len(a.Failure)) > c.Tool().SharedRun().MaxResultBytes:
		return refusal.New(refusal.ResultTooLarge, "The tool answered with more than is allowed. "+c.Unless("Ask it for less."))
	}
	return refusal.New(refusal.ToolFailed, a.Failure).WithCause(fmt.Errorf("%s says that it failed", c.ToolName()))
}

// repeatedAnswer compares an answer with the one that has ended its call.
func (e *Executor) repeatedAnswer(ctx context.Context, call *stored.Call, p CallbackMessage) error {
	switch call.Meta.AnswerDigest {
	case p.Digest:
		return nil
	case "": // it ended without an answer
		return e.recordDispute(ctx, call, p, refuseNotWaiting(tooLate))
	}
	return e.recordDispute(ctx, call, p,
		refusal.New(refusal.IdempotencyConflict, "This call was answered otherwise before, and that stands."))
}

// waitEnded waits for the end of a call that is being taken in here.
func (e *Executor) waitEnded(ctx context.Context, call *stored.Call) error {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	_, err := e.calls.WaitFor(ctx, call.ID, call.Scope.Principal, func(call *stored.Call) bool { return call.Step == store.Ended })
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return stored.RefuseUnknown(ctx, err)
	}
	return nil
}

// SaveAuthURL stores the URL that a person must open for a waiting call. A call that does
// not wait is not_found.
func (e *Executor) SaveAuthURL(ctx context.Context, p CallbackMessage, url string) error {
	return e.inTurn(ctx, p, func(ctx context.Context) error { return e.saveAuthURL(ctx, p, url) })
}

func (e *Executor) saveAuthURL(ctx context.Context, p CallbackMessage, url string) error {
	ctx, cancel := context.WithTimeout(ctx, gateway.StoreWait)
	defer cancel()
	for {
		call, err := e.findWaiting(ctx, p)
		if err != nil {
			return err
		}
		meta := call.Meta
		meta.AuthURL = url
		// Of two URLs, the one that is noted last holds.
		if again, err := e.noteMetadata(ctx, call, meta); !again {
			return err
		}
	}
}

// findWaiting finds the call that a message is for; one that does not wait is not_found.
func (e *Executor) findWaiting(ctx context.Context, p CallbackMessage) (*stored.Call, error) {
	call, err := e.findCallOf(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case call.Step != store.Waiting || call.Expired(e.now()):
		return nil, refuseNotWaiting(tooLate)
	}
	return call, nil
}

// refuseNotWaiting refuses a message of a tool about a call that does not wait for it. The
// reason is for the operator alone.
func refuseNotWaiting(why string) *refusal.Error {
	return refusal.New(refusal.NotFound, "There is no such call that waits for an answer.").WithCause(errors.New(why))
}

// noteMetadata replaces the metadata of a waiting call; again says that they have changed since
// they were read.
func (e *Executor) noteMetadata(ctx context.Context, call *stored.Call, meta stored.Metadata) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, gateway.StoreWait)
	defer cancel()
	switch err := e.calls.SetMetadata(ctx, call, meta); {
	case errors.Is(err, store.ErrConflict):
		return true, nil
	case errors.Is(err, store.ErrEnded), errors.Is(err, store.ErrNotFound):
		return false, refuseNotWaiting(tooLate)
	case err != nil:
		return false, stored.RefuseUnknown(ctx, err)
	}
	return false, nil
}
