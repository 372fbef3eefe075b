package calls

import (
	"context"
	"errors"
	"net/http"
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

// resume recovers what other processes have left. At the start that is joined with what the journal says
// of it: until all of that is known, nothing is dispatched.
func (t *Reconciler) resume(ctx context.Context) error {
	err := t.load(ctx)
	if t.starting {
		if err == nil {
			err = t.closeRecorded()
		}
		if err == nil {
			err = t.endOpen(ctx)
		}
		if err != nil {
			return err
		}
		t.starting, t.backlog = false, Backlog{}
	}
	for _, call := range t.abandoned {
		t.recoverCall(ctx, call)
	}
	t.abandoned = nil
	return err
}

// load reads the calls that have been abandoned, and at the start those that are owed.
func (t *Reconciler) load(ctx context.Context) error {
	for reason := store.Abandoned; ; {
		calls, err := t.recover(ctx, reason)
		t.abandoned = append(t.abandoned, calls...)
		switch {
		case err != nil:
			return err
		case len(calls) == reconcileBatch:
		case reason == store.Owed || !t.starting:
			return nil
		default:
			reason = store.Owed
		}
	}
}

// closeRecorded ends the calls in the store whose outcome is in the journal already: those that were handed
// over, and those that the store has dispatched, but could not confirm in time. Those that were owed are no more.
func (t *Reconciler) closeRecorded() error {
	if len(t.abandoned) == 0 || t.backlog.Ended == nil {
		return nil
	}
	ids := make([]string, len(t.abandoned))
	for i := range t.abandoned {
		ids[i] = t.abandoned[i].ID
	}
	ended, err := t.backlog.Ended(ids)
	if err != nil {
		return err
	}
	t.abandoned = slices.DeleteFunc(t.abandoned, func(call store.Call) bool {
		outcome, recorded := ended[call.ID]
		if recorded && call.Owed() {
			t.executor.executions.Acquit(stored.New(call))()
		} else if recorded {
			answer := store.Answer{Status: http.StatusOK}
			if outcome != audit.HandedOver {
				refused := refusal.From(refusal.Execute, refuse.Unsaved(context.Background(), errors.New("ended before")))
				answer.Status = refused.Status()
				answer.Result = execution.RefusedResult(gateway.Report{Tool: call.Task.Tool, HasTool: true}, refused).Line
			}
			t.executor.journal.Go(func() { t.executor.executions.CloseStored(call.ID, answer) })
		}
		return recorded
	})
	t.backlog.Ended = nil // it is asked once: it may read the whole journal
	return nil
}

// endOpen records the outcomes of decisions that have none and whose calls have ended, or are not in the
// store: those were not dispatched, or are forgotten. A call that another node has ended is recorded there.
func (t *Reconciler) endOpen(ctx context.Context) error {
	e := t.executor
	for ; len(t.backlog.Open) > 0; t.backlog.Open = t.backlog.Open[1:] {
		r := t.endOf(t.backlog.Open[0])
		asking, cancel := context.WithTimeout(ctx, gateway.StoreWait)
		call, err := e.calls.Get(asking, r.CallID, store.OfRecovery())
		cancel()
		switch {
		case errors.Is(err, store.ErrNotFound), err == nil && call.Step == store.Opened:
			r.Outcome, r.Stage, r.Code = audit.Unknown, refusal.Execute, refusal.OutcomeUnknown
			e.journal.Outcome(r, nil)
			t.count(func(n *ReconcileStats) { n.Unknown++ })
		case err != nil:
			return err
		case e.executions.EndedBefore(call):
			t.recordStored(r, call)
		}
	}
	return nil
}

// recordStored records the outcome of a call that the store has ended.
func (t *Reconciler) recordStored(r audit.Record, call *stored.Call) {
	e := t.executor
	r.Outcome, r.Stage, r.Code = storedOutcome(call)
	r.Attempt, r.Micros = max(call.Attempts, 1), call.Ended.Sub(call.Opened).Microseconds()
	if call.Counted.Turn > 0 {
		r.Ledger, r.Turn, r.Adds = call.Task.Ledger, call.Counted.Turn, call.Counted.Adds
	}
	e.journal.Outcome(r, e.executions.Acquit(call))
	t.count(func(n *ReconcileStats) { n.Recorded++ })
}

// endOf is the record of the end of a decision's call, with the members that all records of one call have.
func (t *Reconciler) endOf(r audit.Record) audit.Record {
	r.Time, r.Event, r.Replica, r.Micros = t.executor.now(), audit.Ending, t.executor.replica, 0
	r.Arguments, r.Completion, r.Approvals, r.Rules, r.Rows, r.Hooks, r.Spends = nil, "", nil, nil, nil, nil, nil
	r.Turn, r.CallerTurn, r.Adds, r.Saw = 0, 0, nil, nil // each turn is in one record
	return r
}

// storedOutcome reads the outcome of a call from its stored answer.
func storedOutcome(call *stored.Call) (audit.Outcome, refusal.Stage, refusal.Code) {
	refused := call.Result().Refusal
	switch {
	case refused == nil:
		return audit.Result, "", ""
	case !call.Until.IsZero() && !call.Ended.Before(call.Until) &&
		(refused.Code == refusal.ToolTimeout || refused.Code == refusal.OutcomeUnknown):
		return audit.Expired, refused.Stage, refused.Code
	}
	return execution.AuditOutcome(refused.Code), refused.Stage, refused.Code
}

// recoverCall ends a call whose process has died, or dispatches it again. Of one that has ended, it records
// the outcome.
func (t *Reconciler) recoverCall(ctx context.Context, call store.Call) {
	if call.Owed() {
		ended := stored.New(call)
		t.recordStored(t.executor.executions.Restore(ended).Outcome(audit.ToolCall), ended)
	}
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
	return refusal.New(refusal.OutcomeUnknown,
		"Callgate ended while the tool ran. Whether it acted is not known; do not send the call again without finding out.")
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
	case c.Stopped() != nil: // it may have acted before
		t.endUnknown(c)
		return
	}
	c.RunAgain(ctx, a)
	t.count(func(n *ReconcileStats) { n.Redispatched++ })
}
