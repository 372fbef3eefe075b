package gateway

import (
	"context"
	"slices"

	"github.com/callgate/callgate/approval"
	"github.com/callgate/callgate/gateway/consent"
	"github.com/callgate/callgate/store"
)

// asksForApproval reports whether a row of the policy asks people first.
func asksForApproval(c *Call) bool { return len(c.decision.Asks) > 0 }

// checkApproval is the stage approval: a call for which the policy asks people is refused
// until they have approved it. It notes by which approvals and grants they have; those are
// used up where the call is dispatched.
func checkApproval(ctx context.Context, c *Call) error {
	if !asksForApproval(c) {
		return nil
	}
	call, err := c.approvalCall()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, StoreWait)
	defer cancel()
	q := consent.Question{Call: call, Tool: c.WrittenName(), Asks: c.decision.Asks, Rules: c.config.Approvals, People: c.config.people()}
	v, digest, err := q.Answer(ctx, c.kernel.deps.Consents, c.kernel.deps.Now())
	byGrants := v.Passes && !slices.ContainsFunc(v.Using, func(id string) bool { return !store.IsGrant(id) })
	switch {
	case err != nil:
		return err
	case c.judgement.asks[digest] != nil && !byGrants:
		if first := c.judgement.asks[digest]; first.refused != nil { // nobody is asked for it, either
			first.refused = consent.RefuseTwice(c.WrittenName())
		}
		return consent.RefuseTwice(c.WrittenName())
	case v.Denied != nil:
		return consent.RefuseDenied(v.Denied.Ended.Reason)
	}
	if c.judgement.asks == nil {
		c.judgement.asks = map[string]*Call{}
	}
	c.judgement.asks[digest] = c
	if !v.Passes || len(v.Using) == 0 {
		return consent.RefuseUnapproved(c.WrittenName())
	}
	c.using = v.Using
	return nil
}

// approvalCall is the call as a yes is bound to it.
func (c *Call) approvalCall() (approval.Call, error) {
	definition, err := consent.Definition(c.tool)
	if err != nil {
		return approval.Call{}, err
	}
	scope := c.storeScope()
	return approval.Call{
		Principal: scope.Principal, Workspace: scope.Workspace, Project: scope.Project, Agent: c.subject.Agent, User: c.request.User, Thread: c.request.Thread,
		Tool: c.tool.Name(), Version: c.tool.Version(), Definition: definition, Said: c.answersDigest(), Arguments: c.parsed.Arguments,
	}, nil
}

// people tells what voters may do, by the configuration.
func (s *Config) people() approval.People {
	if s.People == nil {
		return func(approval.Vote) approval.Voter { return approval.Voter{} }
	}
	return s.People
}
