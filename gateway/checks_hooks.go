package gateway

import (
	"context"
	"fmt"
	"slices"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/hooks"
	"github.com/callgate/callgate/gateway/refuse"
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
	by := c.hooksBy()
	by.Label = func([]string) bool { return c.inPast != nil }
	o := by.Run(ctx, hook.Call, c.parsed.Arguments)
	c.hooks.names = slices.Concat(o.Redacted, o.Labelled)
	if o.Denied != nil {
		c.hooks.names, c.hooks.withheld = append(c.hooks.names, o.Denied.Hook), true
		return hooks.RefuseArguments(o.Denied)
	}
	defer func() {
		if c.inPast != nil { // what was redacted is counted anew
			c.inPast.own.Labels = hook.AddLabels(c.inPast.own.Labels, o.Labels...)
		}
	}()
	if len(o.Redacted) == 0 {
		return nil
	}
	if c.hooks.withheld = c.mode != ModeCall; c.hooks.withheld {
		return refusal.New(refusal.HookDenied, fmt.Sprintf(
			"The hook %s of this gateway removes a part of these arguments, which cannot be done in a call that the application runs. Send the call again without it.", o.Redacted[0]))
	}
	c.hooks.unredacted = c.parsed.Arguments
	c.parsed.Arguments, c.parsed.decoded, c.digests.arguments = o.Value, nil, ""
	c.permission.decision, c.permission.rows = policy.Decision{}, nil
	if refused := c.rejudge(ctx); refused != nil {
		return refusal.New(refusal.HookDenied, fmt.Sprintf(
			"The hook %s of this gateway removes a part of these arguments, and what is left is refused (%s). Send the call again without what must not be in it.",
			o.Redacted[0], refused.Code)).WithCause(refused)
	}
	return nil
}

// rejudge takes the redacted arguments through each check that reads arguments.
func (c *Call) rejudge(ctx context.Context) *refusal.Error {
	c.permission.rejudged = !c.permission.unconditional // the policy has counted the call
	for _, check := range c.kernel.onArguments {
		if err := guarded(ctx, check, c); err != nil {
			return refusal.From(check.stage, err)
		}
	}
	return nil
}

// hooksBy is what hooks are asked by for the call.
func (c *Call) hooksBy() hooks.Config {
	a := c.kernel.hooksBy(c.config, c.mode, c.subject, c.request.ID)
	a.Question.CallID, a.Question.Tool, a.Question.Principal = c.id, c.parsed.Name, principalName(c.principal)
	if c.held.stored != nil { // its principal is not known any more, only the name
		a.Question.Principal = c.held.stored.Scope.Principal
	}
	return a
}

func (k *Kernel) hooksBy(config *Config, mode Mode, of Subject, requestID string) hooks.Config {
	return hooks.Config{
		Unread: config.asked == nil || config.asked.labels == nil,
		Set:    config.Hooks, Runner: hook.Runner{Asker: k.deps.Hooks, Observer: k.deps.HookObserver, Now: k.deps.Now},
		Question: hook.Question{RequestID: requestID, Mode: string(mode), Agent: of.Agent, Workspace: of.Workspace, Project: of.Project},
	}
}

// Hooks are those that are to see what the tool of the call says; nil: there are none.
func (c *Call) Hooks() *hooks.Results {
	if c.hooks.results == nil && c.config.Hooks != nil && c.config.Hooks.Applies(hook.Result, c.subject.Agent, c.parsed.Name) {
		c.hooks.results = &hooks.Results{Config: c.hooksBy(), Tool: c.WrittenName(), Reads: c.tool != nil && c.tool.Effect() == "read"}
		if c.ledgerKeys().Thread != "" {
			c.hooks.results.Label = c.hooks.results.Keep
		}
	}
	return c.hooks.results
}

// Hooks are those that are to see what the request brings back of earlier turns, and what its model says
// beside the text that is judged.
func (a *Admission) Hooks() hooks.Request {
	if a.kernel == nil {
		return hooks.Request{Refused: refuse.NotAdmitted()}
	}
	r := hooks.Request{Config: a.kernel.hooksBy(a.config(), ModeEnforce, a.request.Subject, a.request.ID)}
	r.Question.Principal = a.principal
	if a.labels != nil {
		r.Label = func(labels []string) bool {
			a.labels.add(labels)
			return true
		}
	}
	return r
}
