package calls

import (
	"context"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Execute runs the calls of a decision of ModeCall, in their order, and releases it. A
// decision that is refused runs nothing; one is executed once. From dispatch on, the calls
// do not end with ctx: if the caller disconnects, the outcome is still recorded.
//
// All calls are in the store before the first is dispatched, or none is dispatched; and
// each is marked as dispatched in the store before its tool is called.
func (e *Executor) Execute(ctx context.Context, d *gateway.Decision) []Outcome {
	return e.execute(ctx, d, nil)
}

// execute is Execute for a decision whose first call may be in the store already, under its
// idempotency key; otherwise first is nil.
func (e *Executor) execute(ctx context.Context, d *gateway.Decision, first *execution) []Outcome {
	defer d.Release()
	acting := context.WithoutCancel(ctx)
	e.approvals.Ask(ctx, d)
	approved, refused := e.Approve(d, gateway.ModeCall)
	executions := make([]*execution, len(approved))
	for i, a := range approved {
		executions[i] = &execution{Call: a.Call(), executor: e} // a text has no call
		if i == 0 && first != nil && a.Call() != nil {
			executions[i] = first
		}
	}
	if refused == nil {
		refused = e.persist(acting, approved, executions)
	}
	outcomes := outcomesOf(d, refused, func(i int) Outcome { return executions[i].execute(ctx, acting, approved[i]) })
	for i := range outcomes {
		// Handle waits for a call that has a deadline, and ends its trace then.
		if outcomes[i].Pending && first == nil {
			executions[i].FinishTrace(gateway.VerdictCall, nil, "", 0, nil)
		}
	}
	return outcomes
}

// execute dispatches one call and returns its outcome. The caller waits until ctx ends; the
// call goes on with acting, which does not.
func (c *execution) execute(ctx, acting context.Context, a gateway.Approved) Outcome {
	if err := c.markDispatched(acting); err != nil {
		return c.refuseUndispatched(acting, refusal.From(refusal.Execute, err))
	}
	start := c.executor.now()
	if c.CallsBack() {
		return c.dispatchCallback(ctx, a, start)
	}
	output, err := c.runTool(acting, a)
	if err == nil && output.Pending {
		return c.markPending(ctx, output, start)
	}
	return c.finish(ctx, output, err, start)
}

// runTool runs the tool, and passes its progress and logs to the caller meanwhile. If the
// tool asks questions that the call answers in advance, runTool runs it once more with the
// answers, within the same call.
func (c *execution) runTool(ctx context.Context, a gateway.Approved) (tool.Result, error) {
	notifier := c.Dialogue().Notifier()
	if notifier != nil {
		notifier.Filter(c.MessageFilter())
		defer notifier.Stop()
	}
	output, err := c.run(ctx, a, notifier)
	if !a.AnswerInAdvance(output.InputRequired) {
		return output, err
	}
	tried := max(output.Attempts, 1)
	output, err = c.run(ctx, a, notifier)
	output.Attempts = tried + max(output.Attempts, 1)
	return output, err
}

func (c *execution) run(ctx context.Context, a gateway.Approved, notifier *events.Notifier) (tool.Result, error) {
	return c.executor.runner.Run(ctx, a, notifier)
}

// refuseUndispatched ends a call whose tool was not called.
func (c *execution) refuseUndispatched(ctx context.Context, refused *refusal.Error) Outcome {
	c.forget(ctx)
	c.RecordNotRun(refused)
	c.FinishTrace(gateway.VerdictRefused, refused, audit.Failed, 0, nil)
	o := Outcome{CallID: c.ID(), Refusal: refused, Status: httpStatus(refused)}
	o.setResult(refusedResult(gateway.Report{Tool: c.ToolName(), HasTool: true}, refused))
	return o
}
