package gateway

import (
	"context"
	"fmt"

	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
)

// checkReach is the first step of the stage permission: an agent that could never use the
// tool here is refused before anything of the tool's schema is shown.
func checkReach(_ context.Context, c *Call) error {
	ever, err := c.canReach(c.tool.Name())
	if err != nil {
		return err
	}
	if !ever {
		return refuseDenied(c.WrittenName())
	}
	if c.kernel.quarantined(c.tool.Name()) || c.redefinedSince() {
		return refuseQuarantined(c.WrittenName())
	}
	return nil
}

// reach tells whether the agent could ever use a tool in the workspace and project of the
// call.
func (c *judgement) reach(tool string) (policy.Reach, error) {
	return c.config.Policy.Reach(c.subject.Agent, c.subject.Workspace, c.subject.Project, tool)
}

// canReach reports whether the agent could ever use a tool.
func (c *judgement) canReach(tool string) (bool, error) {
	reach, err := c.reach(tool)
	return err == nil && reach != policy.Never, err
}

// checkPermission is the second step: the agent may make this very call. Only a condition
// reads its arguments.
func checkPermission(ctx context.Context, c *Call) error {
	if reach, err := c.reach(c.tool.Name()); err != nil || reach == policy.Always {
		return err
	}
	decision, err := c.config.Policy.Permit(ctx, policy.Request{
		Agent: c.subject.Agent, Workspace: c.subject.Workspace, Project: c.subject.Project,
		Tool: c.tool.Name(), Arguments: c.arguments(),
	})
	if err != nil {
		return err
	}
	if decision.Allowed {
		return nil
	}
	return refusal.New(refusal.PermissionDenied, fmt.Sprintf(
		"You may use %s here, but not with these arguments. The policy of this project decides, and trying again will not change it.", c.WrittenName()))
}

func refuseDenied(tool string) error {
	return refusal.New(refusal.PermissionDenied, fmt.Sprintf(
		"You may not use %s here. The policy of this project decides, and trying again will not change it; use another tool, or say what you cannot do.", tool))
}

func refuseQuarantined(tool string) error {
	return refusal.New(refusal.ToolQuarantined, fmt.Sprintf(
		"%s cannot be called now: the operator has not accepted its server's current definition. Trying again will not change that; use another tool, or say what you cannot do.", tool))
}
