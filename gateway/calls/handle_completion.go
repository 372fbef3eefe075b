package calls

import (
	"context"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/execution"
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
	return e.handle(ctx, e.Kernel.Open(ctx, request), key, Wait{})
}

// HandleWaiting is Handle for a request that waits for people, where its call needs their
// approval. A call that they approve meanwhile is judged anew, from the start, and executed.
func (e *Executor) HandleWaiting(ctx context.Context, request gateway.Request, key string, w Wait) Outcome {
	return e.handle(ctx, e.Kernel.Open(ctx, request), key, w)
}

// HandleAdmitted judges one input of an admitted request and executes its call, as Handle
// does.
func (e *Executor) HandleAdmitted(ctx context.Context, a *gateway.Admission, input gateway.Input, key string) Outcome {
	return e.handle(ctx, a.Open(ctx, gateway.ModeCall, input), key, Wait{})
}

// HandleAdmittedWaiting is HandleAdmitted for a request that waits for people, its caller
// included, where its call needs their approval.
func (e *Executor) HandleAdmittedWaiting(ctx context.Context, a *gateway.Admission, input gateway.Input, key string, w Wait) Outcome {
	return e.handle(ctx, a.Open(ctx, gateway.ModeCall, input), key, w)
}

// handle is Handle for a request whose caller was identified. While it waits for people, it
// holds neither its key nor a slot.
func (e *Executor) handle(ctx context.Context, o gateway.Opened, key string, w Wait) Outcome {
	until := e.now().Add(w.For)
	for {
		outcome, d := e.attempt(ctx, o, key)
		if d == nil || outcome.ApprovalRequest == nil {
			return outcome
		}
		if len(e.approvals.AwaitDecided(ctx, w, until, d)) == 0 {
			return execution.Outcomes(d, d.Refusal(), nil)[0]
		}
		o = d.Reopen(ctx)
	}
}

// attempt claims the key of a request, judges it and executes its call. The decision is nil
// where the request was not judged.
func (e *Executor) attempt(ctx context.Context, o gateway.Opened, key string) (Outcome, *gateway.Decision) {
	opened := o.Calls()
	if len(opened) == 0 { // the caller was refused
		return e.Execute(ctx, o.Judge(ctx))[0], nil
	}
	if elicit.IsAnswerKey(key) {
		return e.refuse(ctx, o, refusal.New(refusal.BadRequest, "This idempotency key is not one that a caller may choose.")), nil
	}
	if state := opened[0].Dialogue().AnswerKey(); state != "" {
		key = state // instead of the caller's key: only the first answer counts
	}
	if key == "" {
		key = opened[0].Dialogue().ApprovalKey()
	}
	if key != "" && len(opened) > 1 {
		return e.refuse(ctx, o, refusal.New(refusal.BadRequest, "An idempotency key is for one call.")), nil
	}
	x := e.executions.New(opened[0])
	if key != "" {
		x.SetKey(key)
		prior, err := x.ClaimKey(ctx, key)
		if err != nil {
			o.ReadTool(ctx)
			return e.refuse(ctx, o, refusal.From(refusal.Execute, err)), nil
		}
		if prior != nil {
			return *prior, nil
		}
		// A call that was not dispatched must not hold its key.
		defer x.Forget(ctx)
	}
	d := o.Judge(ctx)
	defer d.Release()
	outcome := e.execute(ctx, d, x)[0]
	if outcome.Waits() {
		return x.AwaitEnd(ctx, outcome), nil
	}
	return outcome, d
}

// refuse refuses a request before it is judged.
func (e *Executor) refuse(ctx context.Context, o gateway.Opened, refused *refusal.Error) Outcome {
	return e.Execute(ctx, o.Refuse(ctx, refused))[0]
}
