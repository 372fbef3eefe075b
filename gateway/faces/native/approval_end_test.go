package native_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/store/approval"
)

// A call is taken up once, also where it passes by a grant, and where the policy asks nobody any
// more: a caller that takes it up again gets what became of it.
func TestTakenUpOnce(t *testing.T) {
	for name, c := range map[string]struct {
		remember approval.Remember
		policy   string
	}{
		"grant":           {approval.Remember{Scope: approval.Same, For: time.Hour}, "p, Analyst, *, pay, , ask:refunds\n"},
		"no longer asked": {approval.Remember{}, "p, Analyst, *, pay, , allow\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			id := o.send(t, "POST", "/v1/calls", pay("7")).CallID
			desk := o.Executor.Desk()
			a, err := desk.Get(context.Background(), id)
			if err != nil {
				t.Fatal(err)
			}
			_, err = desk.Vote(context.Background(), approval.Voter{Principal: "ada", Approves: []string{"refunds"}}, id,
				approvals.Ballot{Yes: true, Digest: a.Digest, Remember: c.remember})
			if err != nil {
				t.Fatal(err)
			}
			o.governed(t, c.policy)
			first := o.send(t, "POST", "/v1/calls/"+id+"/resume", "")
			second := o.send(t, "POST", "/v1/calls/"+id+"/resume", "")
			if first.status != 200 || second.status != 200 || o.ran.Load() != 1 {
				t.Errorf("%+v, then %+v; ran %d times", first, second, o.ran.Load())
			}
			if s := o.send(t, "GET", "/v1/calls/"+id, ""); s.State != "done" {
				t.Errorf("its status: %+v", s)
			}
		})
	}
}

// A call that has run under the key that it was asked under, when the policy asked nobody, does
// not run once more when it is taken up.
func TestTakenUpAfterItRanUnderItsKey(t *testing.T) {
	o := newOffice(t)
	id := o.send(t, "POST", "/v1/calls", pay("7"), "Idempotency-Key", "k1").CallID
	if err := o.vote(t, id, "ada", true, ""); err != nil {
		t.Fatal(err)
	}
	o.governed(t, "p, Analyst, *, pay, , allow\n")
	if got := o.send(t, "POST", "/v1/calls", pay("7"), "Idempotency-Key", "k1"); got.status != 200 || o.ran.Load() != 1 {
		t.Fatalf("%+v, ran %d times", got, o.ran.Load())
	}
	if got := o.send(t, "POST", "/v1/calls/"+id+"/resume", ""); got.status != 409 || o.ran.Load() != 1 {
		t.Errorf("%+v, ran %d times", got, o.ran.Load())
	}
}

// A grant does not outlive the approval that it comes from: who denies or revokes that ends it,
// and a vote that is sent again does not bring back what was revoked.
func TestGrantsEndWithTheirApproval(t *testing.T) {
	ctx := context.Background()
	for name, end := range map[string]func(o office, id string, again func()){
		"denied": func(o office, id string, _ func()) { _ = o.vote(t, id, "bob", false, "") },
		"revoked": func(o office, id string, _ func()) {
			_, _ = o.Executor.Desk().End(ctx, id, approval.EndRevoked, "ops", "")
		},
		"the grant is revoked, and the vote is sent again": func(o office, id string, again func()) {
			o.send(t, "POST", "/v1/calls/"+id+"/resume", "")
			grants, _ := o.Executor.Desk().Grants(ctx, "", 10)
			if _, err := o.Executor.Desk().RevokeGrant(ctx, grants[0].ID, "ops"); err != nil {
				t.Error(err)
			}
			again()
		},
		"the grant is revoked before the call has run": func(o office, id string, again func()) {
			grants, _ := o.Executor.Desk().Grants(ctx, "", 10)
			if _, err := o.Executor.Desk().RevokeGrant(ctx, grants[0].ID, "ops"); err != nil {
				t.Error(err)
			}
			if a := o.send(t, "POST", "/v1/calls/"+id+"/resume", ""); a.status != 403 || o.ran.Load() != 0 {
				t.Errorf("taken up: %+v, ran %d times", a, o.ran.Load())
			}
			if a := o.send(t, "POST", "/v1/calls", pay("7")); a.State != "approval" || a.CallID == id || o.ran.Load() != 0 {
				t.Errorf("sent again: %+v, ran %d times", a, o.ran.Load())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			id := o.send(t, "POST", "/v1/calls", pay("7")).CallID
			desk := o.Executor.Desk()
			a, err := desk.Get(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			say := func() {
				_, err := desk.Vote(ctx, approval.Voter{Principal: "ada", Approves: []string{"refunds"}}, id,
					approvals.Ballot{Yes: true, Digest: a.Digest, Remember: approval.Remember{Scope: approval.Same, For: time.Hour}})
				if err != nil {
					t.Fatal(err)
				}
			}
			say()
			if grants, err := desk.Grants(ctx, "", 10); err != nil || len(grants) != 1 {
				t.Fatalf("%d grants, %v", len(grants), err)
			}
			end(o, id, say)
			if grants, err := desk.Grants(ctx, "", 10); err != nil || len(grants) != 0 {
				t.Errorf("%d grants are left, %v", len(grants), err)
			}
		})
	}
}

// A request that waits for people ends when its caller calls the call off, or an operator revokes
// the approval: nobody is asked anew for it, and it does not run.
func TestCalledOffWhileItWaits(t *testing.T) {
	for name, end := range map[string]func(o office, id string){
		"called off": func(o office, id string) { o.send(t, "POST", "/v1/calls/"+id+"/cancel", "") },
		"revoked": func(o office, id string) {
			if _, err := o.Executor.Desk().End(context.Background(), id, approval.EndRevoked, "ops", ""); err != nil {
				t.Error(err)
			}
		},
	} {
		for _, by := range []string{"sent", "taken up"} {
			t.Run(name+" "+by, func(t *testing.T) {
				o := newOffice(t)
				method, path, body := "POST", "/v1/calls", pay("7")
				if by == "taken up" {
					path, body = "/v1/calls/"+o.send(t, method, path, body).CallID+"/resume", ""
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				done := make(chan answered, 1)
				go func() { done <- o.send(t, method, path, body, "Prefer", "wait=300") }()
				id := o.asked(t)
				end(o, id)
				select {
				case a := <-done:
					if a.status != 403 || a.State != "" || o.ran.Load() != 0 {
						t.Errorf("%+v", a)
					}
				case <-ctx.Done():
					t.Fatal("it still waits")
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
			})
		}
	}
}

// A yes is to the tool as it is defined: where any part of that changes, people are asked anew.
func TestAskedAnewForAnotherDefinition(t *testing.T) {
	const base = `description: Pays., kind: execute, effect: once, output_schema: {type: object}, ` +
		`run: {type: mcp, tool: x, command: [bin/server, a], env: {MODE: test, KEY: "env:KEY"}}, input_schema: {type: object, properties: {amount: {type: number}}}`
	o := newOffice(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml]}\n", "policy.csv": "p, Analyst, *, *, , allow\n", "limits.yaml": "{}\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n",
	} {
		writeEnded(t, filepath.Join(dir, name), text)
	}
	defined := func(with string) string {
		writeEnded(t, filepath.Join(dir, "tools.yaml"), "tools:\n  - {name: pay, version: 1.0.0, "+with+"}\n")
		c, err := configs.Load(filepath.Join(dir, "callgate.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		changed := *o.now
		changed.Tools = c.Tools
		if err := o.Executor.Kernel.Swap(&changed); err != nil {
			t.Fatal(err)
		}
		return o.send(t, "POST", "/v1/calls", pay("7")).CallID
	}
	asked := map[string]string{defined(base): "none"}
	if again := defined(base); asked[again] == "" {
		t.Error("the same definition is another")
	}
	for _, change := range [][2]string{
		{"Pays.", "Pays!"}, {"kind: execute", "kind: read"}, {"effect: once", "effect: idempotent"}, {"{type: object},", "{type: array},"},
		{"tool: x", "tool: y"}, {"bin/server, a", "bin/server, b"}, {"MODE: test", "MODE: live"}, {"env:KEY", "env:OTHER"}, {"type: number", "type: integer"},
	} {
		id := defined(strings.Replace(base, change[0], change[1], 1))
		if id == "" || asked[id] != "" {
			t.Errorf("%s: the approval %q of %q", change[1], id, asked[id])
		}
		asked[id] = change[1]
	}
}

func writeEnded(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text+"# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// An approval is for one call: an answer with the same call twice runs none, and leaves the
// approval to be used.
func TestOneApprovalForTwoCallsOfAnAnswer(t *testing.T) {
	ctx := context.Background()
	for _, mode := range []gateway.Mode{gateway.ModeEnforce, gateway.ModeCall} {
		o := newOffice(t)
		id := o.send(t, "POST", "/v1/calls", pay("7")).CallID
		if err := o.vote(t, id, "ada", true, ""); err != nil {
			t.Fatal(err)
		}
		a, err := o.Executor.Kernel.Admit(ctx, gateway.Request{})
		if err != nil {
			t.Fatal(err)
		}
		twice := gateway.Input{Completion: []byte(pay("7"))}
		d := a.Judge(ctx, mode, twice, twice)
		if refused := d.Refusal(); refused == nil || refused.Code != "approval_conflict" {
			t.Fatalf("%s: %v", mode, refused)
		}
		act := o.Executor.Execute
		if mode == gateway.ModeEnforce {
			act = o.Executor.HandOver
		}
		for _, out := range act(ctx, d) {
			if out.Refusal == nil {
				t.Errorf("%s: it was acted on", mode)
			}
		}
		if s := o.send(t, "GET", "/v1/calls/"+id, ""); s.State != "approved" || o.ran.Load() != 0 {
			t.Errorf("%s: %+v, ran %d times", mode, s, o.ran.Load())
		}
	}
}
