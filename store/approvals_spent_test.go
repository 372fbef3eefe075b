package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// spending is a task that passes by a grant, and uses up approvals where they are left.
func spending(grant string, approvals ...string) store.Task {
	task := using(grant)
	task.Spends = approvals
	return task
}

// A dispatch by a grant uses up the approval that the grant came from, where that is left, and does
// without it where it is not. A dispatch that is refused uses up nothing.
func TestAGrantSpendsItsApproval(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(t *testing.T, s keeper, c *clock, a approval.Approval)
		spends []string
		err    error // of the dispatch
		// invalid says that no store takes such a task
		invalid bool
		ran     string // the call that the approval says
	}{
		"it is left": {ran: "call_B"},
		"it was used": {before: func(t *testing.T, s keeper, _ *clock, a approval.Approval) {
			must(t, s.Dispatch(ctx, opened(t, s, newCall("call_X", "")), using(a.ID)))
		}, ran: "call_X"},
		"it was spent": {before: func(t *testing.T, s keeper, _ *clock, a approval.Approval) {
			must(t, s.Dispatch(ctx, opened(t, s, newCall("call_Y", "")), spending("grant_1", a.ID)))
		}, ran: "call_Y"},
		"it was revoked": {before: func(t *testing.T, s keeper, _ *clock, a approval.Approval) {
			_, err := s.EndApproval(ctx, a.ID, approval.Ending{End: approval.EndRevoked})
			must(t, err)
		}},
		"its time is over": {before: func(_ *testing.T, _ keeper, c *clock, _ approval.Approval) { c.advance(45 * time.Minute) }},
		"it is not kept":   {spends: []string{"call_none"}},
		"the grant is gone": {before: func(t *testing.T, s keeper, _ *clock, _ approval.Approval) {
			_, err := s.RevokeGrant(ctx, "grant_1")
			must(t, err)
		}, err: approval.ErrEnded},
		"it is a grant": {spends: []string{"grant_2"}, invalid: true},
		"it is twice":   {spends: []string{"call_A", "call_A"}, invalid: true},
		"it is needed":  {spends: []string{"grant_1"}, invalid: true},
	} {
		t.Run(name, func(t *testing.T) {
			eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
				a := asked(t, s, question(t, c, "call_A", "p", `{"n": 1}`, "refunds"))
				voted(t, s, a, "ada", true)
				must(t, s.AddGrant(ctx, approval.Grant{ID: "grant_1", Approval: a.ID, Key: "k", Call: approval.Call{Principal: "p"}, Until: c.now().Add(time.Hour)}))
				if tc.before != nil {
					tc.before(t, s, c, a)
				}
				spends := tc.spends
				if spends == nil {
					spends = []string{a.ID}
				}
				err := s.Dispatch(ctx, opened(t, s, newCall("call_B", "")), spending("grant_1", spends...))
				if tc.invalid != (err != nil && tc.err == nil) || !tc.invalid && !errors.Is(err, tc.err) {
					t.Errorf("got %v, want %v, invalid %v", err, tc.err, tc.invalid)
				}
				got, err := s.Approval(ctx, a.ID)
				if err != nil || got.Ran != tc.ran || (got.Arguments == nil) != (got.Ran != "" || got.Ended.End != "") {
					t.Errorf("got %+v, %v", got, err)
				}
				if tc.ran != "" {
					refused(t, s.Dispatch(ctx, opened(t, s, newCall("call_C", "")), using(a.ID)), approval.ErrUsed)
				}
			})
		})
	}
}

// Of dispatches at once by one grant all succeed, and one is told to have used the approval up.
func TestAGrantSpendsItsApprovalOnce(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		a := asked(t, s, question(t, c, "call_A", "p", `{"n": 1}`, "refunds"))
		voted(t, s, a, "ada", true)
		must(t, s.AddGrant(ctx, approval.Grant{ID: "grant_1", Approval: a.ID, Key: "k", Call: approval.Call{Principal: "p"}, Until: c.now().Add(time.Hour)}))
		const racers = 16
		var all sync.WaitGroup
		for i := range racers {
			id := opened(t, s, newCall(fmt.Sprintf("call_R%02d", i), ""))
			all.Go(func() {
				if err := s.Dispatch(ctx, id, spending("grant_1", a.ID)); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			})
		}
		all.Wait()
		got, err := s.Approval(ctx, a.ID)
		if err != nil || got.Ran == "" || got.Revision != 2 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}
