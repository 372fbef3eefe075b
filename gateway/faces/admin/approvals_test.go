package admin_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/tool"
)

// staff knows everybody by a credential that is the name.
type staff struct{}

func (staff) Authenticate(credential string) *identity.Principal {
	return map[string]*identity.Principal{
		"bot":   {Name: "bot", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}, Approves: []string{"refunds"}},
		"twin":  {Name: "twin", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}, Approves: []string{"refunds"}},
		"user":  {Name: "user", Approves: []string{"refunds"}},
		"ada":   {Name: "ada", Approves: []string{"refunds"}},
		"other": {Name: "other", Approves: []string{"deploys"}},
		"ops":   {Name: "ops", Operator: true},
	}[credential]
}

// People decide by the API: not the requester, one that stands for its agent or is its user, nor
// those of other rules; to what was shown, and only while it waits.
func TestVotesOverTheAPI(t *testing.T) {
	var later atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	f := facetest.New(t, facetest.Options{
		Config: facetest.Config(t, map[string]string{
			"callgate.yaml":   "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\nauth: {mode: keys}\nprincipals: principals.yaml\n",
			"principals.yaml": "principals: [{name: ops, key_sha256: " + strings.Repeat("ab", 32) + ", operator: true}]\n", // others are staff
			"approvals.yaml":  "rules: {refunds: {hint: look, remember: {same: 1h}}, deploys: {approve: 2}}\n",
			"policy.csv":      "p, Analyst, *, pay, , ask:refunds\np, Analyst, *, ship, , ask:deploys\n",
			"tools.yaml": "tools:\n  - {name: ship, version: 1.0.0, description: Ships., kind: execute, run: {type: demo}, input_schema: {type: object}}\n  - {name: pay, version: 1.0.0, description: Pays., kind: execute, effect: once, run: {type: demo},\n" +
				"     input_schema: {type: object, properties: {amount: {type: number}, pin: {type: string, x-secret: true}}}}\n",
		}),
		Engine: facetest.ToolFunc(func(call tool.Call) (tool.Result, error) { return tool.Result{Body: call.Arguments, JSON: true}, nil }),
		Change: func(c *gateway.Config, p *calls.Deps) {
			kept := store.NewMemory(now)
			c.Identity, c.ApprovalPages = staff{}, "https://ops.example/console/approvals/"
			c.People = func(v approval.Vote) approval.Voter {
				p := staff{}.Authenticate(v.By)
				return approval.Voter{Principal: p.Name, Approves: p.Approves, Agents: p.Agents}
			}
			p.Now, p.Store, p.Approvals = now, kept, kept
		},
	})
	pay := gateway.Request{Credential: "bot", User: "user", Inputs: []gateway.Input{{Completion: []byte(`{"tool":{"name":"pay","arguments":{"amount":7,"pin":"canary"}}}`)}}}
	o := f.Executor.Handle(t.Context(), pay, "")
	if o.ApprovalRequest == nil {
		t.Fatalf("%+v", o)
	}
	api := admin.New(admin.Options{Kernel: f.Executor.Kernel, Loopback: true, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	decisions := admin.Approvals{Desk: f.Executor.Desk(), Kernel: f.Executor.Kernel}
	api.Mount(decisions.Endpoints()...)
	server := serveAPI(t, api)
	send := func(who, method, path, body string) (int, admin.ApprovalView, string) {
		r, err := http.NewRequest(method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+who)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		var v admin.ApprovalView
		_ = json.Unmarshal(text, &v) // a refusal has another shape
		return answer.StatusCode, v, string(text)
	}
	path := "/v1/approvals/" + o.ApprovalRequest.ID
	status, shown, text := send("ada", "GET", path, "")
	if status != 200 || !shown.MayVote || shown.State != "waiting" || shown.Hints[0] != "look" || strings.Contains(text, "canary") || !strings.Contains(string(shown.Arguments), "7") {
		t.Fatalf("shown: %d %s", status, text)
	}
	if shown.URL != "https://ops.example/console/approvals/"+o.ApprovalRequest.ID {
		t.Errorf("its URL is %q", shown.URL)
	}
	yes := `{"vote":"yes","digest":"` + shown.Digest + `","reason":"ok"}`
	for _, c := range []struct {
		who, method, path, body string
		status                  int
	}{
		{"bot", "POST", path, yes, 403}, {"twin", "POST", path, yes, 403}, {"user", "POST", path, yes, 403}, {"ops", "POST", path, yes, 403},
		{"other", "POST", path, yes, 404}, {"other", "GET", path, "", 404}, {"nobody", "GET", path, "", 401},
		{"ada", "POST", path, `{"vote":"yes","digest":"` + strings.Repeat("0", 64) + `"}`, 409},
		{"ada", "POST", path, `{"vote":"maybe","digest":"x"}`, 400}, {"ada", "POST", path, `{"Vote":"yes","digest":"x"}`, 400},
		{"ada", "POST", path, strings.Replace(yes, `"ok"`, `"ok","remember":{"scope":"tool","for":"1h"}`, 1), 400},
		{"ada", "POST", path, strings.Replace(yes, `"ok"`, `"ok","remember":{"scope":"same","for":"2h"}`, 1), 400},
		{"ada", "DELETE", path, "", 403}, {"ada", "GET", "/v1/grants", "", 403}, {"ada", "GET", "/v1/approvals/call_X", "", 404},
	} {
		if status, v, text := send(c.who, c.method, c.path, c.body); status != c.status || len(v.Votes) != 0 {
			t.Errorf("%s %s %s %s: %d %s", c.who, c.method, c.path, c.body, status, text)
		}
	}
	granting := strings.Replace(yes, `"ok"`, `"ok","remember":{"scope":"same","for":"1h"}`, 1)
	for range 2 { // the same vote again changes nothing
		if status, v, text := send("ada", "POST", path, granting); status != 200 || v.State != "approved" || len(v.Votes) != 1 {
			t.Fatalf("the vote: %d %s", status, text)
		}
	}
	for range 2 { // by the grant
		if o := f.Executor.Handle(t.Context(), pay, ""); o.Refusal != nil {
			t.Fatalf("approved: %v", o.Refusal)
		}
	}
	var grants admin.GrantList
	_, _, text = send("ops", "GET", "/v1/grants", "")
	if err := json.Unmarshal([]byte(text), &grants); err != nil || len(grants.Grants) != 1 {
		t.Fatalf("grants: %s", text)
	}
	if status, _, text := send("ops", "DELETE", "/v1/grants/"+grants.Grants[0].ID, ""); status != 200 {
		t.Errorf("revoke the grant: %d %s", status, text)
	}
	if status, v, text := send("ops", "GET", path, ""); status != 200 || v.State != "used" { // by the first call that ran by the grant
		t.Errorf("the approval of the grant: %d %s", status, text)
	}
	o = f.Executor.Handle(t.Context(), pay, "")
	if o.ApprovalRequest == nil || o.ApprovalRequest.ID == shown.ID {
		t.Fatalf("after the grant was revoked: %+v", o)
	}
	if status, v, text := send("ops", "DELETE", "/v1/approvals/"+o.ApprovalRequest.ID, ""); status != 200 || v.State != "withdrawn" {
		t.Errorf("revoke: %d %s", status, text)
	}

	// What has one yes of two is there for a while after people could decide it, and waits for nobody.
	ship := gateway.Request{Credential: "bot", Inputs: []gateway.Input{{Completion: []byte(`{"tool":{"name":"ship","arguments":{}}}`)}}}
	path = "/v1/approvals/" + f.Executor.Handle(t.Context(), ship, "").ApprovalRequest.ID
	_, shown, _ = send("other", "GET", path, "")
	for _, step := range []struct {
		later  time.Duration
		status int // of a yes
		listed bool
	}{{-time.Minute, 200, true}, {time.Minute, 409, false}} {
		later.Store(int64(time.Until(shown.Until) + step.later))
		status, _, text := send("other", "POST", path, `{"vote":"yes","digest":"`+shown.Digest+`","reason":"`+step.later.String()+`"}`)
		_, _, list := send("other", "GET", "/v1/approvals?state=waiting", "")
		if status != step.status || strings.Contains(list, shown.ID) != step.listed {
			t.Errorf("%s from its end: %d %s; waiting are %s", step.later, status, text, list)
		}
	}
}
