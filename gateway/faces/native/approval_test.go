package native_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/tool"
)

// office is a gateway whose one tool asks people, with a count of how often the tool ran.
type office struct {
	*facetest.Fixture
	ran   *atomic.Int32
	later *atomic.Int64 // by how much its clock is ahead
	now   *gateway.Config
}

// governed makes a policy that of the office.
func (o office) governed(t *testing.T, policy string) {
	t.Helper()
	changed := *o.now
	changed.Policy = officeConfig(t, policy).Policy
	if err := o.Executor.Kernel.Swap(&changed); err != nil {
		t.Fatal(err)
	}
}

func newOffice(t *testing.T, change ...func(*calls.Deps)) office {
	t.Helper()
	o := office{ran: &atomic.Int32{}, later: &atomic.Int64{}}
	now := func() time.Time { return time.Now().Add(time.Duration(o.later.Load())) }
	o.Fixture = facetest.New(t, facetest.Options{
		Config: officeConfig(t, "p, Analyst, *, pay, , ask:refunds\n"),
		Engine: facetest.ToolFunc(func(call tool.Call) (tool.Result, error) {
			o.ran.Add(1)
			return tool.Result{Body: call.Arguments, JSON: true}, nil
		}),
		Change: func(c *gateway.Config, p *calls.Deps) {
			o.now = c
			kept := store.NewMemory(now)
			p.Now, p.Store, p.Approvals = now, kept, kept
			for _, f := range change {
				f(p)
			}
		},
	})
	native.New(native.Options{Executor: o.Executor, Log: o.Logger}).Mount(o.Server)
	return o
}

// officeConfig is the configuration of an office with a policy, and tools that a test may change.
func officeConfig(t *testing.T, policy string, change ...func(string) string) *configs.Config {
	tools := "tools:\n  - {name: pay, version: 1.0.0, description: Pays., kind: execute, effect: once, run: {type: demo},\n" +
		"     input_schema: {type: object, properties: {amount: {type: number}}}}\n"
	for _, f := range change {
		tools = f(tools)
	}
	return facetest.Config(t, map[string]string{
		"callgate.yaml":  "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\n",
		"approvals.yaml": "rules: {refunds: {within: 30m, remember: {same: 1h}}}\n",
		"policy.csv":     policy,
		"tools.yaml":     tools,
	})
}

// answered is an answer of the face about a call.
type answered struct {
	ID       string
	CallID   string `json:"call_id"`
	State    string
	Approval *struct {
		Rules []string
		Until time.Time
	}
	Result *struct {
		Output json.RawMessage
	} `json:"tool_result"`
	status int
	code   string
	header http.Header
}

func (o office) send(t *testing.T, method, path, body string, headers ...string) answered {
	t.Helper()
	w := ask(o, method, path, body, append(headers, "Content-Type", "text/plain")...)
	a := answered{status: w.Code, header: w.Header()}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	if a.Result != nil {
		a.code = codeOf(t, w)
	}
	return a
}

func (o office) vote(t *testing.T, id string, by string, yes bool, reason string) error {
	t.Helper()
	a, err := o.Executor.Desk().Get(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Executor.Desk().Vote(context.Background(), approval.Voter{Principal: by, Approves: []string{"refunds"}}, id,
		approvals.Ballot{Yes: yes, Digest: a.Digest, Reason: reason})
	return err
}

func pay(amount string) string {
	return `{"tool":{"name":"pay","arguments":{"amount":` + amount + `}}}`
}

// The log names a row that asks by its whole place, in each decision and request alike, also after approvers were shown
// the row without its folder.
func TestAskingRowsAreRecorded(t *testing.T) {
	for name, policy := range map[string]string{
		"always":        "p, Analyst, *, pay, , ask:refunds\n",
		"on conditions": "p, Analyst, *, pay, args.amount > 1, ask:refunds\n",
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.governed(t, policy)
			place := o.Executor.Kernel.Config().Policy.Rows()[0].Place()
			if place == "policy.csv:1" {
				t.Fatalf("the policy has no folder: %s", place)
			}
			for _, amount := range []string{"7", "8", "7"} {
				id := o.send(t, "POST", "/v1/calls", pay(amount)).CallID
				if a, err := o.Executor.Desk().Get(t.Context(), id); err != nil || !slices.Equal(a.Rows, []string{"policy.csv:1"}) {
					t.Errorf("approvers of %s see the rows %q, %v", amount, a.Rows, err)
				}
			}
			records := o.Journal.Records()
			if len(records) != 5 { // three decisions, and two approvals requested
				t.Errorf("%d records", len(records))
			}
			for i, r := range records {
				if !slices.Equal(r.Rows, []string{place}) {
					t.Errorf("record %d (%s %s) has the rows %q, want %q", i, r.Event, r.Code, r.Rows, place)
				}
			}
		})
	}
}

// A call waits for people, is asked for once however often it is sent, and runs once by their
// yes: taken up by its id, or sent again.
func TestApproved(t *testing.T) {
	for name, again := range map[string]func(o office, id string) answered{
		"taken up": func(o office, id string) answered { return o.send(t, "POST", "/v1/calls/"+id+"/resume", "") },
		"sent again": func(o office, _ string) answered {
			return o.send(t, "POST", "/v1/calls", `{ "tool":{"name":"pay","arguments":{"amount": 7}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			first := o.send(t, "POST", "/v1/calls", pay("7"), "Callgate-Id", "mine")
			if first.ID != "mine" {
				t.Errorf("the id of the request is answered with %q", first.ID)
			}
			if a, err := o.Executor.Desk().Get(context.Background(), first.CallID); err != nil || len(a.Rows) != 1 || a.Rows[0] != "policy.csv:1" {
				t.Errorf("approvers see the rows %q, %v", a.Rows, err)
			}
			if first.status != 202 || first.State != "approval" || first.Approval == nil || first.Approval.Rules[0] != "refunds" || first.header.Get("Callgate-Call-Id") != first.CallID {
				t.Fatalf("asked: %+v", first)
			}
			for _, other := range []answered{
				o.send(t, "POST", "/v1/calls", pay("7")), o.send(t, "POST", "/v1/calls", pay("7"), "Idempotency-Key", "k"),
				o.send(t, "POST", "/v1/calls/"+first.CallID+"/resume", ""), o.send(t, "GET", "/v1/calls/"+first.CallID, ""),
			} {
				if other.State != "approval" || other.CallID != first.CallID {
					t.Errorf("while it waits: %+v", other)
				}
			}
			if other := o.send(t, "POST", "/v1/calls", pay("7.0")); other.CallID == first.CallID {
				t.Error("a call of another amount joined")
			}
			if err := o.vote(t, first.CallID, "ada", true, ""); err != nil {
				t.Fatal(err)
			}
			if s := o.send(t, "GET", "/v1/calls/"+first.CallID, ""); s.State != "approved" || o.ran.Load() != 0 {
				t.Errorf("approved: %+v, ran %d times", s, o.ran.Load())
			}
			if a := again(o, first.CallID); a.status != 200 || !strings.Contains(string(a.Result.Output), "7") || o.ran.Load() != 1 {
				t.Fatalf("%+v, ran %d times", a, o.ran.Load())
			}
			if a := o.send(t, "POST", "/v1/calls/"+first.CallID+"/resume", ""); a.status != 200 || a.code != "" {
				t.Errorf("taken up again: %+v", a)
			}
			if s := o.send(t, "GET", "/v1/calls/"+first.CallID, ""); s.State != "done" {
				t.Errorf("its status: %+v", s)
			}
			if a := o.send(t, "POST", "/v1/calls", pay("7")); a.status != 202 || a.CallID == first.CallID || o.ran.Load() != 1 {
				t.Errorf("sent once more: %+v, ran %d times", a, o.ran.Load())
			}
			codes := ""
			for _, r := range o.Journal.Records() {
				if r.Event == audit.Approval && r.CallID == first.CallID {
					codes += " " + string(r.Code)
				}
				if r.Event == audit.Decision && r.Verdict == audit.ToolCall && (len(r.Approvals) != 1 || r.Approvals[0] != first.CallID || r.Rules[0] != "refunds=1") {
					t.Errorf("the decision names %q and %q", r.Approvals, r.Rules)
				}
			}
			if codes != " requested yes" {
				t.Errorf("recorded:%s", codes)
			}
		})
	}
}

// A request that waits holds no slot, and runs the call at once when people approve it.
func TestWaitsForApproval(t *testing.T) {
	o := newOffice(t)
	done := make(chan answered, 1)
	go func() { done <- o.send(t, "POST", "/v1/calls", pay("7"), "Prefer", "wait=300") }()
	id := o.asked(t)
	if err := o.vote(t, id, "ada", true, ""); err != nil {
		t.Fatal(err)
	}
	if a := <-done; a.status != 200 || a.code != "" || o.ran.Load() != 1 {
		t.Errorf("%+v", a)
	}
	if o.InFlight() != 0 {
		t.Errorf("%d in flight", o.InFlight())
	}
	for _, wait := range []string{"wait=301", "wait=-1", "wait=", "wait=+1", "wait=1.5"} {
		if a := o.send(t, "POST", "/v1/calls", pay("7"), "Prefer", wait); a.status != 400 {
			t.Errorf("Prefer: %s: %+v", wait, a)
		}
	}
}

// asked waits until somebody is asked, and returns for which call.
func (o office) asked(t *testing.T) string {
	t.Helper()
	for {
		for _, r := range o.Journal.Records() {
			if r.Event == audit.Approval {
				if _, err := o.Executor.Desk().Get(context.Background(), r.CallID); err == nil {
					return r.CallID
				}
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// A call that people deny, that its caller calls off, or that nobody decides does not run, and its refusal says why.
func TestNotApproved(t *testing.T) {
	for name, c := range map[string]struct {
		end         func(o office, id string)
		code, again string // of the call that asked, and of the same call again
	}{
		"denied": {func(o office, id string) { _ = o.vote(t, id, "ada", false, "no \"refund\"\u202e") }, "approval_denied", "approval_denied"},
		"called off": {func(o office, id string) {
			if s := o.send(t, "POST", "/v1/calls/"+id+"/cancel", ""); s.State != "done" {
				t.Errorf("called off: %+v", s)
			}
		}, "approval_required", ""},
		"nobody decides": {func(o office, _ string) { o.later.Store(int64(31 * time.Minute)) }, "approval_expired", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			id := o.send(t, "POST", "/v1/calls", pay("7")).CallID
			c.end(o, id)
			if s := o.send(t, "GET", "/v1/calls/"+id, ""); s.State != "done" || s.code != c.code {
				t.Errorf("its status: %+v", s)
			}
			if a := o.send(t, "POST", "/v1/calls/"+id+"/resume", ""); a.status != 403 || a.code != c.code {
				t.Errorf("taken up: %+v", a)
			}
			if a := o.send(t, "POST", "/v1/calls", pay("7")); a.code != c.again || c.again == "" && (a.State != "approval" || a.CallID == id) {
				t.Errorf("sent again: %+v", a)
			}
			if o.ran.Load() != 0 {
				t.Error("it ran")
			}
		})
	}
}

// Without the audit log nobody is asked and no vote counts.
func TestApprovalNeedsTheLog(t *testing.T) {
	o := newOffice(t)
	o.Journal.SetFailing(true)
	if a := o.send(t, "POST", "/v1/calls", pay("7")); a.status != 503 || a.code != "audit_unavailable" {
		t.Errorf("asked: %+v", a)
	}
	o.Journal.SetFailing(false)
	id := o.send(t, "POST", "/v1/calls", pay("7")).CallID
	o.Journal.SetFailing(true)
	if err := o.vote(t, id, "ada", true, ""); err == nil {
		t.Error("a vote counts without a record")
	}
	if s := o.send(t, "GET", "/v1/calls/"+id, ""); s.State != "approval" {
		t.Errorf("then: %+v", s)
	}
}

// A call that the application runs is waited for as any other, and uses its approval up when it
// is handed over: the same call of another answer is not.
func TestHandedOverByAnApproval(t *testing.T) {
	o, ctx := newOffice(t), context.Background()
	a, err := o.Executor.Kernel.Admit(ctx, gateway.Request{})
	if err != nil {
		t.Fatal(err)
	}
	judge := func() *gateway.Decision {
		return a.Judge(ctx, gateway.ModeEnforce, gateway.Input{Completion: []byte(pay("7"))})
	}
	d := judge()
	go func() {
		if err := o.vote(t, o.asked(t), "ada", true, ""); err != nil {
			t.Error(err)
		}
	}()
	o.Executor.AwaitApproval(ctx, calls.Wait{For: time.Minute}, d)
	other := judge()
	if d.Refusal() != nil || other.Refusal() != nil {
		t.Fatalf("approved: %v, %v", d.Refusal(), other.Refusal())
	}
	if out := o.Executor.HandOver(ctx, d)[0]; out.Refusal != nil {
		t.Errorf("handed over: %v", out.Refusal)
	}
	if out := o.Executor.HandOver(ctx, other)[0]; out.Refusal == nil || out.Refusal.Code != "approval_required" {
		t.Errorf("handed over twice by one approval: %v", out.Refusal)
	}
	if err := o.Executor.Kernel.Flush(ctx); err != nil || o.ran.Load() != 0 {
		t.Errorf("%v, ran %d times", err, o.ran.Load())
	}
}
