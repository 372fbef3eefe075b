package gateway

import (
	"context"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/policy"
)

// checkReach is the first step of the stage permission: an agent that could never use the
// tool here is refused before anything of the tool's schema is shown.
func checkReach(_ context.Context, c *Call) error {
	reach, err := c.reachOf(c.tool)
	if err != nil {
		return err
	}
	if reach == policy.Never {
		c.permission.unconditional = true
		return refuse.Denied(c.WrittenName())
	}
	if c.kernel.quarantined(c.tool.Name()) || c.redefinedSince() {
		return refuse.Quarantined(c.WrittenName())
	}
	return nil
}

// checkPermission is the second step: the agent may make this very call, in this thread. Only a condition
// reads its arguments.
func checkPermission(ctx context.Context, c *Call) error {
	if err := c.readPast(ctx); err != nil {
		return err
	}
	if reach, err := c.reachOf(c.tool); err != nil || reach == policy.Always {
		c.permission.unconditional = err == nil
		return err
	}
	decision, err := c.permit(ctx, c.arguments())
	if p := c.past; c.inPast != nil && p.old && (err != nil || !decision.Allowed || len(decision.Asks) > 0) {
		if err := p.readLatest(ctx, c.kernel, c); err != nil {
			return err
		}
		c.permission.rejudged = true
		decision, err = c.permit(ctx, c.arguments())
	}
	if err != nil {
		return err
	}
	c.permission.rows = decision.Rows
	if decision.Allowed {
		c.permission.decision = decision
		return nil
	}
	return c.denied(&decision)
}

// foreseePermission is checkPermission for a call whose arguments nobody has. What depends on them
// passes: the outlook says so.
func foreseePermission(ctx context.Context, c *Call) (err error) {
	c.permission.outlook, c.permission.rows, err = c.config.Policy.Foresee(ctx, c.policyRequest(nil))
	if err == nil && c.permission.outlook == policy.WillDeny {
		return refuse.Denied(c.WrittenName())
	}
	return err
}

func (c *Call) policyRequest(arguments map[string]any) policy.Request {
	return policy.Request{Agent: c.subject.Agent, Workspace: c.subject.Workspace, Project: c.subject.Project, Tool: c.tool.Name(),
		Arguments: arguments}
}

// permit asks the policy of the call. Each call is counted once, as the policy decides it.
func (c *Call) permit(ctx context.Context, arguments map[string]any) (policy.Decision, error) {
	r := c.policyRequest(arguments)
	permit := c.config.Policy.PermitCounted
	if c.checked || c.permission.rejudged {
		permit = c.config.Policy.Permit
	}
	if c.inPast == nil {
		return permit(ctx, r)
	}
	r.Past = c.view(c.past.kept)
	d, err := permit(ctx, r)
	c.inPast.saw, c.inPast.lacks = r.Past.Saw(), r.Past.Lacks()
	return d, err
}

// decidingRows are the policy rows that decided, as file:line; none where no row matched, or the
// policy was not asked.
func (c *Call) decidingRows(ctx context.Context) []string {
	if c.permission.unconditional {
		// The arguments do not matter. A policy that cannot say it again has decided all the same.
		decision, _ := c.permit(ctx, nil)
		return decision.Rows
	}
	return c.permission.rows
}
