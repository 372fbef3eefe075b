package execution

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/consent"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/tool"
)

// ExecuteAll executes the calls of a decision one after the other, unless it is refused, and returns the
// outcome of each input.
func ExecuteAll(ctx, acting context.Context, d *gateway.Decision, refused *refusal.Error, approved []gateway.Approved, executions []*Call) []Outcome {
	var room []Outcome
	if len(executions) > 0 {
		room = executions[0].outcomes[:0]
	}
	return outcomesIn(room, d, refused, func(i int) Outcome { return executions[i].Execute(ctx, acting, approved[i]) })
}

// Execute dispatches one call and returns its outcome. The caller waits until ctx ends; the
// call continues with acting, which does not.
func (c *Call) Execute(ctx, acting context.Context, a gateway.Approved) Outcome {
	err := c.Stopped()
	if err == nil {
		err = c.CheckCaller()
	}
	if err == nil {
		err = c.MarkDispatched(acting)
	}
	if err != nil {
		return c.refuseUndispatched(acting, refusal.From(refusal.Execute, err))
	}
	start := c.runtime.now()
	// Who has stopped it meanwhile was told what runs, perhaps before the store had this.
	if err := c.Stopped(); err != nil {
		return c.finish(ctx, acting, tool.Result{}, err, start)
	}
	if c.CallsBack() {
		return c.dispatchCallback(ctx, a, start)
	}
	output, err := c.runTool(acting, a)
	if err == nil && output.Pending {
		return c.markPending(ctx, output, start)
	}
	return c.finish(ctx, acting, output, err, start)
}

// MarkDispatched stores durably that the tool is about to be called. With an error the tool
// must not be called.
func (c *Call) MarkDispatched(ctx context.Context) error {
	bounded := c.dispatching.WithTimeout(ctx, gateway.StoreWait)
	defer bounded.Cancel()
	task := c.StoreTask()
	start := c.Trace().Start()
	err := c.runtime.calls.Dispatch(bounded, c.ID(), task)
	c.Trace().StoreStep(ctx, start, err)
	switch {
	case errors.Is(err, approval.ErrUsed):
		return consent.RefuseUsed(c.WrittenName()).WithCause(err)
	case errors.Is(err, approval.ErrEnded):
		return c.runtime.approvals.RefuseGone(ctx, task.Using).WithCause(err)
	case err != nil:
		return refuse.Unsaved(ctx, err)
	}
	c.opened = false
	return nil
}

// refuseUndispatched ends a call whose tool was not called.
func (c *Call) refuseUndispatched(ctx context.Context, refused *refusal.Error) Outcome {
	c.Forget(ctx)
	c.RecordNotRun(refused)
	c.FinishTrace(gateway.VerdictRefused, refused, audit.Failed, 0, nil)
	o := Outcome{CallID: c.ID(), Refusal: refused, Status: httpStatus(refused)}
	o.SetResult(RefusedResult(gateway.Report{Tool: c.ToolName(), HasTool: true}, refused))
	return o
}

// runTool runs the tool, and passes its progress and logs to the caller meanwhile. If the
// tool asks questions that the call answers in advance, runTool runs it once more with the
// answers, within the same call.
func (c *Call) runTool(ctx context.Context, a gateway.Approved) (tool.Result, error) {
	notifier := c.Dialogue().Notifier()
	if notifier != nil {
		notifier.Filter(c.Hooks().Filter())
		defer notifier.Stop()
	}
	output, err := c.run(ctx, a, notifier)
	if c.Stopped() != nil || !a.AnswerInAdvance(output.InputRequired) {
		return output, err
	}
	tried := max(output.Attempts, 1)
	output, err = c.run(ctx, a, notifier)
	output.Attempts = tried + max(output.Attempts, 1)
	return output, err
}

func (c *Call) run(ctx context.Context, a gateway.Approved, notifier *events.Notifier) (tool.Result, error) {
	return c.runtime.runner.Run(ctx, a, notifier)
}

// dispatchCallback sends a call to a tool that calls back. The call is stored as waiting
// before it is sent, so that an answer finds it even if the answer comes before the
// acknowledgement, or after this process has died. A call that the tool does not accept
// ends at once. The caller waits for the answer until ctx ends or the tool's time is over.
func (c *Call) dispatchCallback(ctx context.Context, a gateway.Approved, start time.Time) Outcome {
	acting := context.WithoutCancel(ctx)
	until := start.Add(c.Tool().SharedRun().MaxAge)
	started := c.Trace().Start()
	err := c.storePending(acting, until)
	c.Trace().StoreStep(acting, started, err)
	if err != nil {
		// This is what the call ends with, for whoever repeats its key.
		return c.Finish(ctx, tool.Result{}, refusal.New(refusal.StoreUnavailable, "The call could not be saved and was not executed. "+
			"Retry later, with a new idempotency key if it had one; changing the call will not help.").WithCause(err), start)
	}
	output, err := c.run(acting, a, nil)
	if err != nil || !output.Pending {
		return c.Finish(ctx, output, err, start)
	}
	c.Trace().Add(string(refusal.Execute), start, c.Trace().Start(), nil)
	o := c.AwaitEnd(ctx, c.pendingOutcome(start, until))
	o.deadline = time.Time{} // it was waited for
	return o
}

// pendingOutcome is the outcome of a waiting call. The caller waits until then, but no
// longer than the tool's timeout.
func (c *Call) pendingOutcome(start, until time.Time) Outcome {
	deadline := start.Add(c.Tool().SharedRun().Timeout)
	if until.Before(deadline) {
		deadline = until
	}
	return Outcome{CallID: c.ID(), Pending: true, Status: http.StatusAccepted, deadline: deadline}
}

// markPending stores that the tool answers later. If the store fails, that is tried again
// in the background; until then the call looks like a running one.
func (c *Call) markPending(ctx context.Context, output tool.Result, start time.Time) Outcome {
	until := output.Until
	if until.IsZero() {
		until = start.Add(c.Tool().SharedRun().Timeout)
	}
	taken := c.Trace().Start()
	c.Trace().Add(string(refusal.Execute), start, taken, nil)
	err := c.storePending(ctx, until)
	c.Trace().StoreStep(ctx, taken, err)
	if errors.Is(err, store.ErrEnded) { // the answer came first
		call, err := c.runtime.calls.Get(context.WithoutCancel(ctx), c.ID(), store.OfAnyone())
		if err == nil && call.Step == store.Ended {
			return c.priorOutcome(context.WithoutCancel(ctx), call)
		}
	} else if notStored(err) {
		c.runtime.journal.Go(func() {
			_ = journal.Retry(context.WithoutCancel(ctx), journal.RetryInterval, func() error {
				if err := c.storePending(ctx, until); notStored(err) {
					return err
				}
				return nil
			})
		})
	}
	return c.pendingOutcome(start, until)
}

func (c *Call) storePending(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateway.StoreWait)
	defer cancel()
	return c.runtime.calls.Update(ctx, c.ID(), store.Defer{Until: until})
}

// notStored reports whether an error is a failure of the store, not an answer about the call.
func notStored(err error) bool {
	return err != nil && !errors.Is(err, store.ErrEnded) && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDispatched) &&
		!errors.Is(err, store.ErrNotOwner)
}

// AwaitEnd waits until a pending call has ended, for as long as its tool may take and
// the caller stays, and until the process drains. A call that has not ended by then stays pending.
func (c *Call) AwaitEnd(ctx context.Context, pending Outcome) (o Outcome) {
	o = pending
	start := c.Trace().Start()
	defer func() {
		c.Trace().Step("wait", start, nil)
		c.FinishTrace(gateway.VerdictCall, o.Refusal, "", 0, o.Result)
	}()
	principal := c.Principal()
	waiting, cancel := context.WithTimeout(ctx, o.deadline.Sub(c.runtime.now()))
	defer cancel()
	defer context.AfterFunc(c.runtime.draining, cancel)()
	call, err := c.runtime.calls.WaitFor(waiting, c.ID(), principal, func(call *stored.Call) bool { return call.Step == store.Ended })
	if err != nil && ctx.Err() == nil {
		// Nobody is made to wait for the next look at what has expired.
		if call, err = c.runtime.calls.Get(ctx, c.ID(), store.Of(principal)); err == nil && call.Expired(c.runtime.now()) {
			c.runtime.Expire(ctx, call)
			call, err = c.runtime.calls.Get(ctx, c.ID(), store.Of(principal))
		}
	}
	if err != nil || call.Step != store.Ended || c.runtime.calls.MarkDelivered(ctx, call) != nil {
		return o
	}
	return outcomeOf(call, c.Dialogue())
}

// RunAgain runs the tool of a restored call once more, and ends the call unless the tool answers
// later.
func (c *Call) RunAgain(ctx context.Context, a gateway.Approved) {
	c.priorAttempts = c.stored.Attempts
	start := c.runtime.now()
	output, err := c.run(context.WithoutCancel(ctx), a, nil)
	if err == nil && output.Pending {
		c.markPending(ctx, output, start)
		return
	}
	c.Finish(ctx, output, err, start)
}
