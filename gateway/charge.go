package gateway

import (
	"context"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// charge is the stage rate: every limit that applies, and a concurrency slot, all
// or none. The limits of a workspace and a project are charged only where the call may
// act there: one that will be refused must not use up what belongs to others.
func charge(ctx context.Context, c *Call) error {
	limiter := c.kernel.deps.Limiter
	if limiter == nil {
		return refusal.New(refusal.LimiterUnavailable, refuse.Unlimited)
	}
	key := ratelimit.Key{Agent: c.subject.Agent, Tool: c.tool.Name(), Paid: c.paid}
	if c.scope.Entered() {
		key.Workspace, key.Project = c.subject.Workspace, c.subject.Project
	}
	lease, err := limiter.Take(ctx, c.config.Limits, key)
	if err != nil {
		return err
	}
	c.held.lease = lease
	return nil
}
