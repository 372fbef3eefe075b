package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// identifyCaller is the first step of the stage identity: the caller has a known
// credential where one is required, is within its rate, and may act for the agent.
func identifyCaller(ctx context.Context, c *Call) error { return c.identifyCaller(ctx) }

func (c *judgement) identifyCaller(ctx context.Context) error {
	if c.mode != ModeCall && c.mode != ModeEnforce {
		return errors.New("a judgement in no mode")
	}
	if c.authErr != nil {
		return c.authErr
	}
	if c.config.Identity != nil && c.principal == nil {
		return refuse.UnknownCaller()
	}
	if err := c.chargeCaller(ctx); err != nil {
		return err
	}
	if p := c.principal; p != nil && p.HooksOnly && c.request.Hook == nil {
		return refusal.At(refusal.Identity, refusal.PermissionDenied,
			"The caller may only ask for verdicts, as the hook of a coding agent. Nothing was executed; the operator must allow it more.")
	}
	if p := c.principal; p != nil && len(p.Agents) == 0 {
		return refusal.New(refusal.AgentMismatch, "The caller may act for no agent. Nothing was executed; the operator must allow it one.")
	}
	agent := c.subject.Agent
	if agent == "" && c.principal != nil {
		return nil // the caller has several agents and named none; only a call needs one
	}
	if !c.config.Agents[agent] {
		if c.request.Agent == "" && c.principal == nil {
			return refusal.New(refusal.AgentRequired,
				"The request names no agent, and there is none to take for it. Nothing was executed; "+nameAgent)
		}
		return refusal.New(refusal.AgentUnknown, "Unknown agent. Nothing was executed; the operator must add it to the configuration.")
	}
	if p := c.principal; p != nil && !slices.Contains(p.Agents, agent) {
		return refusal.New(refusal.AgentMismatch,
			"The caller may not act for this agent. Nothing was executed; the operator must allow it.")
	}
	return nil
}

// chargeCaller takes the caller's rate, unless the caller was admitted or identified before:
// then it has been taken, and it must still be the same caller.
func (c *judgement) chargeCaller(ctx context.Context) error {
	var before string
	switch {
	case c.admission != nil:
		before = c.admission.principal
	case c.identified != nil:
		before = principalName(c.identified.principal)
	default:
		return c.kernel.callerRate(ctx, c.config, c.caller())
	}
	if before != principalName(c.principal) {
		return refuse.UnknownCaller()
	}
	return nil
}

// Principal returns the principal of a credential, by the configuration of now; nil if no
// credentials are required. An unknown credential is refused.
func (k *Kernel) Principal(credential string) (*identity.Principal, *refusal.Error) {
	config := k.config.Load()
	p, err := config.principal(credential)
	switch {
	case err != nil:
		return nil, refusal.From(refusal.Identity, err)
	case p == nil && config.Identity != nil:
		return nil, refuse.NeedsOperator()
	}
	return p, nil
}

// CheckOperator refuses a credential that is not an operator's. If no credentials are
// required, no caller is an operator.
func (k *Kernel) CheckOperator(credential string) *refusal.Error {
	p, refused := k.Principal(credential)
	switch {
	case refused != nil:
		return refused
	case p == nil:
		return refuse.NeedsOperator()
	case !p.Operator:
		return refusal.At(refusal.Identity, refusal.PermissionDenied, "Only operators may do this.")
	}
	return nil
}

// caller returns the caller's name: the principal, or else the address.
func (c *judgement) caller() string { return callerName(c.principal, c.request.CallerAddress) }

// principal returns the principal of a credential, if one is required. If the authenticator
// panics, the credential is refused.
func (s *Config) principal(credential string) (p *identity.Principal, err error) {
	if s.Identity == nil {
		return nil, nil
	}
	defer safe.RecoverZero(&p, &err)
	return s.Identity.Authenticate(credential), nil
}

// subject returns the agent, workspace and project of a request. Without credentials, the
// defaults fill in the members that the request omits; where the agent does not act in them, its only project
// does. With credentials, the principal fills them in if it has only one agent or project.
func (s *Config) subject(request Request, p *identity.Principal) Subject {
	if s.Identity == nil {
		return s.places.choose(request.Subject, s.Defaults)
	}
	if p == nil {
		return request.Subject
	}
	only := Subject{Workspace: p.Workspace}
	if len(p.Agents) == 1 {
		only.Agent = p.Agents[0]
	}
	if len(p.Projects) == 1 {
		only.Project = p.Projects[0]
	}
	return request.Subject.or(only)
}

// nameAgent says how a request names its agent, behind a semicolon.
const nameAgent = `the application must name its agent: in the header Callgate-Agent, in the member "agent" of the JSON body of /v1/check or /v1/calls, or with the --agent flag of a command.`

// checkAgentClaim is the second step: the agent that a model claims to be must be the
// one of the request, and a call must have an agent. A claim grants nothing.
func checkAgentClaim(_ context.Context, c *Call) error {
	if c.parsed.Kind == parser.Text {
		return nil
	}
	if c.subject.Agent == "" {
		return refusal.New(refusal.AgentRequired,
			"The caller may act for several agents and did not name one. Nothing was executed; "+nameAgent)
	}
	if c.config.AgentRequired && !c.statesAgent() {
		if c.input.Native != nil {
			return refusal.New(refusal.AgentRequired,
				"Every call must name its agent here, and this request does not. Nothing was executed; "+nameAgent)
		}
		return refusal.New(refusal.AgentRequired, "The call does not say which agent it is for, and every call must here. Send the call again with your own agent's name as the member \"agent\", beside \"tool\".")
	}
	if c.parsed.Claimed && c.parsed.Claim != c.subject.Agent {
		without := ", or without the member \"agent\""
		if c.config.AgentRequired {
			without = ""
		}
		return refusal.New(refusal.AgentMismatch, fmt.Sprintf(
			"The call says \"agent\": %s, which is not the agent that it is made for. Send the call again with your own agent's name%s.",
			parser.Quote(c.parsed.Claim), without))
	}
	return nil
}

// statesAgent reports whether a call names its own agent: a completion by its member
// "agent", of any type, which the envelope check validates; a native call, which has no
// such member, by the agent of its request.
func (c *Call) statesAgent() bool {
	switch {
	case c.input.Native == nil:
		return c.parsed.AgentStated
	case c.admission != nil:
		return c.admission.statesAgent
	}
	return c.request.Agent != ""
}
