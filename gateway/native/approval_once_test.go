package native_test

import (
	"context"
	"testing"

	"github.com/callgate/callgate/approval"
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/store"
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

type approvalStore interface{ store.Approvals }

// overtaken is a store of approvals that does something else before it says what people have
// said of a call.
type overtaken struct {
	approvalStore
	before *func()
}

func (s overtaken) Consents(ctx context.Context, principal, digest string, keys []string) ([]approval.Approval, []approval.Grant, error) {
	if before := *s.before; before != nil {
		*s.before = nil
		before()
	}
	return s.approvalStore.Consents(ctx, principal, digest, keys)
}

// Two requests take the same call up at once: the slower one gets the result of the other, and
// nobody is asked for a call that has run.
func TestTakenUpAtOnce(t *testing.T) {
	var before func()
	o := newOffice(t, func(p *calls.Deps) { p.Approvals = overtaken{p.Approvals, &before} })
	id := o.send(t, "POST", "/v1/calls", pay("7")).CallID
	if err := o.vote(t, id, "ada", true, ""); err != nil {
		t.Fatal(err)
	}
	var first answered
	before = func() { first = o.send(t, "POST", "/v1/calls/"+id+"/resume", "") }
	second := o.send(t, "POST", "/v1/calls/"+id+"/resume", "")
	if first.status != 200 || second.status != 200 || o.ran.Load() != 1 {
		t.Errorf("%+v, and %+v; ran %d times", first, second, o.ran.Load())
	}
	asked := 0
	for _, r := range o.Journal.Records() {
		if r.Event == audit.Approval && r.Code == audit.Requested {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("people were asked %d times", asked)
	}
}
