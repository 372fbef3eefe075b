package gateway

import (
	"context"
	"fmt"

	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
)

// reach is the first step of the stage permission: an agent that could never
// use the tool here is told so, and nothing of the tool's schema.
func reach(_ context.Context, c *call) error {
	ever, err := c.reaches(c.tool.Name())
	if err != nil {
		return err
	}
	if !ever {
		return denied(c.written())
	}
	if c.kernel.quarantined(c.tool.Name()) || c.overtaken() {
		return quarantine(c.written())
	}
	return nil
}

// reaches tells whether the agent could ever use a tool where the call acts.
func (c *call) reaches(tool string) (bool, error) {
	r, err := c.state.Policy.Reach(c.subject.Agent, c.subject.Workspace, c.subject.Project, tool)
	return err == nil && r != policy.Never, err
}

// permit is the second step: the agent may make this very call.
func permit(ctx context.Context, c *call) error {
	decision, err := c.state.Policy.Permit(ctx, policy.Request{
		Agent: c.subject.Agent, Workspace: c.subject.Workspace, Project: c.subject.Project,
		Tool: c.tool.Name(), Arguments: c.args,
	})
	if err != nil {
		return err
	}
	if decision.Allowed {
		return nil
	}
	return refusal.New(refusal.PermissionDenied, fmt.Sprintf(
		"You may use %s here, but not with these arguments. The policy of this project decides, and trying again will not change it.", c.written()))
}

func denied(tool string) error {
	return refusal.New(refusal.PermissionDenied, fmt.Sprintf(
		"You may not use %s here. The policy of this project decides, and trying again will not change it; use another tool, or say what you cannot do.", tool))
}

func quarantine(tool string) error {
	return refusal.New(refusal.ToolQuarantined, fmt.Sprintf(
		"%s cannot be called now: its server does not say of it what the operator has accepted. Trying again will not change that; use another tool, or say what you cannot do.", tool))
}
