package calls

import (
	"context"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/refusal"
)

// Handle judges one completion and executes its call. A call whose idempotency key was used
// before is not started again: Handle returns the first outcome, or reports that it is
// pending. Refusals before dispatch are not stored. A call that answers the questions of
// its tool has the questions' own key, whatever key the caller sends, so that the first
// answer stands. The id of a call is always a key of that call, too.
//
// Where the tool answers later, Handle waits for that as long as the tool may
// take, or until ctx ends.
func (e *Executor) Handle(ctx context.Context, request gateway.Request, key string) Outcome {
	return e.handle(ctx, e.Open(ctx, request), key)
}

// HandleAdmitted judges one input of an admitted request and executes its call, as Handle
// does.
func (e *Executor) HandleAdmitted(ctx context.Context, a *gateway.Admission, input gateway.Input, key string) Outcome {
	return e.handle(ctx, a.Open(ctx, gateway.ModeCall, input), key)
}

// handle is Handle for a request whose caller was identified: idempotency, then judge,
// then execute.
func (e *Executor) handle(ctx context.Context, o *gateway.Opened, key string) Outcome {
	opened := o.Calls()
	if len(opened) == 0 { // the caller was refused
		return e.Execute(ctx, o.Judge(ctx))[0]
	}
	if elicit.IsAnswerKey(key) {
		return e.refuse(ctx, o, refusal.New(refusal.BadRequest, "This idempotency key is not one that a caller may choose."))
	}
	if state := opened[0].Dialogue().AnswerKey(); state != "" {
		key = state // instead of the caller's key: only the first answer counts
	}
	if key != "" && len(opened) > 1 {
		return e.refuse(ctx, o, refusal.New(refusal.BadRequest, "An idempotency key is for one call."))
	}
	x := &execution{Call: opened[0], executor: e}
	if key != "" {
		prior, err := x.claimKey(ctx, key)
		if err != nil {
			o.ReadTool(ctx)
			return e.refuse(ctx, o, refusal.From(refusal.Execute, err))
		}
		if prior != nil {
			return *prior
		}
		// A call that was not dispatched must not hold its key.
		defer x.forget(ctx)
	}
	d := o.Judge(ctx)
	defer d.Release()
	outcome := e.execute(ctx, d, x)[0]
	if !outcome.deadline.IsZero() {
		return x.awaitEnd(ctx, outcome)
	}
	return outcome
}

// refuse refuses a request before it is judged.
func (e *Executor) refuse(ctx context.Context, o *gateway.Opened, refused *refusal.Error) Outcome {
	return e.Execute(ctx, o.Refuse(ctx, refused))[0]
}
