package calls

import (
	"context"
	"net/http"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// dispatchCallback sends a call to a tool that calls back. The call is stored as waiting
// before it is sent, so that an answer finds it even if the answer comes before the
// acknowledgement, or after this process has died. A call that the tool does not accept
// ends at once. The caller waits for the answer until ctx ends or the tool's time is over.
func (c *execution) dispatchCallback(ctx context.Context, a gateway.Approved, start time.Time) Outcome {
	acting := context.WithoutCancel(ctx)
	until := start.Add(c.Tool().SharedRun().MaxAge)
	started := c.Trace().Start()
	err := c.storePending(acting, until)
	c.Trace().StoreStep(acting, started, err)
	if err != nil {
		return c.finish(ctx, tool.Result{}, refuse.Unsaved(acting, err), start)
	}
	output, err := c.run(acting, a, nil)
	if err != nil || !output.Pending {
		return c.finish(ctx, output, err, start)
	}
	c.Trace().Add(string(refusal.Execute), start, c.Trace().Start(), nil)
	o := c.awaitEnd(ctx, c.pendingOutcome(start, until))
	o.deadline = time.Time{} // it was waited for
	return o
}

// pendingOutcome is the outcome of a waiting call. The caller waits until then, but no
// longer than the tool's timeout.
func (c *execution) pendingOutcome(start, until time.Time) Outcome {
	deadline := start.Add(c.Tool().SharedRun().Timeout)
	if until.Before(deadline) {
		deadline = until
	}
	return Outcome{CallID: c.ID(), Pending: true, Status: http.StatusAccepted, deadline: deadline}
}
