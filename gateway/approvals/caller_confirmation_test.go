package approvals_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// TestCallerSaysNo: a caller's no lets the same call ask again, unless the caller says that it
// stands: then the same call is denied without asking, and another still asks.
func TestCallerSaysNo(t *testing.T) {
	f := facetest.New(t, facetest.Options{
		Config: facetest.Config(t, map[string]string{
			"callgate.yaml":  "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\n",
			"approvals.yaml": "rules: {edits: {by: caller, within: 30m}}\n",
			"policy.csv":     "p, Analyst, *, edit, , ask:edits\n",
			"tools.yaml": "tools:\n  - {name: edit, version: 1.0.0, description: Edits., kind: edit, effect: once, run: {type: demo},\n" +
				"     input_schema: {type: object, properties: {line: {type: number}}}}\n",
		}),
		Change: func(_ *gateway.Config, p *calls.Deps) {
			kept := store.NewMemory(time.Now)
			p.Store, p.Approvals = kept, kept
		},
	})
	call := func(arguments string, say func(*approvals.Question) *approvals.Ballot) (code refusal.Code, asked int) {
		t.Helper()
		admission, err := f.Executor.Kernel.Admit(t.Context(), gateway.Request{})
		if err != nil {
			t.Fatal(err)
		}
		o := f.Executor.HandleAdmittedWaiting(t.Context(), admission, gateway.Input{Native: &gateway.NativeCall{Name: "edit", Arguments: []byte(arguments)}}, "",
			calls.Wait{Caller: func(_ context.Context, q approvals.Question) approvals.CallerAnswer {
				asked++
				return approvals.CallerAnswer{Ballot: say(&q)}
			}})
		if o.Refusal == nil {
			t.Fatalf("%s", o.Result)
		}
		return o.Refusal.Code, asked
	}
	yes := func(q *approvals.Question) *approvals.Ballot { return q.Yes(0) }
	late := func(q *approvals.Question) *approvals.Ballot { // another request of the same call was quicker
		if _, err := f.Executor.Desk().End(t.Context(), q.ID, approval.EndWithdrawn, "", ""); err != nil {
			t.Error(err)
		}
		return q.No()
	}
	for i, c := range []struct {
		arguments string
		say       func(*approvals.Question) *approvals.Ballot
		code      refusal.Code
		asked     int
	}{
		{`{"line":1}`, (*approvals.Question).No, refusal.ApprovalDenied, 1},
		{`{"line":1}`, late, refusal.ApprovalDenied, 1},                             // not judged anew
		{`{"line":1}`, (*approvals.Question).NoStanding, refusal.ApprovalDenied, 1}, // asked again
		{`{"line":1}`, yes, refusal.ApprovalDenied, 0},
		{`{ "line": 1 }`, yes, refusal.ApprovalDenied, 0}, // the same call
		{`{"line":2}`, yes, refusal.ToolUnavailable, 1},   // allowed: here is no engine that would run it
	} {
		if code, asked := call(c.arguments, c.say); code != c.code || asked != c.asked {
			t.Errorf("call %d: %q, asked %d times; expected %q, %d", i+1, code, asked, c.code, c.asked)
		}
	}
}

// TestACallersYesStandsForAnHour: a rule may let a yes stand for longer, but not one of a caller.
func TestACallersYesStandsForAnHour(t *testing.T) {
	for rule, most := range map[string]time.Duration{
		"{by: caller}": 0, "{by: caller, remember: {same: 90500ms}}": 90 * time.Second,
		"{by: caller, remember: {same: 1h}}": time.Hour, "{by: caller, remember: {same: 8h}}": time.Hour,
	} {
		f := facetest.New(t, facetest.Options{
			Config: facetest.Config(t, map[string]string{
				"callgate.yaml":  "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\n",
				"approvals.yaml": "rules: {edits: " + rule + "}\n",
				"policy.csv":     "p, Analyst, *, edit, , ask:edits\n",
				"tools.yaml":     "tools:\n  - {name: edit, version: 1.0.0, description: Edits., effect: once, run: {type: demo}, input_schema: {type: object}}\n",
			}),
			Change: func(_ *gateway.Config, p *calls.Deps) {
				kept := store.NewMemory(time.Now)
				p.Store, p.Approvals = kept, kept
			},
		})
		admission, err := f.Executor.Kernel.Admit(t.Context(), gateway.Request{})
		if err != nil {
			t.Fatal(err)
		}
		asked := time.Duration(-1)
		f.Executor.HandleAdmittedWaiting(t.Context(), admission, gateway.Input{Native: &gateway.NativeCall{Name: "edit", Arguments: []byte("{}")}}, "",
			calls.Wait{Caller: func(_ context.Context, q approvals.Question) approvals.CallerAnswer {
				asked = q.Remember
				return approvals.CallerAnswer{Ballot: q.Yes(q.Remember)}
			}})
		if asked != most {
			t.Errorf("%s is offered for %s; expected %s", rule, asked, most)
		}
	}
}

// failing is a store whose revocations of grants fail while it says so.
type failing struct {
	*store.Memory
	now bool
}

func (f *failing) RevokeGrant(ctx context.Context, id string) (approval.Grant, error) {
	if f.now {
		return approval.Grant{}, errors.New("the store is away")
	}
	return f.Memory.RevokeGrant(ctx, id)
}

// grants is a desk of one rule that approvers decide, and one that callers do; call makes a call that asks by one of
// them, and returns its code and the id of its approval, if it waits.
func grants(t *testing.T, kept *failing) (desk *approvals.Desk, call func(tool string) (refusal.Code, string)) {
	f := facetest.New(t, facetest.Options{
		Config: facetest.Config(t, map[string]string{
			"callgate.yaml":  "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\n",
			"approvals.yaml": "rules: {edits: {by: caller, remember: {same: 1h}}, pays: {approve: 1, remember: {same: 1h}}}\n",
			"policy.csv":     "p, Analyst, *, edit, , ask:edits\np, Analyst, *, pay, , ask:pays\n",
			"tools.yaml": "tools:\n  - {name: edit, version: 1.0.0, description: Edits., effect: once, run: {type: demo}, input_schema: {type: object}}\n" +
				"  - {name: pay, version: 1.0.0, description: Pays., effect: once, run: {type: demo}, input_schema: {type: object}}\n",
		}),
		Change: func(c *gateway.Config, p *calls.Deps) {
			p.Store, p.Approvals = kept.Memory, kept
			c.People = func(v approval.Vote) approval.Voter {
				return approval.Voter{Principal: v.By, Approves: []string{"pays"}}
			}
		},
	})
	admission, err := f.Executor.Kernel.Admit(t.Context(), gateway.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return f.Executor.Desk(), func(tool string) (refusal.Code, string) {
		o := f.Executor.HandleAdmittedWaiting(t.Context(), admission, gateway.Input{Native: &gateway.NativeCall{Name: tool, Arguments: []byte("{}")}}, "",
			calls.Wait{Caller: func(_ context.Context, q approvals.Question) (a approvals.CallerAnswer) {
				if len(q.Rules) > 0 {
					a.Ballot = q.Yes(q.Remember)
				}
				return a
			}})
		if o.Refusal == nil {
			t.Fatalf("%s", o.Result)
		}
		id := ""
		if o.ApprovalRequest != nil {
			id = o.ApprovalRequest.ID
		}
		return o.Refusal.Code, id
	}
}

// code is that of a refusal; empty without one.
func code(err error) refusal.Code {
	if err == nil {
		return ""
	}
	return refusal.From(refusal.Approval, err).Code
}

var ada = approval.Voter{Principal: "ada", Approves: []string{"pays"}}

// TestGrantsAreFull: a yes that should stand counts for its own call where no further grant can be kept. A caller
// that is asked within its call goes on with it, and an approver is told.
func TestGrantsAreFull(t *testing.T) {
	kept := &failing{Memory: store.NewMemory(time.Now)}
	for i := range store.MaxGrants {
		if err := kept.AddGrant(t.Context(), approval.Grant{ID: fmt.Sprintf("grant_%05d", i), Key: fmt.Sprint(i), Until: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	desk, call := grants(t, kept)
	if code, _ := call("edit"); code != refusal.ToolUnavailable { // allowed: here is no engine that would run it
		t.Errorf("a call that its caller allows: %s", code)
	}
	_, id := call("pay")
	a, err := desk.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	yes := approvals.Ballot{Yes: true, Digest: a.Digest, Remember: approval.Remember{Scope: approval.Same, For: time.Hour}}
	if _, err := desk.Vote(t.Context(), ada, id, yes); code(err) != refusal.Overloaded || !strings.Contains(err.Error(), "10000 grants") {
		t.Errorf("an approver is told %v", err)
	}
	if a, err := desk.Get(t.Context(), id); err != nil || desk.State(&a) != approval.Approved {
		t.Errorf("%s, %v", desk.State(&a), err)
	}
}

// TestRevokedAgain: a revocation that failed between the approval and its grants is finished by another.
func TestRevokedAgain(t *testing.T) {
	kept := &failing{Memory: store.NewMemory(time.Now), now: true}
	desk, call := grants(t, kept)
	_, id := call("pay")
	a, err := desk.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	yes := approvals.Ballot{Yes: true, Digest: a.Digest, Remember: approval.Remember{Scope: approval.Same, For: time.Hour}}
	if _, err := desk.Vote(t.Context(), ada, id, yes); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		code  refusal.Code
		stand int
	}{{refusal.StoreUnavailable, 1}, {refusal.StoreUnavailable, 1}, {"", 0}, {refusal.ApprovalConflict, 0}} {
		kept.now = i < 2
		_, err := desk.End(t.Context(), id, approval.EndRevoked, "op", "")
		stand, listed := desk.Grants(t.Context(), "", 10)
		if code(err) != want.code || len(stand) != want.stand || listed != nil {
			t.Errorf("revoked %d times: %v, %d grants stand, %v", i+1, err, len(stand), listed)
		}
	}
}
