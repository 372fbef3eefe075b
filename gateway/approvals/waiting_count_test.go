package approvals_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// oneRule is a kernel with one rule, by which everybody may approve.
type oneRule struct{}

func (oneRule) Approvals() (approval.Rules, approval.People) {
	return rules(), func(v approval.Vote) approval.Voter {
		return approval.Voter{Principal: v.By, Approves: []string{"refunds"}}
	}
}

func (oneRule) ToolVersion(string, string) (*registry.Entry, error) { return nil, nil }

func (oneRule) Writer() *journal.Writer { return nil }

func rules() approval.Rules {
	return approval.Rules{"refunds": {Name: "refunds", Approve: 1, Within: time.Hour, Remember: map[approval.Scope]time.Duration{approval.AnyCall: time.Hour}}}
}

// kept are the numbers that an observer was told.
type kept struct{ times, waiting, grants int }

func (k *kept) ApprovalActed(string, refusal.Code)    {}
func (k *kept) ApprovalDecided(string, time.Duration) {}
func (k *kept) ApprovalsKept(waiting, grants int) {
	k.times, k.waiting, k.grants = k.times+1, waiting, grants
}

// away is a store that cannot be read.
type away struct{ *store.Memory }

func (away) LiveApprovals(context.Context) ([]store.LiveApproval, int, error) {
	return nil, 0, errors.New("away")
}

// All approvals that wait are counted, and no others; and all grants. The records of those are read
// that have got votes since, once each. Where the store cannot be read, nothing is told.
func TestMeasure(t *testing.T) {
	const asked, decided, grants = 230, 7, 1_001
	s, ctx := &counted{Memory: store.NewMemory(time.Now)}, t.Context()
	for i := range asked {
		a, err := approval.Open(approval.Approval{ID: fmt.Sprintf("call_%03d", i), Rules: []string{"refunds"}, Call: approval.Call{
			Principal: fmt.Sprint("p", i%5), Workspace: "w", Project: "q", Agent: "Analyst", Tool: "pay", Version: "1.0.0", Definition: "d", Arguments: fmt.Append(nil, i),
		}}, rules(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Ask(ctx, a); err != nil {
			t.Fatal(err)
		}
		if i < decided {
			if _, err := s.Vote(ctx, a.ID, approval.Vote{By: "ada", Yes: true, Digest: a.Digest, Rules: a.Rules}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range grants {
		if err := s.AddGrant(ctx, approval.Grant{ID: fmt.Sprintf("grant_%04d", i), Key: fmt.Sprint(i), Rule: "refunds", Until: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	k := &kept{}
	desk := approvals.New(func() approvals.Kernel { return oneRule{} }, approvals.Deps{Store: s, Observer: k})
	if err := desk.Measure(ctx); err != nil || *k != (kept{1, asked - decided, grants}) || desk.Waiting() != asked-decided {
		t.Errorf("told %+v, %d wait, %v", *k, desk.Waiting(), err)
	}
	if changes := desk.Changes(ctx); changes != 1 || k.times != 2 {
		t.Errorf("measured again: %d changes", changes)
	}
	another, err := s.Memory.Approval(ctx, "call_100")
	if err == nil {
		_, err = s.Vote(ctx, another.ID, approval.Vote{By: "ada", Yes: true, Digest: another.Digest, Rules: another.Rules})
	}
	if err != nil || s.reads.Load() != decided {
		t.Fatalf("%d reads, %v", s.reads.Load(), err)
	}
	if changes := desk.Changes(ctx); changes != 2 || *k != (kept{3, asked - decided - 1, grants}) || s.reads.Load() != decided+1 {
		t.Errorf("after one more vote: %d changes, told %+v, %d reads", changes, *k, s.reads.Load())
	}
	if err := approvals.New(func() approvals.Kernel { return oneRule{} }, approvals.Deps{Store: away{s.Memory}, Observer: k}).Measure(ctx); err == nil || k.times != 3 {
		t.Errorf("of a store that is away: %v, told %+v", err, *k)
	}
}
