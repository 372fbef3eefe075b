package approvals_test

import (
	"slices"
	"testing"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
)

// TestAsksForWhatIsNotGranted: of two rules that ask, people are asked about the one for which no yes
// stands, on every face; the call still passes by both. One that waits for both is joined.
func TestAsksForWhatIsNotGranted(t *testing.T) {
	const required = string(refusal.ApprovalRequired)
	askBoth := map[string]string{"policy.csv": "p, Analyst, *, pay, , ask:one\np, Analyst, *, pay, , ask:other\n"}
	pay := call{Arguments: `{"amount":7}`}
	for _, f := range faces() {
		t.Run(f.name, func(t *testing.T) {
			o := newOffice(t, asking)
			o.remembered(t, f, pay, approval.AnyCall)
			o.reload(t, askBoth)
			for _, c := range []call{pay, {Arguments: `{"amount":8}`}} {
				asked := o.bring(t, f, c)
				a, err := o.Executor.Desk().Get(t.Context(), asked.id)
				if err != nil || asked.code != required || !slices.Equal(a.Rules, []string{"other"}) {
					t.Fatalf("%+v: %+v, %v", asked, a.Rules, err)
				}
				o.vote(t, a.ID, vote{By: "zoe", Yes: true})
				if again := o.bring(t, f, c); again.code != "" {
					t.Errorf("once both say yes: %q", again.code)
				}
			}
		})
	}
	o, f := newOffice(t, askBoth), faces()[0]
	first := o.bring(t, f, pay)
	o.reload(t, asking)
	o.remembered(t, f, call{Arguments: `{"amount":8}`}, approval.AnyCall)
	o.reload(t, askBoth)
	if again := o.bring(t, f, pay); again.code != required || len(o.opened()) != 2 {
		t.Errorf("%q; people were asked %d times", again.code, len(o.opened()))
	}
	o.vote(t, first.id, vote{By: "zoe", Yes: true})
	if again := o.bring(t, f, pay); again.code != "" {
		t.Errorf("%q", again.code)
	}
}
