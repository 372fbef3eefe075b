package approvals_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// till is a gateway whose one tool asks people.
type till struct {
	*facetest.Fixture
	*testing.T
}

func newTill(t *testing.T) till {
	t.Helper()
	f := facetest.New(t, facetest.Options{
		Config: facetest.Config(t, map[string]string{
			"callgate.yaml":  "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\n",
			"approvals.yaml": "rules: {refunds: {within: 30m}}\n",
			"policy.csv":     "p, Analyst, *, pay, , ask:refunds\n",
			"tools.yaml": "tools:\n  - {name: pay, version: 1.0.0, description: Pays., kind: execute, effect: once, run: {type: demo},\n" +
				"     input_schema: {type: object, properties: {amount: {type: number}}}}\n",
		}),
		Change: func(_ *gateway.Config, p *calls.Deps) {
			kept := store.NewMemory(time.Now)
			p.Store, p.Approvals = kept, kept
		},
	})
	return till{f, t}
}

// judged are decisions about calls of different amounts, as of the choices of one answer.
func (o till) judged(choices int) []*gateway.Decision {
	o.Helper()
	a, err := o.Executor.Kernel.Admit(o.Context(), gateway.Request{})
	if err != nil {
		o.Fatal(err)
	}
	all := make([]*gateway.Decision, choices)
	for i := range all {
		text := fmt.Sprintf(`{"tool":{"name":"pay","arguments":{"amount":%d}}}`, i)
		all[i] = a.Judge(o.Context(), gateway.ModeEnforce, gateway.Input{Completion: []byte(text)})
	}
	return all
}

// asked waits until people can decide on so many calls, and returns their ids. The log has an
// approval before the store has it.
func (o till) asked(count int) (ids []string) {
	for len(ids) < count {
		ids = nil
		for _, r := range o.Journal.Records() {
			if r.Event != audit.Approval || r.Code != audit.Requested {
				continue
			}
			if _, err := o.Executor.Desk().Get(o.Context(), r.CallID); err == nil {
				ids = append(ids, r.CallID)
			}
		}
		if o.Context().Err() != nil {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return ids
}

func (o till) approve(id string) {
	desk := o.Executor.Desk()
	a, err := desk.Get(o.Context(), id)
	if err == nil {
		_, err = desk.Vote(o.Context(), approval.Voter{Principal: "ada", Approves: []string{"refunds"}}, id, approvals.Ballot{Yes: true, Digest: a.Digest})
	}
	if err != nil {
		o.Error(err)
	}
}

// People are asked for all choices of an answer before any is waited for, and may decide them in
// any order: the choices wait together.
func TestDecisionsWaitTogether(t *testing.T) {
	o := newTill(t)
	choices := o.judged(3)
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.Executor.AwaitApproval(context.Background(), calls.Wait{For: time.Hour}, choices...)
	}()
	ids := o.asked(3)
	for _, i := range []int{2, 0, 1} {
		o.approve(ids[i])
	}
	<-done
	for i, d := range choices {
		if d.Refusal() != nil {
			t.Errorf("choice %d: %v", i, d.Refusal())
		}
		d.Release()
	}
}

// When the time of a wait is over, a choice passes that people have approved while another was
// waited for. If the request has ended, none does.
func TestDecidedWhileAnotherWaits(t *testing.T) {
	o := newTill(t)
	choices, desk := o.judged(2), o.Executor.Desk()
	for _, d := range choices {
		if !desk.Ask(o.Context(), d) {
			t.Fatal("nobody is asked")
		}
	}
	o.approve(choices[1].Reports[0].ApprovalRequest.ID)
	over, cancel := context.WithCancel(o.Context())
	cancel()
	if approvals.IsDecided(desk, o.Context(), over, choices[0]) || !approvals.IsDecided(desk, o.Context(), over, choices[1]) {
		t.Error("at the end of the time a decided call counts as undecided, or another as decided")
	}
	if approvals.IsDecided(desk, over, over, choices[1]) {
		t.Error("a request that has ended continues")
	}
}
