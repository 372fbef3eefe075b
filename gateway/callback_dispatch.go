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

// callsBack tells whether a call's tool only takes the call, and answers by calling
// back.
func (c *call) callsBack() bool { return c.tool.Run().Type == runCallback }

// dispatchCallback gives a call to a tool that calls back. That it waits, and until when,
// is durable before its tool hears of it: an answer that comes before the tool has
// acknowledged the call, or after this process has gone, finds a call that waits.
// What the tool does not take ends at once. Whoever asked, and is there until ctx
// ends, waits for the answer as long as the tool may take.
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

// pendingOutcome is the outcome of a call that waits: until then whoever asked does too,
// but no longer than its tool's timeout.
func (c *execution) pendingOutcome(start, until time.Time) Outcome {
	deadline := start.Add(c.tool.Run().Timeout)
	if until.Before(deadline) {
		deadline = until
	}
	return Outcome{CallID: c.id, Pending: true, Status: http.StatusAccepted, deadline: deadline}
}
