package execution

import (
	"context"
	"errors"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// PersistAll stores the calls of a decision before the first is dispatched: all, or none, and
// then all of them end here.
func PersistAll(ctx context.Context, approved []gateway.Approved, executions []*Call) *refusal.Error {
	if len(executions) == 0 {
		return nil
	}
	bounded := executions[0].persisting.WithTimeout(ctx, gateway.StoreWait)
	defer bounded.Cancel()
	for i, c := range executions {
		if c.opened || c.Call == nil {
			continue
		}
		if err := c.Persist(bounded); err != nil {
			refused := refusal.From(refusal.Execute, err)
			for _, c := range executions[:i] {
				c.Forget(ctx)
			}
			c.opened = true // the store may have taken this one, and not said so
			c.Forget(ctx)
			EndAll(approved, refused)
			return refused
		}
	}
	return nil
}

// Persist stores one call that was sent without an idempotency key.
func (c *Call) Persist(ctx context.Context) (err error) {
	if c.Dialogue().AnswerKey() != "" {
		return errors.New("a call that answers a question has no key")
	}
	if call, repeated := c.Repeated(); repeated {
		prior, err := c.open(ctx, call)
		switch {
		case err != nil || c.opened:
			return err
		case c.TakesUp() != "" && prior.Step != store.Opened && prior.Scope == call.Scope && prior.Digest == call.Digest:
			return refusal.New(refusal.IdempotencyConflict,
				"The call has run already, under the idempotency key that it was asked under. Nothing more was executed. Send the same request with that key for its outcome.")
		}
		// The key is another call's by now: this one runs without.
	}
	prior, err := c.openInStore(ctx, "")
	if err == nil && prior != nil {
		err = refuse.Unsaved(ctx, errors.New("the store knows the id of a new call"))
	}
	return err
}

// openInStore stores the call, or returns the earlier call that has its key.
func (c *Call) openInStore(ctx context.Context, key string) (prior *stored.Call, err error) {
	return c.open(ctx, c.StoreCall(key))
}

// open stores the call as it is given.
func (c *Call) open(ctx context.Context, call store.Call) (prior *stored.Call, err error) {
	start := c.Trace().Start()
	found, err := c.runtime.calls.Open(ctx, call)
	c.Trace().StoreStep(ctx, start, err)
	switch {
	case errors.Is(err, store.ErrFull):
		return nil, refusal.At(refusal.Execute, refusal.Overloaded, "Too many calls are kept that have not ended, so this one was not executed. Wait until some of them have, then send it again.").WithCause(err)
	case err != nil && elicit.IsAnswerKey(call.Key):
		return nil, refuse.UnsavedAgain(ctx, "answers", err)
	case err != nil && call.Key != "":
		return nil, refuse.UnsavedAgain(ctx, "key", err)
	case err != nil:
		return nil, refuse.Unsaved(ctx, err)
	}
	c.opened = found == nil
	return found, nil
}

// Forget removes a call that is not dispatched. An error does not matter: the call has
// ended as refused.
func (c *Call) Forget(ctx context.Context) {
	if !c.opened {
		return
	}
	c.opened = false
	// The caller may have left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateway.StoreWait)
	defer cancel()
	_ = c.runtime.calls.Remove(ctx, c.ID())
}

// EndAll ends the calls of a decision that was to be acted on and cannot be.
func EndAll(approved []gateway.Approved, refused *refusal.Error) {
	for _, a := range approved {
		if c := a.Call(); c != nil {
			c.RecordNotRun(refused)
			c.FinishTrace(gateway.VerdictRefused, refused, audit.Failed, 0, nil)
		}
	}
}
