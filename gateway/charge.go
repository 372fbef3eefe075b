package gateway

import (
	"context"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// noLimiter is said where there is nobody to ask for the limits.
const noLimiter = "The limits cannot be asked now, so nothing was executed. This cannot be mended by changing the call."

// take is the stage rate: every limit that applies, and a concurrency slot, all
// or none. The project's own limit is taken only by an agent of that project:
// one that will be refused there must not spend what is others'.
func take(ctx context.Context, c *call) error {
	limiter := c.kernel.parts.Limiter
	if limiter == nil {
		return refusal.New(refusal.LimiterUnavailable, noLimiter)
	}
	key := ratelimit.Key{Agent: c.subject.Agent, Tool: c.tool.Name()}
	if enterWorkspace(ctx, c) == nil && enterProject(ctx, c) == nil {
		key.Workspace, key.Project = c.subject.Workspace, c.subject.Project
	}
	lease, err := limiter.Take(ctx, c.state.Limits, key)
	if err != nil {
		return err
	}
	c.lease = lease
	return nil
}
