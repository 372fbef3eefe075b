package store_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// Those approvals are live that can be voted on or used, and each change of one changes its
// revision; a new one has none.
func TestLiveApprovals(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		live := func(wantGrants int, want ...string) (first store.LiveApproval) {
			t.Helper()
			found, grants, err := s.LiveApprovals(ctx)
			must(t, err)
			slices.SortFunc(found, func(a, b store.LiveApproval) int { return cmp.Compare(a.ID, b.ID) })
			var ids []string
			for _, l := range found {
				ids = append(ids, l.ID)
			}
			if !slices.Equal(ids, want) || grants != wantGrants {
				t.Errorf("live are %q and %d grants, expected %q and %d", ids, grants, want, wantGrants)
			}
			if len(found) > 0 {
				first = found[0]
			}
			return first
		}
		live(0)
		a := asked(t, s, question(t, c, "call_A", "p", `1`, "deploys"))
		b := asked(t, s, question(t, c, "call_B", "q", `2`, "deploys"))
		asked(t, s, question(t, c, "call_C", "q", `3`, "refunds"))
		if l := live(0, "call_A", "call_B", "call_C"); l.Revision != 0 {
			t.Errorf("of a new approval the revision is %d", l.Revision)
		}
		for i, by := range []string{"ada", "bob"} {
			voted(t, s, a, by, true)
			if l := live(0, "call_A", "call_B", "call_C"); l.Revision != i+1 {
				t.Errorf("after %d votes the revision is %d", i+1, l.Revision)
			}
		}
		must(t, s.Dispatch(ctx, opened(t, s, newCall("run", "")), using(a.ID)))
		voted(t, s, b, "ada", false)
		for i := range 3 {
			must(t, s.AddGrant(ctx, approval.Grant{ID: fmt.Sprint("grant_", i), Key: "k", Rule: "deploys", Call: a.Call, Until: c.now().Add(time.Duration(i) * time.Hour)}))
		}
		live(2, "call_C")
		c.advance(time.Hour)
		live(1)
	})
}
