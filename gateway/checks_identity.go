package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// identifyCaller is the first step of the stage identity: the caller is known where that
// is asked, is within its rate, and asks for an agent that it may stand for.
func identifyCaller(ctx context.Context, c *call) error {
	if c.mode != ModeCall && c.mode != ModeEnforce {
		return errors.New("a judgement in no mode")
	}
	if c.authErr != nil {
		return c.authErr
	}
	if c.config.Identity != nil && c.principal == nil {
		return unknownCaller()
	}
	if err := c.chargeCaller(ctx); err != nil {
		return err
	}
	agent := c.subject.Agent
	if agent == "" && c.principal != nil {
		return nil // of several agents none was named, which only a call needs
	}
	if !c.config.Agents[agent] {
		return refusal.New(refusal.AgentUnknown, "This request is for an agent that nothing here names. Nothing was executed; the agent cannot mend this.")
	}
	if p := c.principal; p != nil && !slices.Contains(p.Agents, agent) {
		return refusal.New(refusal.AgentMismatch, "This request is for an agent that its caller does not stand for. Nothing was executed; the agent cannot mend this.")
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
		return unknownCaller()
	}
	return nil
}

func unknownCaller() error {
	return refusal.New(refusal.Unauthenticated, "This needs a credential that is known here. Nothing was executed; the agent cannot mend this.")
}

// CheckOperator refuses a credential that is not one of an operator. Where nobody is asked
// for a credential, nobody is an operator.
func (k *Kernel) CheckOperator(credential string) *refusal.Error {
	p, err := k.config.Load().principal(credential)
	switch {
	case err != nil:
		return refusal.From(refusal.Identity, err)
	case p == nil:
		return refusal.New(refusal.Unauthenticated, "This needs the credential of an operator.")
	case !p.Operator:
		return refusal.At(refusal.Identity, refusal.PermissionDenied, "This is for operators alone, and the caller is none.")
	}
	return nil
}

// caller names who asks: the principal, or else the address.
func (c *judgement) caller() string { return callerName(c.principal, c.request.CallerAddress) }

// principal is who a credential is of, where one is asked for. Where those who know
// credentials panic, nobody is known.
func (s *Config) principal(credential string) (p *identity.Principal, err error) {
	if s.Identity == nil {
		return nil, nil
	}
	defer safe.RecoverZero(&p, &err)
	return s.Identity.Authenticate(credential), nil
}

// subject is for whom a request is judged. Without credentials the request is
// believed, and the defaults stand in; with them, what the principal has only
// one of stands in.
func (s *Config) subject(request Request, p *identity.Principal) Subject {
	if s.Identity == nil {
		return request.Subject.or(s.Defaults)
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

// checkAgentClaim is the second step: an agent that the model claims to be must be the
// one that is bound, and a call must be for some agent. A claim never widens
// anything.
func checkAgentClaim(_ context.Context, c *call) error {
	if c.parsed.Kind == parser.Text {
		return nil
	}
	if c.subject.Agent == "" {
		return refusal.New(refusal.AgentRequired, "The caller stands for several agents and did not say for which of them this call is. Nothing was executed; the agent cannot mend this.")
	}
	if c.config.AgentRequired && !c.statesAgent() {
		if c.input.Native != nil {
			return refusal.New(refusal.AgentRequired, "The request does not say which agent this call is for, and every call must here. Nothing was executed; the agent cannot mend this.")
		}
		return refusal.New(refusal.AgentRequired, "The call does not say which agent it is for, and every call must here. Send the call again with your own agent's name as the member \"agent\", beside \"tool\".")
	}
	if c.parsed.Claimed && c.parsed.Claim != c.subject.Agent {
		return refusal.New(refusal.AgentMismatch, fmt.Sprintf(
			"The call says \"agent\": %s, which is not the agent that it is made for. Send the call again with your own agent's name, or without the member \"agent\".", parser.Quote(c.parsed.Claim)))
	}
	return nil
}

// statesAgent tells whether a call says itself which agent it is for: a completion by
// its member "agent", of whatever type, which the envelope judges; a native call, whose
// form has no such member, by the agent that its request names.
func (c *call) statesAgent() bool {
	switch {
	case c.input.Native == nil:
		return c.parsed.AgentStated
	case c.admission != nil:
		return c.admission.statesAgent
	}
	return c.request.Agent != ""
}
