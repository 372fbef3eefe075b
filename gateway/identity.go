package gateway

import (
	"context"
	"fmt"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// bind is the first step of the stage identity: the caller is within its rate,
// and the agent that the request is for is known.
func bind(ctx context.Context, c *call) error {
	if caller := c.request.Caller; caller != "" {
		limiter := c.kernel.parts.Limiter
		if limiter == nil {
			return refusal.At(refusal.Identity, refusal.LimiterUnavailable, noLimiter)
		}
		if err := limiter.Caller(ctx, c.state.Limits, caller); err != nil {
			return err
		}
	}
	if !c.state.Agents[c.subject.Agent] {
		return refusal.New(refusal.AgentUnknown, "This request is for an agent that nothing here names. Nothing was executed; the agent cannot mend this.")
	}
	return nil
}

// claim is the second step: an agent that the model claims to be must be the
// one that is bound. A claim never widens anything.
func claim(_ context.Context, c *call) error {
	if c.parsed.Claimed && c.parsed.Claim != c.subject.Agent {
		return refusal.New(refusal.AgentMismatch, fmt.Sprintf(
			"The call says \"agent\": %s, which is not the agent that it is made for. Send the call again with your own agent's name, or without the member \"agent\".", parser.Quote(c.parsed.Claim)))
	}
	return nil
}
