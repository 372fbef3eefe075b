package approvals_test

import (
	"fmt"
	"testing"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// TestFullOfApprovals: who has as many calls that wait for people as may wait can ask for no other.
// Equal calls still join, calls that ask nobody run, other callers ask, and one that is decided makes
// room.
func TestFullOfApprovals(t *testing.T) {
	const required = string(refusal.ApprovalRequired)
	o := newOffice(t, map[string]string{"policy.csv": "p, Analyst, *, pay, , ask:one\np, Analyst, *, refund, , allow\n"})
	native, pay := faces()[0], func(n int) call { return call{Arguments: fmt.Sprintf(`{"amount":%d}`, n)} }
	var first string
	for n := range store.MaxLiveOfPrincipal {
		got := o.bring(t, native, pay(n))
		if got.code != required {
			t.Fatalf("%d: %q", n, got.code)
		}
		if n == 0 {
			first = got.id
		}
	}
	more := pay(store.MaxLiveOfPrincipal)
	ofAnother := more
	ofAnother.Caller = "other"
	for name, c := range map[string]struct {
		call call
		code string
	}{
		"one more": {more, string(refusal.Overloaded)}, "an equal call": {pay(0), required},
		"one that asks nobody": {call{Arguments: `{"amount":1}`, Tool: "refund"}, ""}, "another caller": {ofAnother, required},
	} {
		w := native.send(o, c.call)
		if code := codeOf(t, o, w); code != c.code {
			t.Errorf("%s: %q, want %q", name, code, c.code)
		}
	}
	if asked := len(o.opened()); asked > store.MaxLiveOfPrincipal+2 { // that of the other, and the event of one that was not kept
		t.Errorf("people were asked %d times", asked)
	}
	o.vote(t, first, vote{By: "ada"})
	if got := o.bring(t, native, more); got.code != required {
		t.Errorf("once there is room: %q", got.code)
	}
}
