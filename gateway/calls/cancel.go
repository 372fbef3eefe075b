package calls

import (
	"context"
	"errors"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// Canceller is an Engine that can notify a callback tool that a call was cancelled. It
// notifies the tool once, and returns in bounded time.
type Canceller interface {
	Cancel(context.Context, tool.Call)
}

const (
	cancelTime = 5 * time.Second
	maxCancels = 32 // that are being told at once
)

// Cancel ends a principal's call that waits for its callback, or the subscription of one
// that has ended, and returns the call's status then. It notifies the tool once, in the
// background; a later answer is ignored. A call that has ended does not change; one that
// runs elsewhere cannot be cancelled.
func (e *Executor) Cancel(ctx context.Context, request gateway.Request, id string) (CallStatus, error) {
	principal, err := e.principalOf(ctx, request)
	if err != nil {
		return CallStatus{}, err
	}
	call, err := e.calls.Get(ctx, id, store.Of(principal))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return e.withdraw(ctx, id, principal)
	case err != nil:
		return CallStatus{}, stored.RefuseUnknown(ctx, err)
	case call.Step == store.Ended && call.Meta.Subscribed:
		switch err := e.unsubscribe(context.WithoutCancel(ctx), call, stored.Metadata{}); {
		case err == nil:
			e.notifyCanceled(call)
		case !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrConflict): // it has ended already
			return CallStatus{}, stored.RefuseUnknown(ctx, err)
		}
		e.events.Close(call.ID)
	case call.Step == store.Waiting:
		ended, err := e.cancelCall(context.WithoutCancel(ctx), call)
		if err != nil {
			return CallStatus{}, err
		}
		if ended {
			e.notifyCanceled(call)
		}
	case call.Step != store.Ended:
		return CallStatus{}, refusal.New(refusal.CallInProgress, "This call runs, and cannot be called off.")
	}
	return e.lookup(ctx, id, principal)
}

// CancelSubscription ends an active subscription of the thread of a call that a model has made,
// by: that of the call of an id. It notifies the tool of it once, in the background. Whatever
// else the id stands for, the error for the model is the same.
func (e *Executor) CancelSubscription(ctx context.Context, by tool.Call, id string) error {
	caller, err := e.calls.Get(ctx, by.ID, store.OfAnyone())
	if err != nil {
		return stored.RefuseUnknown(ctx, err)
	}
	call, err := e.calls.Get(ctx, id, store.Of(caller.Scope.Principal))
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return stored.RefuseUnknown(ctx, err)
	case err != nil, call.Scope != caller.Scope, by.Thread == "", call.Group() != by.Thread, call.Step != store.Ended,
		!call.Meta.Subscribed:
		return refuseNoSubscription()
	}
	switch err := e.unsubscribe(context.WithoutCancel(ctx), call, stored.Metadata{}); {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict):
		return refuseNoSubscription()
	case err != nil:
		return stored.RefuseUnknown(ctx, err)
	}
	e.notifyCanceled(call)
	e.events.Close(call.ID)
	return nil
}

func refuseNoSubscription() *refusal.Error {
	return refusal.New(refusal.ToolFailed, "No subscription of this conversation is active for that tool_call_id. Use the id that is stated as subscription in the result of the call that subscribed.")
}

// cancelCall ends a waiting call, unless it is being ended already, and reports whether it has ended the
// call itself: its tool may have answered meanwhile, or somebody else called it off, here or at
// another process.
func (e *Executor) cancelCall(ctx context.Context, call *stored.Call) (ended bool, err error) {
	c := e.executions.Restore(call)
	if !c.Begin() {
		return false, e.waitEnded(ctx, call)
	}
	refused := refusal.New(refusal.ToolUnavailable, "The call was called off before there was an answer.")
	if call.Task.Effect == "once" {
		refused = refusal.New(refusal.OutcomeUnknown, "The call was called off before there was an answer. Whether it acted is not known; do not send the call again without finding out.")
	}
	if o := c.Finish(ctx, tool.Result{}, refused, call.Opened); o.Pending {
		return false, stored.RefuseUnknown(ctx, errors.New("the store did not record the end of the call"))
	}
	return !c.EndedByOther(), nil
}

// notifyCanceled tells the tool of a call, where there is room for that.
func (e *Executor) notifyCanceled(call *stored.Call) {
	task, ok := e.notified(call)
	if e.canceller == nil || !ok {
		return
	}
	select {
	case e.cancelSlots <- struct{}{}:
	default:
		return
	}
	e.journal.Go(func() {
		defer func() { <-e.cancelSlots }()
		defer safe.Discard() // the call has ended, whatever becomes of this
		ctx, cancel := context.WithTimeout(context.Background(), cancelTime)
		defer cancel()
		e.canceller.Cancel(ctx, task)
	})
}

// notified is a stored call as its tool is told of it; it is false where there is no tool any
// more that calls back.
func (e *Executor) notified(call *stored.Call) (tool.Call, bool) {
	c := e.executions.Restore(call)
	t := c.Tool()
	if t == nil || !c.CallsBack() {
		return tool.Call{}, false
	}
	return tool.Call{ID: call.ID, Tool: t.Name(), Version: t.Version(), Effect: t.Effect(), Run: t.Run(), Thread: call.Group()}, true
}
