package approvals

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/consent"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// Ballot is the vote of a person on an approval.
type Ballot struct {
	Yes bool
	// Digest is that of the call that the person was shown.
	Digest   string
	Reason   string
	Remember approval.Remember
	// Stands says that a no of a caller denies the same call until the approval would have
	// expired, at most an hour. A no of an approver always does.
	Stands bool
}

// Vote takes the vote of a person, and returns the approval as it is then. The vote is in the
// audit log before it counts. The same vote again changes nothing. The error is a
// *refusal.Error.
func (d *Desk) Vote(ctx context.Context, voter approval.Voter, id string, b Ballot) (approval.Approval, error) {
	a, err := d.Get(context.WithoutCancel(ctx), id)
	if err != nil {
		return a, err
	}
	v := approval.Vote{By: voter.Principal, Yes: b.Yes, Digest: b.Digest, Reason: b.Reason, Remember: b.Remember, Until: voter.Until}
	if v.Rules, err = a.MayVote(voter); err != nil {
		return a, refuseVoter(err)
	}
	return d.cast(ctx, a, v)
}

// cast adds a vote of somebody who may vote by its rules.
func (d *Desk) cast(ctx context.Context, a approval.Approval, v approval.Vote) (approval.Approval, error) {
	ctx = context.WithoutCancel(ctx)
	rules, people := d.kernel().Approvals()
	if utf8.RuneCountInString(v.Reason) > approval.MaxReason {
		return a, refusal.New(refusal.BadRequest, "The reason is longer than 500 characters.")
	}
	if err := a.MayRemember(v, rules); err != nil {
		return a, refusal.New(refusal.BadRequest,
			"The rules of this approval do not let a yes stand for such calls, or not for so long.").WithCause(err)
	}
	now := d.deps.Now()
	if a.Ended.End == "" && a.Ran == "" && a.State(rules, people, now) == approval.Expired {
		return a, d.refuseChange(approval.ErrEnded)
	}
	tried := a
	same, err := tried.Cast(v, now)
	if err != nil {
		return a, d.refuseChange(err)
	}
	if same {
		return a, d.settleGrants(ctx, &a, v.By)
	}
	code := audit.Yes
	if !v.Yes {
		code = audit.No
	}
	r := d.event(&tried, v.By, code)
	r.Rules, r.Reason = v.Rules, v.Reason
	if err := d.kernel().Writer().Write(ctx, r); err != nil {
		return a, refusal.From(refusal.Approval, err)
	}
	before := a.State(rules, people, now)
	a, err = ask(ctx, d, func(ctx context.Context, s store.Approvals) (approval.Approval, error) { return s.Vote(ctx, a.ID, v) })
	if err != nil {
		return a, d.refuseChange(err)
	}
	d.count(v.Rules, code)
	if before == approval.Waiting && a.State(rules, people, d.deps.Now()) != approval.Waiting && d.deps.Observer != nil {
		for _, rule := range a.Rules {
			d.deps.Observer.ApprovalDecided(rule, d.deps.Now().Sub(a.Opened))
		}
	}
	return a, d.settleGrants(ctx, &a, v.By)
}

// settleGrants keeps the grants that the votes of an approval make. Of one that was denied or
// revoked none stays: a yes stands no longer than what it was said to. One that was used makes
// no more: its grants are kept since the vote, or were revoked since.
func (d *Desk) settleGrants(ctx context.Context, a *approval.Approval, by string) error {
	switch {
	case a.Ended.End == approval.EndDenied || a.Ended.End == approval.EndRevoked:
		_, err := d.revokeGrants(ctx, a.ID, by)
		return err
	case a.Ran != "":
		return nil
	}
	return d.grant(ctx, a)
}

// revokeGrants ends the grants that the votes of an approval have made, and returns how many that were.
func (d *Desk) revokeGrants(ctx context.Context, id, by string) (revoked int, err error) {
	grants, err := d.Grants(ctx, "", maxGrants)
	for i := 0; i < len(grants) && err == nil; i++ {
		if grants[i].Approval == id {
			err = d.revokeGrant(ctx, &grants[i], by)
			revoked++
		}
	}
	if err != nil {
		return revoked, refusal.At(refusal.Approval, refusal.StoreUnavailable,
			"The approval has ended, but grants that it has made may still stand. Send the same again.").WithCause(err)
	}
	return revoked, nil
}

// grant keeps the grants that the votes of an approval make.
func (d *Desk) grant(ctx context.Context, a *approval.Approval) error {
	rules, people := d.kernel().Approvals()
	grants := a.Grants(rules, people, d.deps.Now())
	if len(grants) == 0 {
		return nil
	}
	kept, err := d.Grants(ctx, "", maxGrants)
	if err != nil {
		return refuseGrant(err, notMade)
	}
	for _, g := range grants {
		if hasGrant(kept, g.ID) {
			continue
		}
		r := d.event(a, g.Votes[len(g.Votes)-1].By, audit.Granted)
		r.Approvals, r.Rules, r.Until = []string{a.Digest, g.ID, string(g.Scope)}, []string{g.Rule}, g.Until
		if err := d.kernel().Writer().Write(ctx, r); err != nil {
			return refuseGrant(err, notMade)
		}
		if _, err := ask(ctx, d, func(ctx context.Context, s store.Approvals) (struct{}, error) {
			return struct{}{},
				s.AddGrant(ctx, g)
		}); err != nil {
			return refuseGrant(err, perhapsMade)
		}
		d.count([]string{g.Rule}, audit.Granted)
	}
	// Somebody may have ended the approval before there was a grant of it to revoke.
	now, err := d.Get(ctx, a.ID)
	if err == nil && now.Ended.End != approval.EndDenied && now.Ended.End != approval.EndRevoked {
		return nil
	}
	_, revoking := d.revokeGrants(ctx, a.ID, now.Ended.By)
	if err != nil {
		return refuseGrant(errors.Join(err, revoking), perhapsMade)
	}
	return revoking
}

// errDoesNotStand says that a vote counts, but perhaps only for the call that it was about.
var errDoesNotStand = errors.New("the grant is not kept")

// What a voter is told whose vote counts, but perhaps makes no grant.
const (
	notMade     = "Your yes counts for this call only, since its grant could not be recorded."
	perhapsMade = "Your yes counts for this call. Whether it stands for others is not known, since the store failed: look at the grants."
)

func refuseGrant(err error, told string) *refusal.Error {
	code := refusal.StoreUnavailable
	if errors.Is(err, store.ErrFull) {
		code, told = refusal.Overloaded, fmt.Sprintf("Your yes counts for this call only: %d grants stand, which is the most. An operator can revoke some.", maxGrants)
	}
	return refusal.At(refusal.Approval, code, told).WithCause(errors.Join(errDoesNotStand, err))
}

func hasGrant(grants []approval.Grant, id string) bool {
	for i := range grants {
		if grants[i].ID == id {
			return true
		}
	}
	return false
}

// End ends an approval that has not been used: EndWithdrawn by its caller, EndRevoked by an
// operator. It returns the approval as it is then. The error is a *refusal.Error.
func (d *Desk) End(ctx context.Context, id string, end approval.End, by, reason string) (approval.Approval, error) {
	ctx = context.WithoutCancel(ctx)
	a, err := d.Get(ctx, id)
	if err != nil {
		return a, err
	}
	e := approval.Ending{End: end, By: by, Reason: reason}
	tried := a
	if err := tried.Finish(e, d.deps.Now()); err != nil {
		// It may have ended so before its grants could.
		if end == approval.EndRevoked && (a.Ended.End == approval.EndRevoked || a.Ended.End == approval.EndDenied) {
			if revoked, err := d.revokeGrants(ctx, id, by); revoked > 0 || err != nil {
				return a, err
			}
		}
		return a, d.refuseChange(err)
	}
	r := d.event(&a, by, codeOf(end))
	r.Reason = reason
	if err := d.kernel().Writer().Write(ctx, r); err != nil {
		return a, refusal.From(refusal.Approval, err)
	}
	a, err = ask(ctx, d, func(ctx context.Context, s store.Approvals) (approval.Approval, error) {
		return s.EndApproval(ctx, id, e)
	})
	if err != nil {
		return a, d.refuseChange(err)
	}
	d.count(a.Rules, codeOf(end))
	if end == approval.EndRevoked {
		_, err = d.revokeGrants(ctx, id, by)
	}
	return a, err
}

// codeOf names an end in the audit log.
func codeOf(end approval.End) refusal.Code {
	switch end {
	case approval.EndRevoked:
		return audit.Revoked
	case approval.EndExpired:
		return audit.Lapsed
	case approval.EndDenied:
		return audit.No
	}
	return audit.Withdrawn
}

// RevokeGrant ends a grant. If its approval has not been used, that is revoked with all its
// grants: else the same yes would still let the call run once. The error is a *refusal.Error.
func (d *Desk) RevokeGrant(ctx context.Context, id, by string) (approval.Grant, error) {
	ctx = context.WithoutCancel(ctx)
	grants, err := d.Grants(ctx, "", maxGrants)
	if err != nil {
		return approval.Grant{}, err
	}
	for _, g := range grants {
		if g.ID != id {
			continue
		}
		_, err := d.End(ctx, g.Approval, approval.EndRevoked, by, "")
		switch refused := refusal.From(refusal.Approval, err); {
		case err == nil:
			return g, nil
		case refused.Code != refusal.ApprovalConflict && refused.Code != refusal.NotFound: // it has ended, or is not kept any more
			return g, err
		}
		return g, d.revokeGrant(ctx, &g, by)
	}
	return approval.Grant{}, notFound()
}

func (d *Desk) revokeGrant(ctx context.Context, g *approval.Grant, by string) error {
	r := d.event(&approval.Approval{ID: g.Approval, Call: g.Call}, by, audit.Revoked)
	r.Approvals, r.Rules, r.Until = []string{g.Key, g.ID, string(g.Scope)}, []string{g.Rule}, g.Until
	if err := d.kernel().Writer().Write(ctx, r); err != nil {
		return refusal.From(refusal.Approval, err)
	}
	_, err := ask(ctx, d, func(ctx context.Context, s store.Approvals) (approval.Grant, error) { return s.RevokeGrant(ctx, g.ID) })
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return d.refuseChange(err)
	}
	d.count([]string{g.Rule}, audit.Revoked)
	return nil
}

// event is the record of an act on an approval.
func (d *Desk) event(a *approval.Approval, by string, code refusal.Code) audit.Record {
	return audit.Record{
		Time: d.deps.Now(), Event: audit.Approval, Mode: audit.Call, CallID: a.ID, Principal: by, Agent: a.Agent, Workspace: a.Workspace,
		Project: a.Project,
		Thread:  a.Thread, Tool: a.Tool, ToolVersion: a.Version, Stage: refusal.Approval, Code: code, ConfigDigest: a.Config,
		Replica:   d.deps.Replica,
		Approvals: []string{a.Digest}, Rules: a.Rules, Until: a.Closes(),
	}
}

// refuseVoter is the refusal of a vote of a person who may not vote.
func refuseVoter(err error) *refusal.Error {
	message := "This is not yours to decide: you approve by none of its rules."
	if errors.Is(err, approval.ErrRequester) {
		message = "Nobody decides a call of their own: you made it, it is made for you, or you stand for its agent."
	}
	return refusal.At(refusal.Identity, refusal.PermissionDenied, message).WithCause(err)
}

// refuseChange is the refusal of a change that an approval does not allow, or that the store
// did not make.
func (d *Desk) refuseChange(err error) *refusal.Error {
	var conflict string
	switch {
	case errors.Is(err, approval.ErrUsed):
		conflict = "The call has run already."
	case errors.Is(err, approval.ErrEnded):
		conflict = "This approval has ended already."
	case errors.Is(err, approval.ErrDigest):
		conflict = "The digest is that of another call than this approval shows."
	case errors.Is(err, approval.ErrVotes):
		conflict = "Too many people have voted on this."
	case errors.Is(err, store.ErrNotFound):
		return notFound()
	default:
		return refusal.At(refusal.Approval, refusal.StoreUnavailable,
			"Whether this was taken is not known, since the store failed. Look at the approval, or send the same again: it counts once.").WithCause(err)
	}
	return refusal.New(refusal.ApprovalConflict, conflict).WithCause(err)
}

func notFound() *refusal.Error { return refusal.New(refusal.NotFound, "There is no such approval.") }

// Get returns an approval. The error is a *refusal.Error.
func (d *Desk) Get(ctx context.Context, id string) (approval.Approval, error) {
	a, err := ask(ctx, d, func(ctx context.Context, s store.Approvals) (approval.Approval, error) { return s.Approval(ctx, id) })
	switch {
	case errors.Is(err, errNoStore), errors.Is(err, store.ErrNotFound), err == nil && a.Outlived(d.deps.Now()):
		return a, notFound()
	case err != nil:
		return a, refuseRead(err)
	}
	return a, nil
}

// maxGrants is the most grants of which one is looked for.
const maxGrants = store.MaxGrants

// Grants returns at most limit grants whose time is not over, in the order of their ids. The
// error is a *refusal.Error.
func (d *Desk) Grants(ctx context.Context, after string, limit int) ([]approval.Grant, error) {
	grants, err := ask(ctx, d, func(ctx context.Context, s store.Approvals) ([]approval.Grant, error) {
		return s.Grants(ctx, after, limit)
	})
	if err != nil {
		return nil, refuseRead(err)
	}
	return grants, nil
}

// List returns approvals in the order of their ids. The error is a *refusal.Error.
func (d *Desk) List(ctx context.Context, f store.ApprovalFilter) ([]approval.Approval, error) {
	list, err := ask(ctx, d, func(ctx context.Context, s store.Approvals) ([]approval.Approval, error) { return s.Approvals(ctx, f) })
	if err != nil {
		return nil, refuseRead(err)
	}
	return list, nil
}

// Lapse records up to limit approvals that have expired, each once, and removes old ones.
func (d *Desk) Lapse(ctx context.Context, limit int) error {
	if d.deps.Store == nil {
		return nil
	}
	lapsed, err := ask(ctx, d, func(ctx context.Context, s store.Approvals) ([]approval.Approval, error) { return s.Lapsed(ctx, limit) })
	for i := range lapsed {
		_, ended := d.End(ctx, lapsed[i].ID, approval.EndExpired, "", "")
		var refused *refusal.Error
		if errors.As(ended, &refused) && refused.Code != refusal.ApprovalConflict && refused.Code != refusal.NotFound {
			err = errors.Join(err, ended)
		}
	}
	_, swept := ask(ctx, d, func(ctx context.Context, s store.Approvals) (int, error) { return s.SweepApprovals(ctx, limit) })
	return errors.Join(err, swept)
}

// State is the state of an approval by the configuration of now.
func (d *Desk) State(a *approval.Approval) approval.State {
	rules, people := d.kernel().Approvals()
	return a.State(rules, people, d.deps.Now())
}

// RefuseEnded is the refusal of a call that cannot run any more by an approval in a state.
func (d *Desk) RefuseEnded(a *approval.Approval, state approval.State) *refusal.Error {
	rules, people := d.kernel().Approvals()
	return consent.RefuseEnded(a, state, rules, people)
}

// Enough reports whether so many people say yes to an approval that a rule is satisfied now.
func (d *Desk) Enough(a *approval.Approval, rule string) bool {
	rules, people := d.kernel().Approvals()
	return a.Enough(rule, rules, people, d.deps.Now())
}

// Yes returns how many people's approvals count for a rule now.
func (d *Desk) Yes(a *approval.Approval, rule string) int {
	rules, people := d.kernel().Approvals()
	return a.Yes(rule, rules, people, d.deps.Now())
}
