package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/callgate/callgate/approval"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// Consents finds what people have said of a call. It must be safe for concurrent use.
type Consents interface {
	// Consents returns the approvals of a call by its digest that are kept, and the grants of
	// its keys.
	Consents(ctx context.Context, call *approval.Call, digest string, keys []string) ([]approval.Approval, []approval.Grant, error)
}

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
	digest, err := call.Digest()
	if errors.Is(err, approval.ErrTooLong) {
		return refusal.New(refusal.ApprovalRequired, fmt.Sprintf(
			"%s needs the approval of a person here, and nobody can be asked: the arguments are longer than the %d bytes that a person can be shown whole. "+
				"Nothing was executed. Send a call with less, or say what you cannot do.", c.WrittenName(), approval.MaxArguments))
	}
	if err != nil {
		return err
	}
	keys, err := c.grantKeys(&call)
	if err != nil {
		return err
	}
	if c.kernel.deps.Consents == nil {
		return refusal.New(refusal.ApprovalRequired, fmt.Sprintf(
			"%s needs the approval of a person here, and nobody can be asked. Nothing was executed. Say what you cannot do.", c.WrittenName()))
	}
	ctx, cancel := context.WithTimeout(ctx, StoreWait)
	defer cancel()
	found, grants, err := c.kernel.deps.Consents.Consents(ctx, &call, digest, keys)
	if err != nil {
		return refusal.At(refusal.Approval, refusal.StoreUnavailable,
			"What people have said of this call cannot be looked up now, so nothing was executed. Retry later; changing the call will not help.").WithCause(err)
	}
	v, err := approval.Judge(&call, c.decision.Asks, found, grants, c.config.Approvals, c.config.people(), c.kernel.deps.Now())
	byGrants := v.Passes && !slices.ContainsFunc(v.Using, func(id string) bool { return !store.IsGrant(id) })
	switch {
	case err != nil:
		return err
	case c.judgement.asks[digest] != nil && !byGrants:
		if first := c.judgement.asks[digest]; first.refused != nil { // nobody is asked for it, either
			first.refused = c.refuseTwice()
		}
		return c.refuseTwice()
	case v.Denied != nil:
		return RefuseDenied(v.Denied.Ended.Reason)
	}
	if c.judgement.asks == nil {
		c.judgement.asks = map[string]*Call{}
	}
	c.judgement.asks[digest] = c
	if !v.Passes || len(v.Using) == 0 {
		return c.refuseUnapproved()
	}
	c.using = v.Using
	return nil
}

// approvalCall is the call as a yes is bound to it.
func (c *Call) approvalCall() (approval.Call, error) {
	definition, err := definitionDigest(c.tool)
	if err != nil {
		return approval.Call{}, err
	}
	scope := c.storeScope()
	return approval.Call{
		Principal: scope.Principal, Workspace: scope.Workspace, Project: scope.Project, Agent: c.subject.Agent, User: c.request.User, Thread: c.request.Thread,
		Tool: c.tool.Name(), Version: c.tool.Version(), Definition: definition, Said: c.answersDigest(), Arguments: c.parsed.Arguments,
	}, nil
}

// grantKeys are the keys of all grants that could let the call pass.
func (c *Call) grantKeys(call *approval.Call) (keys []string, err error) {
	for _, name := range c.decision.Asks {
		for scope := range c.config.Approvals[name].Remember {
			key, err := call.GrantKey(name, scope)
			if err != nil {
				return nil, err
			}
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// people tells what voters may do, by the configuration.
func (s *Config) people() approval.People {
	if s.People == nil {
		return func(approval.Vote) approval.Voter { return approval.Voter{} }
	}
	return s.People
}

// refuseUnapproved is the refusal of a call that people have not approved, or not yet.
func (c *Call) refuseUnapproved() *refusal.Error {
	return refusal.New(refusal.ApprovalRequired, fmt.Sprintf(
		"%s needs the approval of a person here; it was asked for and is not there yet. Nothing was executed. Say that it waits, "+
			"and do not reach the same by other means. Once it is approved the same call can be sent again.", c.WrittenName()))
}

// refuseTwice is the refusal of an answer with the same call twice: a yes is for one, and either
// all calls of an answer run or none.
func (c *Call) refuseTwice() *refusal.Error {
	return refusal.At(refusal.Approval, refusal.ApprovalConflict, fmt.Sprintf(
		"%s needs the approval of a person here, and the same call is twice in this answer: a person approves one call. Nothing was executed. "+
			"Send it once.", c.WrittenName()))
}

// RefuseUsed is the refusal of a call whose approval another call has used.
func (c *Call) RefuseUsed() *refusal.Error {
	return refusal.New(refusal.ApprovalRequired, fmt.Sprintf(
		"%s needs the approval of a person here, and the one that was given was used by another call. Nothing was executed. "+
			"Say so; people are asked again when the same call is sent again.", c.WrittenName()))
}

// RefuseDenied is the refusal of a call that a person has denied, with the person's own words.
func RefuseDenied(reason string) *refusal.Error {
	said := "."
	if reason != "" {
		said = ": " + strconv.QuoteToGraphic(reason) + "."
	}
	return refusal.New(refusal.ApprovalDenied, "A person has looked at this call and denied it"+said+
		" Nothing was executed. Do not send it again, nor reach the same by other means; say what you cannot do.")
}

// RefuseExpired is the refusal of a call of which nobody has said in time whether it may run.
func RefuseExpired(tool string, within time.Duration) *refusal.Error {
	return refusal.New(refusal.ApprovalExpired, fmt.Sprintf(
		"Nobody has said within %s whether %s may run. Nothing was executed, and nobody has decided against it. "+
			"Say so; it can be sent again when somebody can answer.", within.Round(time.Second), tool))
}
