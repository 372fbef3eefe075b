package calls

import (
	"context"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/execution"
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
func (e *Executor) execute(ctx context.Context, d *gateway.Decision, first *execution.Call) []Outcome {
	defer d.Release()
	acting := context.WithoutCancel(ctx)
	e.approvals.Ask(ctx, d)
	approved, refused := e.door.Approve(d, gateway.ModeCall)
	executions := e.executions.All(approved, first)
	if refused == nil {
		refused = execution.PersistAll(acting, approved, executions)
	}
	outcomes := execution.ExecuteAll(ctx, acting, d, refused, approved, executions)
	for i := range outcomes {
		// Handle waits for a call that has a deadline, and ends its trace then.
		if outcomes[i].Pending && first == nil {
			executions[i].FinishTrace(gateway.VerdictCall, nil, "", 0, nil)
		}
	}
	return outcomes
}
