package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/callgate/callgate/hook"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
)

// hasCallHooks reports whether a hook is to see the arguments of the call.
func hasCallHooks(c *Call) bool {
	return c.config.Hooks != nil && c.config.Hooks.Applies(hook.Call, c.subject.Agent, c.tool.Name())
}

// checkHooks is the first step of the stage approval: the hooks of the operator let the arguments
// pass, or deny them, or redact them. It comes before people are asked, so that they see what would
// run. Redacted arguments are judged anew; where the application runs the call they are denied, since
// it has the ones that the model wrote.
func checkHooks(ctx context.Context, c *Call) error {
	o := c.runHooks(ctx, c.hookQuestion(hook.Call), c.parsed.Arguments)
	c.callHooks = o.Redacted
	if o.Denied != nil {
		c.callHooks, c.withheld = append(c.callHooks, o.Denied.Hook), true
		return c.refuseHooked(o.Denied)
	}
	if len(o.Redacted) == 0 {
		return nil
	}
	if c.withheld = c.mode != ModeCall; c.withheld {
		return refusal.New(refusal.HookDenied, fmt.Sprintf(
			"The hook %s of this gateway removes a part of these arguments, which cannot be done in a call that the application runs. Send the call again without it.", o.Redacted[0]))
	}
	c.written = c.parsed.Arguments
	c.parsed.Arguments, c.args, c.argumentsSHA256, c.decision, c.rows = o.Value, nil, "", policy.Decision{}, nil
	if refused := c.rejudge(ctx); refused != nil {
		return refusal.New(refusal.HookDenied, fmt.Sprintf(
			"The hook %s of this gateway removes a part of these arguments, and what is left is refused (%s). Send the call again without what must not be in it.",
			o.Redacted[0], refused.Code)).WithCause(refused)
	}
	return nil
}

// rejudge takes the redacted arguments through each check that reads arguments.
func (c *Call) rejudge(ctx context.Context) *refusal.Error {
	c.rejudged = true // the policy has counted the call
	for _, check := range []check{
		{stage: refusal.Schema, run: validateArguments},
		{stage: refusal.Schema, run: checkAnswers},
		{stage: refusal.Permission, run: checkPermission},
		{stage: refusal.Project, run: checkBoundary},
	} {
		if err := guarded(ctx, check, c); err != nil {
			return refusal.From(check.stage, err)
		}
	}
	return nil
}

// hookQuestion is what hooks are told of the call.
func (c *Call) hookQuestion(at hook.Point) hook.Question {
	q := c.judgement.hookQuestion(at, c.parsed.Name)
	q.CallID = c.id
	if c.stored != nil { // its principal is not known any more, only the name
		q.Principal = c.stored.Scope.Principal
	}
	return q
}

func (c *judgement) hookQuestion(at hook.Point, tool string) hook.Question {
	return hook.Question{
		At: at, RequestID: c.request.ID, Mode: string(c.mode), Principal: principalName(c.principal),
		Agent: c.subject.Agent, Workspace: c.subject.Workspace, Project: c.subject.Project, Tool: tool,
	}
}

// runHooks runs the hooks of the configuration over a JSON value.
func (c *judgement) runHooks(ctx context.Context, q hook.Question, value []byte) hook.Outcome {
	return c.runner().Run(ctx, c.config.Hooks, q, value)
}

func (c *judgement) runner() hook.Runner {
	deps := &c.kernel.deps
	return hook.Runner{Asker: deps.Hooks, Observer: deps.HookObserver, Now: deps.Now}
}

// refuseHooked refuses a call that a hook denies.
func (c *Call) refuseHooked(d *hook.Denial) error {
	message := fmt.Sprintf("The hook %s of this gateway does not let these arguments pass: %s. Send the call again without what must not be in it, or say what you cannot do.", d.Hook, d.Reason)
	if d.Failed {
		message = fmt.Sprintf("The hook %s of this gateway could not be asked about this call, so nothing was executed. Retry later; changing the call will not help.", d.Hook)
	}
	return refuseByHook(refusal.Approval, d, message)
}

// refuseByHook is a refusal for a hook that has denied.
func refuseByHook(stage refusal.Stage, d *hook.Denial, message string) *refusal.Error {
	refused := refusal.At(stage, refusal.HookDenied, message)
	if d.Cause != nil {
		return refused.WithCause(fmt.Errorf("hook %s: %w", d.Hook, d.Cause))
	}
	return refused.WithCause(errors.New("hook " + d.Hook))
}
