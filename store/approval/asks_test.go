package approval_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// TestAsksForWhatIsNotGranted goes through every state of a call that asks by two rules: which of them is
// granted, and which approvals of it are open, with which votes. The call passes only where each rule is
// satisfied by itself. People are never asked about a rule that is granted, unless an approval that waits
// is joined; they are asked about all others; and once they say yes to what they are asked, it passes.
func TestAsksForWhatIsNotGranted(t *testing.T) {
	both := approval.Rules{}
	for _, name := range []string{"refunds", "deploys"} {
		both[name] = approval.Rule{Name: name, Approve: 1, Within: time.Hour, Remember: map[approval.Scope]time.Duration{approval.AnyCall: time.Hour}}
	}
	able := staff{}
	by := map[string]string{"refunds": "ada", "deploys": "bob"}
	for rule, name := range by {
		able[name] = approval.Voter{Principal: name, Approves: []string{rule}}
	}
	asks, now := []string{"refunds", "deploys"}, start.Add(time.Minute)
	open := func(id string, rules ...string) approval.Approval {
		a, err := approval.Open(approval.Approval{ID: id, Call: call(), Rules: rules}, both, start)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	yes := func(a approval.Approval, rule string) approval.Approval {
		v := approval.Vote{By: by[rule], Yes: true, Digest: a.Digest, Rules: []string{rule}, Remember: approval.Remember{Scope: approval.AnyCall, For: time.Hour}}
		if _, err := a.Cast(v, start); err != nil {
			t.Fatal(err)
		}
		return a
	}
	// The ways in which an approval of some rules can be there: not, or with the votes of some of them.
	ways := func(id string, rules ...string) [][]approval.Approval {
		all := [][]approval.Approval{nil, {open(id, rules...)}}
		for _, rule := range rules {
			for _, was := range slices.Clone(all[1:]) {
				all = append(all, []approval.Approval{yes(was[0], rule)})
			}
		}
		return all
	}
	states := 0
	for granted := range 4 {
		var grants []approval.Grant
		isGranted := map[string]bool{}
		for i, rule := range asks {
			if granted>>i&1 == 1 {
				a := yes(open("call_G"+rule, rule), rule)
				grants = append(grants, a.Grants(both, able.now, now)...)
				isGranted[rule] = true
			}
		}
		for _, first := range ways("call_A", "refunds") {
			for _, second := range ways("call_B", "deploys") {
				for _, third := range ways("call_C", asks...) {
					found := slices.Concat(first, second, third)
					states++
					c := call()
					v, err := approval.Judge(&c, asks, found, grants, both, able.now, now)
					if err != nil {
						t.Fatal(err)
					}
					satisfied := func(rule string) bool {
						return isGranted[rule] || slices.ContainsFunc(found, func(a approval.Approval) bool {
							return a.Enough(rule, both, able.now, now) && slices.Contains(a.Rules, rule)
						})
					}
					state := fmt.Sprintf("granted %v, found %d: %+v", isGranted, len(found), v)
					if v.Passes != (satisfied("refunds") && satisfied("deploys")) || v.Passes != (len(v.Asks) == 0) {
						t.Fatalf("passes: %s", state)
					}
					if v.Passes {
						continue
					}
					joins := slices.ContainsFunc(found, func(a approval.Approval) bool { return slices.Equal(a.Rules, v.Asks) })
					for _, rule := range asks {
						if asked := slices.Contains(v.Asks, rule); !asked && !isGranted[rule] || asked && isGranted[rule] && !joins {
							t.Fatalf("asks about %s: %v: %s", rule, asked, state)
						}
					}
					asked := open("call_D", v.Asks...)
					for _, rule := range v.Asks {
						asked = yes(asked, rule)
					}
					if v, err = approval.Judge(&c, asks, append(found, asked), grants, both, able.now, now); err != nil || !v.Passes {
						t.Fatalf("it does not pass after that: %v, %+v: %s", err, v, state)
					}
				}
			}
		}
	}
	if states != 4*3*3*5 {
		t.Errorf("%d states", states)
	}
}
