package gateway

import (
	"context"
	"errors"
	"slices"

	"github.com/callgate/callgate/gateway/consent"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// asksForApproval reports whether a row of the policy asks people first.
func asksForApproval(c *Call) bool { return len(c.permission.decision.Asks) > 0 }

// checkApproval is the stage approval: a call for which the policy asks people is refused
// until they have approved it. It notes by which approvals and grants they have; those are
// used up where the call is dispatched.
func checkApproval(ctx context.Context, c *Call) error {
	named := c.input.Dialogue.ApprovalState()
	if !asksForApproval(c) && named == "" {
		return nil
	}
	call, err := c.approvalCall()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, StoreWait)
	defer cancel()
	q := consent.Question{Call: call, Tool: c.WrittenName(), Asks: c.permission.decision.Asks,
		Rules: c.config.Approvals, People: c.config.people()}
	if err := c.checkNamed(ctx, &q, named); err != nil || !asksForApproval(c) {
		return err
	}
	v, digest, err := q.Answer(ctx, c.kernel.deps.Consents, c.kernel.deps.Now())
	byGrants := v.Passes && !slices.ContainsFunc(v.Using, func(id string) bool { return !store.IsGrant(id) })
	switch {
	case err != nil:
		return err
	case c.askedFor[digest] != nil && c.askedFor[digest] != c && !byGrants:
		if first := c.askedFor[digest]; first.refused != nil { // nobody is asked for it, either
			first.refused = consent.RefuseTwice(c.WrittenName())
		}
		return consent.RefuseTwice(c.WrittenName())
	case v.Denied != nil:
		return consent.RefuseDenied(v.Denied.Ended.Reason)
	}
	if c.askedFor == nil {
		c.askedFor = map[string]*Call{}
	}
	c.askedFor[digest] = c
	if !v.Passes || len(v.Using) == 0 {
		c.approvals.askRules = v.Asks
		if c.approvals.unaskable = c.kernel.deps.NoApprovers && slices.ContainsFunc(v.Missing, c.needsApprovers); c.approvals.unaskable {
			return consent.RefuseUnaskable(c.WrittenName())
		}
		return consent.RefuseUnapproved(c.WrittenName())
	}
	c.approvals.using, c.approvals.spends, c.approvals.usesRepeat = v.Using, v.Spends, v.Repeat
	return nil
}

// checkNamed checks the approval that the call names, if it names one.
func (c *Call) checkNamed(ctx context.Context, q *consent.Question, named string) error {
	if named == "" {
		return nil
	}
	err := consent.ErrOther
	if elicit.ValidState(named) {
		err = q.CheckNamed(ctx, c.kernel.deps.Consents, named, c.kernel.deps.Now())
	}
	if errors.Is(err, consent.ErrOther) {
		refused := elicit.UnknownState()
		refused.Stage = refusal.Approval
		return refused
	}
	return err
}

// needsApprovers reports whether the caller of the call cannot answer a rule: it is for
// approvers, or the caller is not asked and takes no forms.
func (c *Call) needsApprovers(rule string) bool {
	return c.config.Approvals[rule].By != approval.ByCaller || !c.request.AsksCaller && !c.input.Dialogue.TakesForms()
}

// approvalCall is the call as a yes is bound to it.
func (c *Call) approvalCall() (approval.Call, error) {
	definition, err := consent.Definition(c.tool)
	if err != nil {
		return approval.Call{}, err
	}
	scope := c.storeScope()
	return approval.Call{
		Principal: scope.Principal, Workspace: scope.Workspace, Project: scope.Project, Agent: c.subject.Agent, User: c.request.User,
		Thread: c.request.Thread,
		Tool:   c.tool.Name(), Version: c.tool.Version(), Definition: definition, AnswersDigest: c.answersDigest(),
		Arguments: c.parsed.Arguments,
	}, nil
}

// people tells what voters may do, by the configuration.
func (s *Config) people() approval.People {
	if s.People == nil {
		return func(approval.Vote) approval.Voter { return approval.Voter{} }
	}
	return s.People
}
