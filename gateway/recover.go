package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// resume sees to what others have left. Until all of that is known which was before
// this process, nothing is done with any.
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

// load asks for the calls that have been left.
func (t *Reconciler) load(ctx context.Context) error {
	for t.starting {
		calls, err := t.list(ctx, RecoveryStore.Unsettled)
		if t.ended = append(t.ended, calls...); err != nil {
			return err
		}
		if len(calls) == 0 {
			break
		}
	}
	for {
		calls, err := t.list(ctx, RecoveryStore.Recover)
		t.abandoned = append(t.abandoned, calls...)
		if err != nil || len(calls) < reconcileBatch {
			return err
		}
	}
}

// dropRecorded puts aside what the journal holds the outcome of: a call that was dispatched
// in the store, and then refused because that could not be confirmed in time. The
// decisions that are left are those whose calls the store has not told.
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

// closeRecorded ends a call in the store whose outcome stands in the journal.
func (t *Reconciler) closeRecorded(call store.Call) {
	k := t.kernel
	if call.Step == store.Ended {
		k.settle(call.ID)
		return
	}
	refused := refusal.From(refusal.Execute, refuseUnsaved(context.Background(), errors.New("ended before")))
	e := store.Ending{State: store.Done, Attempt: k.newAttempt(), Answer: store.Answer{
		Result: refusedResult(Report{Tool: call.Task.Tool, HasTool: true}, refused).Line, Status: refused.Status(),
	}}
	k.pending.run(func() {
		for {
			ctx, cancel := context.WithTimeout(context.Background(), storeWait)
			_, err := ask(k.calls, func(s CallStore) (store.Call, error) { return s.Finish(ctx, call.ID, e) })
			cancel()
			if err == nil || errors.Is(err, store.ErrEnded) || errors.Is(err, store.ErrNotFound) {
				k.settle(call.ID)
				return
			}
			time.Sleep(retryInterval)
		}
	})
}

// recordEnded writes down the outcomes of calls that have ended.
func (t *Reconciler) recordEnded() {
	for i := range t.ended {
		t.recordOutcome(newStoredCall(t.ended[i]), t.arguments[t.ended[i].ID])
	}
	t.ended, t.arguments = nil, nil
}

// recordOutcome writes down the outcome of a call that has ended. Its arguments are not
// kept by then.
func (t *Reconciler) recordOutcome(call *storedCall, argumentsSHA256 string) {
	k := t.kernel
	c := k.restore(call)
	r := c.record(audit.Ending)
	r.Verdict, r.Attempt, r.ArgumentsSHA256 = audit.ToolCall, max(call.Attempts, 1), argumentsSHA256
	r.Outcome, r.Stage, r.Code = storedOutcome(call)
	r.Micros = call.Ended.Sub(call.Opened).Microseconds()
	k.writeOutcome(r, func() { k.settle(c.id) })
	t.count(func(n *ReconcileStats) { n.Recorded++ })
}

// storedOutcome is the outcome of a call as its answer tells it.
func storedOutcome(call *storedCall) (audit.Outcome, refusal.Stage, refusal.Code) {
	refused := call.result().Refusal
	switch {
	case refused == nil:
		return audit.Result, "", ""
	case !call.Until.IsZero() && !call.Ended.Before(call.Until) && (refused.Code == refusal.ToolTimeout || refused.Code == refusal.OutcomeUnknown):
		return audit.Expired, refused.Stage, refused.Code
	}
	return auditOutcome(refused.Code), refused.Stage, refused.Code
}

// recoverCall sees to a call whose process has gone.
func (t *Reconciler) recoverCall(ctx context.Context, call store.Call) {
	if call.Step != store.Dispatched {
		return // a call that waits goes on waiting
	}
	c := t.kernel.restore(newStoredCall(call))
	roots, err := c.rerunnable()
	if err != nil {
		t.runLimited(ctx, t.endSlots, func() { t.endUnknown(c) })
		return
	}
	t.runLimited(ctx, t.runSlots, func() { t.redispatch(ctx, c, roots) })
}

// runLimited does something beside, when there is room. What is not begun when ctx ends
// is left to the next process.
func (t *Reconciler) runLimited(ctx context.Context, room chan struct{}, do func()) {
	t.started.Add(1)
	t.kernel.pending.run(func() {
		defer t.started.Done()
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			do()
		case <-ctx.Done():
		}
	})
}

// endUnknown ends a call of which nobody knows what became.
func (t *Reconciler) endUnknown(c *execution) {
	c.finish(context.Background(), tool.Result{}, refuseLost(), c.started)
	t.count(func(n *ReconcileStats) { n.Unknown++ })
}

func refuseLost() error {
	return refusal.New(refusal.OutcomeUnknown, "Callgate ended while the tool ran. Whether it acted is not known; do not send the call again without finding out.")
}

// rerunnable says why a call must not be dispatched again, or what its tool is given
// beside the arguments.
func (c *execution) rerunnable() (*policy.Project, error) {
	switch {
	case c.tool != nil && c.callsBack():
		return nil, errors.New("its tool calls back, and may have the call")
	case c.stored.Task.Effect != "read" && c.stored.Task.Effect != "idempotent":
		return nil, errors.New("its effect may not be had twice")
	case c.tool == nil, c.kernel.quarantined(c.parsed.Name), !c.argumentsValid():
		return nil, errors.New("its tool is not what it was")
	case c.stored.Attempts >= maxDispatches:
		return nil, errors.New("it was dispatched too often")
	}
	project, err := c.config.Workspaces.Project(c.subject.Agent, c.subject.Workspace, c.subject.Project)
	if err == nil && project == nil {
		err = errors.New("no project was entered")
	}
	return project, err
}

// argumentsValid tells whether the arguments are such as the tool asks for now.
func (c *call) argumentsValid() bool {
	value, err := parser.ReadValue(c.parsed.Arguments, c.config.Output.MaxDepth)
	arguments, ok := value.(map[string]any)
	return err == nil && ok && len(c.tool.Evaluate(arguments)) == 0
}

// redispatch dispatches a call once more.
func (t *Reconciler) redispatch(ctx context.Context, c *execution, project *policy.Project) {
	k := t.kernel
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	attempt, err := ask(t.store, func(s RecoveryStore) (int, error) { return s.Redispatch(asking, c.id) })
	cancel()
	switch {
	case errors.Is(err, store.ErrDispatched):
		t.endUnknown(c)
		return
	case errors.Is(err, store.ErrEnded), errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrNotOwner):
		return // another has seen to it
	case err != nil:
		// Whether the attempt was counted is not known. It is not made.
		t.endUnknown(c)
		return
	}
	c.project, c.priorAttempts = project, attempt-1
	start := k.deps.Now()
	output, err := c.runEngine(context.WithoutCancel(ctx))
	t.count(func(n *ReconcileStats) { n.Redispatched++ })
	if err == nil && output.Pending {
		c.markPending(ctx, output, start)
		return
	}
	c.finish(ctx, output, err, start)
}

// endUndispatched sees to decisions whose calls the store does not have, or has without
// having told so: what shares it may have taken an end in, and then this process's
// end came before it was noted here. The outcomes of calls that others have ended
// are theirs.
func (t *Reconciler) endUndispatched(ctx context.Context) (trouble error) {
	k := t.kernel
	t.backlog.Open = slices.DeleteFunc(t.backlog.Open, func(r audit.Record) (known bool) {
		asking, cancel := context.WithTimeout(ctx, storeWait)
		defer cancel()
		call, err := k.find(asking, r.CallID)
		switch {
		case errors.Is(err, store.ErrNotFound), err == nil && call.Step == store.Opened:
			r.Event, r.Outcome, r.Stage, r.Code, r.Attempt, r.Micros = audit.Ending, audit.Unknown, refusal.Execute, refusal.OutcomeUnknown, 0, 0
			r.Time, r.Replica, r.Arguments, r.Completion = k.deps.Now(), k.deps.Replica, nil, ""
			k.writeOutcome(r, func() {})
			t.count(func(n *ReconcileStats) { n.Unknown++ })
		case err != nil:
			trouble = err
		case k.endedHere(call):
			t.recordOutcome(call, r.ArgumentsSHA256)
		}
		return err == nil || errors.Is(err, store.ErrNotFound)
	})
	return trouble
}
