package gateway

import (
	"context"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// refusedUnlimited is said where there is nobody to ask for the limits.
const refusedUnlimited = "The limits cannot be asked now, so nothing was executed. This cannot be mended by changing the call."

// charge is the stage rate: every limit that applies, and a concurrency slot, all
// or none. The project's own limit is taken only by an agent of that project:
// one that will be refused there must not spend what is others'.
func charge(ctx context.Context, c *call) error {
	limiter := c.kernel.deps.Limiter
	if limiter == nil {
		return refusal.New(refusal.LimiterUnavailable, refusedUnlimited)
	}
	key := ratelimit.Key{Agent: c.subject.Agent, Tool: c.tool.Name()}
	if checkWorkspace(ctx, c) == nil && checkProject(ctx, c) == nil {
		key.Workspace, key.Project = c.subject.Workspace, c.subject.Project
	}
	lease, err := limiter.Take(ctx, c.config.Limits, key)
	if err != nil {
		return err
	}
	c.lease = lease
	return nil
}
