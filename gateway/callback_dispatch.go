package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// runCallback is the type of tools that only take a call.
const runCallback = "callback"

// callsBack tells whether the tool of a call only accepts the call, and sends its answer
// later.
func (c *call) callsBack() bool { return c.tool.Run().Type == runCallback }

// dispatchCallback sends a call to a tool that calls back. The call is stored as waiting
// before it is sent, so that an answer finds it even if the answer comes before the
// acknowledgement, or after this process has died. A call that the tool does not accept
// ends at once. The caller waits for the answer until ctx ends or the tool's time is over.
func (c *execution) dispatchCallback(ctx context.Context, start time.Time) Outcome {
	acting := context.WithoutCancel(ctx)
	until := start.Add(c.tool.Run().MaxAge)
	noted := c.trace.start()
	err := c.storePending(acting, until)
	c.trace.storeStep(acting, noted, err)
	if err != nil {
		return c.finish(ctx, tool.Result{}, refuseUnsaved(acting, err), start)
	}
	output, err := c.runEngine(acting)
	if err != nil || !output.Pending {
		return c.finish(ctx, output, err, start)
	}
	c.trace.add(string(refusal.Execute), start, c.trace.start(), nil)
	o := c.kernel.awaitEnd(ctx, c.call, c.pendingOutcome(start, until))
	o.deadline = time.Time{} // it was waited for
	return o
}

// pendingOutcome is the outcome of a waiting call. The caller waits until then, but no
// longer than the tool's timeout.
func (c *execution) pendingOutcome(start, until time.Time) Outcome {
	deadline := start.Add(c.tool.Run().Timeout)
	if until.Before(deadline) {
		deadline = until
	}
	return Outcome{CallID: c.id, Pending: true, Status: http.StatusAccepted, deadline: deadline}
}
