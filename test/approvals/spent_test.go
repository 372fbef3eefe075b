package approvals_test

import (
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
)

// remembered has ada approve a call by a vote that stands for five minutes, and returns its approval.
func (o *office) remembered(t *testing.T, f face, c call, scope approval.Scope) string {
	t.Helper()
	first := o.bring(t, f, c)
	if first.code != string(refusal.ApprovalRequired) {
		t.Fatalf("first: %q", first.code)
	}
	a, err := o.Executor.Desk().Get(t.Context(), first.id)
	if err == nil {
		_, err = o.Executor.Desk().Vote(t.Context(), o.people(approval.Vote{By: "ada"}), a.ID, approvals.Ballot{
			Yes: true, Digest: a.Digest, Remember: approval.Remember{Scope: scope, For: 5 * time.Minute},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return first.id
}

// TestNoRunBehindAGrant: a call that has run by a yes that stands does not run again by the same vote
// once that yes stands no longer, on any face and whatever ended it.
func TestNoRunBehindAGrant(t *testing.T) {
	ends := map[string]func(t *testing.T, o *office){
		"revoked": func(t *testing.T, o *office) {
			grants, err := o.Executor.Desk().Grants(t.Context(), "", 10)
			if err != nil || len(grants) != 1 {
				t.Fatalf("%+v, %v", grants, err)
			}
			if _, err := o.Executor.Desk().RevokeGrant(t.Context(), grants[0].ID, "op"); err != nil {
				t.Fatal(err)
			}
		},
		"its time": func(_ *testing.T, o *office) { o.later.Store(int64(6 * time.Minute)) },
		"the rule": func(t *testing.T, o *office) {
			o.reload(t, with("approvals.yaml", strings.Replace(rulesFile, "remember: {same: 1h, thread: 1h, tool: 1h}", "", 1)))
		},
	}
	pay := call{Arguments: `{"amount":7}`, Thread: "t"}
	check := func(name string, f face, scope approval.Scope, runs int, end func(*testing.T, *office)) {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, asking)
			id := o.remembered(t, f, pay, scope)
			for range runs {
				if got := o.bring(t, f, pay); got.code != "" {
					t.Fatalf("by the grant: %q", got.code)
				}
			}
			end(t, o)
			want := string(refusal.ApprovalRequired)
			if got := o.bring(t, f, pay); got.code != want {
				t.Errorf("once the grant is gone: %q", got.code)
			}
			a, err := o.Executor.Desk().Get(t.Context(), id)
			if err != nil || a.Ran == "" || len(o.opened()) != 2 {
				t.Errorf("%+v, %v; people were asked %d times", a, err, len(o.opened()))
			}
		})
	}
	for name, end := range ends {
		for _, scope := range approval.Scopes() {
			for _, runs := range []int{1, 3} {
				check(name+"/"+string(scope)+"/native", faces()[0], scope, runs, end)
			}
		}
		for _, f := range faces()[1:] {
			check(name+"/"+f.name, f, approval.Same, 1, end)
		}
	}
}

// TestAnotherCallSpendsNothing: a call of other arguments that runs by a yes that stands is not the one
// that was approved: that one may still run once.
func TestAnotherCallSpendsNothing(t *testing.T) {
	o, f, pay := newOffice(t, asking), faces()[0], call{Arguments: `{"amount":7}`}
	id := o.remembered(t, f, pay, approval.AnyCall)
	if got := o.bring(t, f, call{Arguments: `{"amount":8}`}); got.code != "" {
		t.Fatalf("by the grant: %q", got.code)
	}
	a, err := o.Executor.Desk().Get(t.Context(), id)
	if err != nil || o.Executor.Desk().State(&a) != approval.Approved {
		t.Errorf("%+v, %v", a, err)
	}
	o.later.Store(int64(6 * time.Minute))
	for _, want := range []string{"", string(refusal.ApprovalRequired)} {
		if got := o.bring(t, f, pay); got.code != want {
			t.Errorf("%q, want %q", got.code, want)
		}
	}
}
