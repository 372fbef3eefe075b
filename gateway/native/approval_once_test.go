package native_test

import (
	"context"
	"testing"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
)

// An answer with the same call twice is refused before anybody is asked: a yes is for one, and
// none may be used up while nothing runs.
func TestSameCallTwiceInAnAnswer(t *testing.T) {
	for _, mode := range []gateway.Mode{gateway.ModeCall, gateway.ModeEnforce} {
		o, ctx := newOffice(t), context.Background()
		a, err := o.Executor.Admit(ctx, gateway.Request{})
		if err != nil {
			t.Fatal(err)
		}
		both := a.Judge(ctx, mode, gateway.Input{Completion: []byte(pay("7"))}, gateway.Input{Completion: []byte(pay(" 7"))})
		end := o.Executor.Execute
		if mode == gateway.ModeEnforce {
			end = o.Executor.HandOver
		}
		end(ctx, both)
		if refused := both.Refusal(); refused == nil || o.ran.Load() != 0 || refused.Code != "approval_conflict" || both.Reports[1].Refusal == nil {
			t.Errorf("%s: %v", mode, both.Reports)
		}
		for _, r := range o.Journal.Records() {
			if r.Event == audit.Approval {
				t.Errorf("%s: asked: %+v", mode, r)
			}
		}
	}
}
