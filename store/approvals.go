package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// Approvals keeps approvals and grants beside the calls. All stores of calls implement it.
// A change is durable when it has returned nil, and atomic: of those who change the same
// approval at the same time each sees the changes before its own. Package approval has the
// rules of each change, and its errors are returned as they are. A change that could not be
// made durable in time fails with ErrUnavailable, and may still turn out to have happened:
// each of them may be repeated.
//
// Dispatch uses approvals up: see Task.Using.
type Approvals interface {
	// Ask keeps an approval that approval.Open has made. If there is one with the same Key that can be
	// voted on, or a denial of the same call that stands, Ask returns that one with joined,
	// and keeps nothing. ErrFull: too many approvals are live.
	Ask(ctx context.Context, a approval.Approval) (kept approval.Approval, joined bool, err error)
	// Vote casts a vote; see approval.Approval.Cast.
	Vote(ctx context.Context, id string, v approval.Vote) (approval.Approval, error)
	// EndApproval ends an approval; see approval.Approval.Finish. Of several, one succeeds.
	EndApproval(ctx context.Context, id string, e approval.Ending) (approval.Approval, error)
	// Approval returns an approval of any requester; ErrNotFound if there is none.
	Approval(ctx context.Context, id string) (approval.Approval, error)
	// Approvals returns approvals in the order of their ids.
	Approvals(ctx context.Context, f ApprovalFilter) ([]approval.Approval, error)
	// Consents returns what approval.Judge needs, in one read: the approvals of a call's
	// digest that are live or denied, and the live grants with the keys.
	Consents(ctx context.Context, principal, digest string, keys []string) ([]approval.Approval, []approval.Grant, error)
	// LiveApprovals returns which approvals are live, in any order, and how many grants are. It
	// takes one request and no records, for those who ask often.
	LiveApprovals(ctx context.Context) (live []LiveApproval, grants int, err error)
	// Lapsed returns at most limit approvals that have expired and that no EndApproval has
	// marked yet, the oldest first.
	Lapsed(ctx context.Context, limit int) ([]approval.Approval, error)

	// AddGrant keeps a grant; one with the same id stays as it is, unless that was over before the
	// last of these votes. ErrFull: too many are live.
	AddGrant(ctx context.Context, g approval.Grant) error
	// Grants returns at most limit live grants in the order of their ids.
	Grants(ctx context.Context, after string, limit int) ([]approval.Grant, error)
	// RevokeGrant ends a grant and returns it as it was; ErrNotFound if none is live.
	RevokeGrant(ctx context.Context, id string) (approval.Grant, error)

	// WatchApproval returns a watch for the next change of an approval: watch first, then
	// read. Expiry is no change.
	WatchApproval(id string) (*Watch, error)
	// SweepApprovals removes at most limit approvals that ended, and grants that were revoked, longer
	// than approval.Retention ago, and grants that are over.
	SweepApprovals(ctx context.Context, limit int) (int, error)
}

// LiveApproval is a live approval without its record. The record changes with the revision; of
// revision 0 it has no votes.
type LiveApproval struct {
	ID       string
	Revision int
}

// ApprovalFilter selects approvals.
type ApprovalFilter struct {
	Live  bool   // only those that can still be voted on or used
	Rule  string // only those that ask for the rule; empty: all
	After string // only those with a larger id
	Limit int
}

// Matches reports whether the filter selects an approval.
func (f *ApprovalFilter) Matches(a *approval.Approval, now time.Time) bool {
	return a.ID > f.After && (!f.Live || a.Live(now)) && (f.Rule == "" || slices.Contains(a.Rules, f.Rule))
}

// The bounds of approvals and grants. On a cluster each part of the store has them.
const (
	MaxLiveOfPrincipal = 100
	MaxLive            = 1_000
	MaxGrants          = 10_000
)

// grantPrefix starts the ids of grants, and of no approvals.
const grantPrefix = "grant_"

// IsGrant reports whether an id in Task.Using is one of a grant.
func IsGrant(id string) bool { return strings.HasPrefix(id, grantPrefix) }

// maxUsing bounds how many approvals and grants one dispatch uses.
const maxUsing = 2 * approval.MaxRules

var errInvalidApproval = errors.New("store: an approval needs a valid record that nobody has changed")

// CheckNew returns an error unless an approval may be asked.
func CheckNew(a *approval.Approval) error {
	if err := a.Validate(); err != nil {
		return err
	}
	if len(a.Votes) > 0 || a.Ended.End != "" || a.Ran != "" || IsGrant(a.ID) {
		return errInvalidApproval
	}
	return nil
}

// joins reports whether an approval that is kept answers one that is asked.
func joins(kept, requested *approval.Approval, now time.Time) bool {
	return kept.Principal == requested.Principal &&
		(kept.Key() == requested.Key() && kept.Votable(now) || kept.Digest == requested.Digest && kept.Stands(now))
}

// answerOf returns the approval that answers one that is asked: a denial that stands rather than one
// that can still be voted on; nil: none does.
func answerOf(kept []approval.Approval, requested *approval.Approval, now time.Time) (answer *approval.Approval) {
	for i := range kept {
		if k := &kept[i]; joins(k, requested, now) && (answer == nil || k.Stands(now)) {
			answer = k
		}
	}
	return answer
}
