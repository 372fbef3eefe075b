package calls

import (
	"context"
	"errors"
	"slices"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/execution"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// resume recovers calls abandoned by other processes. It does nothing until the whole
// backlog is loaded.
func (t *Reconciler) resume(ctx context.Context) error {
	err := t.load(ctx)
	if t.starting {
		if err == nil {
			err = t.dropRecorded()
		}
		if err != nil {
			return err
		}
		t.starting = false
	}
	t.recordEnded()
	for _, call := range t.abandoned {
		t.recoverCall(ctx, call)
	}
	t.abandoned = nil
	return errors.Join(err, t.endUndispatched(ctx))
}

// load reads the calls that have been abandoned.
func (t *Reconciler) load(ctx context.Context) error {
	for t.starting {
		calls, err := t.recover(ctx, store.Unsettled)
		if t.ended = append(t.ended, calls...); err != nil {
			return err
		}
		if len(calls) == 0 {
			break
		}
	}
	for {
		calls, err := t.recover(ctx, store.Abandoned)
		t.abandoned = append(t.abandoned, calls...)
		if err != nil || len(calls) < reconcileBatch {
			return err
		}
	}
}

// dropRecorded drops the calls whose outcome is in the journal: those that the store has
// dispatched, but could not confirm in time. In the backlog it leaves the decisions whose
// calls the store has not returned.
func (t *Reconciler) dropRecorded() error {
	known := map[string]bool{}
	var ids []string
	for _, calls := range [][]store.Call{t.ended, t.abandoned} {
		for _, call := range calls {
			known[call.ID], ids = true, append(ids, call.ID)
		}
	}
	for _, r := range t.backlog.Open {
		if known[r.CallID] {
			t.arguments[r.CallID] = r.ArgumentsSHA256
		}
	}
	t.backlog.Open = slices.DeleteFunc(t.backlog.Open, func(r audit.Record) bool { return known[r.CallID] })
	if len(ids) == 0 || t.backlog.Ended == nil {
		return nil
	}
	ended, err := t.backlog.Ended(ids)
	if err != nil {
		return err
	}
	over := func(call store.Call) bool {
		if ended[call.ID] {
			t.closeRecorded(call)
		}
		return ended[call.ID]
	}
	t.ended, t.abandoned = slices.DeleteFunc(t.ended, over), slices.DeleteFunc(t.abandoned, over)
	return nil
}

// closeRecorded ends a call in the store whose outcome is in the journal already.
func (t *Reconciler) closeRecorded(call store.Call) {
	e := t.executor
	if call.Step == store.Ended {
		e.calls.Settle(call.ID)
		return
	}
	refused := refusal.From(refusal.Execute, refuse.Unsaved(context.Background(), errors.New("ended before")))
	answer := store.Answer{
		Result: execution.RefusedResult(gateway.Report{Tool: call.Task.Tool, HasTool: true}, refused).Line, Status: refused.Status(),
	}
	e.journal.Go(func() { e.executions.CloseStored(call.ID, answer) })
}

// recordEnded records the outcomes of calls that have ended.
func (t *Reconciler) recordEnded() {
	for i := range t.ended {
		t.recordOutcome(stored.New(t.ended[i]), t.arguments[t.ended[i].ID])
	}
	t.ended, t.arguments = nil, nil
}

// recordOutcome records the outcome of a call that has ended. The store has dropped its
// arguments by then.
func (t *Reconciler) recordOutcome(call *stored.Call, argumentsSHA256 string) {
	e := t.executor
	c := e.executions.Restore(call)
	r := c.Outcome()
	r.Verdict, r.Attempt, r.ArgumentsSHA256 = audit.ToolCall, max(call.Attempts, 1), argumentsSHA256
	r.Outcome, r.Stage, r.Code = storedOutcome(call)
	r.Micros = call.Ended.Sub(call.Opened).Microseconds()
	e.journal.Outcome(r, func() { e.calls.Settle(c.ID()) })
	t.count(func(n *ReconcileStats) { n.Recorded++ })
}

// storedOutcome reads the outcome of a call from its stored answer.
func storedOutcome(call *stored.Call) (audit.Outcome, refusal.Stage, refusal.Code) {
	refused := call.Result().Refusal
	switch {
	case refused == nil:
		return audit.Result, "", ""
	case !call.Until.IsZero() && !call.Ended.Before(call.Until) && (refused.Code == refusal.ToolTimeout || refused.Code == refusal.OutcomeUnknown):
		return audit.Expired, refused.Stage, refused.Code
	}
	return execution.AuditOutcome(refused.Code), refused.Stage, refused.Code
}

// recoverCall ends a call whose process has died, or dispatches it again.
func (t *Reconciler) recoverCall(ctx context.Context, call store.Call) {
	if call.Step != store.Dispatched {
		return // a waiting call continues to wait
	}
	c := t.executor.executions.Restore(stored.New(call))
	approved, err := t.executor.door.Reapprove(c.Call)
	if err != nil {
		t.runLimited(ctx, t.endSlots, func() { t.endUnknown(c) })
		return
	}
	t.runLimited(ctx, t.runSlots, func() { t.redispatch(ctx, c, approved) })
}

// runLimited runs a function in the background once there is a slot. If ctx ends first,
// the call is left to the next process.
func (t *Reconciler) runLimited(ctx context.Context, room chan struct{}, do func()) {
	t.started.Add(1)
	t.executor.journal.Go(func() {
		defer t.started.Done()
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			do()
		case <-ctx.Done():
		}
	})
}

// endUnknown ends a call whose outcome is unknown.
func (t *Reconciler) endUnknown(c *execution.Call) {
	c.Finish(context.Background(), tool.Result{}, refuseLost(), c.Started())
	t.count(func(n *ReconcileStats) { n.Unknown++ })
}

func refuseLost() error {
	return refusal.New(refusal.OutcomeUnknown, "Callgate ended while the tool ran. Whether it acted is not known; do not send the call again without finding out.")
}

// redispatch dispatches a call again.
func (t *Reconciler) redispatch(ctx context.Context, c *execution.Call, a gateway.Approved) {
	e := t.executor
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateway.StoreWait)
	err := e.calls.Update(asking, c.ID(), store.Redispatch{})
	cancel()
	switch {
	case errors.Is(err, store.ErrDispatched):
		t.endUnknown(c)
		return
	case errors.Is(err, store.ErrEnded), errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrNotOwner):
		return // another process has ended it
	case err != nil:
		// It is not known whether the attempt was counted, so it is not made.
		t.endUnknown(c)
		return
	}
	c.RunAgain(ctx, a)
	t.count(func(n *ReconcileStats) { n.Redispatched++ })
}

// endUndispatched ends decisions whose calls are not in the store, or were not returned by
// it: a replica sharing the store may have finished one before this process crashed. A
// call that another process has finished is recorded by that process.
func (t *Reconciler) endUndispatched(ctx context.Context) (trouble error) {
	e := t.executor
	t.backlog.Open = slices.DeleteFunc(t.backlog.Open, func(r audit.Record) (known bool) {
		asking, cancel := context.WithTimeout(ctx, gateway.StoreWait)
		defer cancel()
		call, err := e.calls.Get(asking, r.CallID, store.OfAnyone())
		switch {
		case errors.Is(err, store.ErrNotFound), err == nil && call.Step == store.Opened:
			r.Event, r.Outcome, r.Stage, r.Code, r.Attempt, r.Micros = audit.Ending, audit.Unknown, refusal.Execute, refusal.OutcomeUnknown, 0, 0
			r.Time, r.Replica, r.Arguments, r.Completion = e.now(), e.replica, nil, ""
			e.journal.Outcome(r, func() {})
			t.count(func(n *ReconcileStats) { n.Unknown++ })
		case err != nil:
			trouble = err
		case e.executions.EndedBefore(call):
			t.recordOutcome(call, r.ArgumentsSHA256)
		}
		return err == nil || errors.Is(err, store.ErrNotFound)
	})
	return trouble
}
