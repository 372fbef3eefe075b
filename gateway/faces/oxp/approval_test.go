package oxp_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/oxp"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// byName takes everybody, whose name is the credential.
type byName struct{}

func (byName) Authenticate(name string) *identity.Principal {
	return &identity.Principal{Name: name, Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}}
}

const pages = "https://ops.example/console/approvals/"

// office is a face whose calls people approve, with a clock that the test moves.
type office struct {
	*fixture
	later *atomic.Int64
}

func openOffice(t *testing.T, page string) office {
	t.Helper()
	o := office{&fixture{t: t, tool: &fakeTool{run: value(`{"n":1}`)}, schema: corpora.OpenAPI(t, "oxp", "openapi-header-version.json")}, &atomic.Int64{}}
	now := func() time.Time { return time.Now().Add(time.Duration(o.later.Load())) }
	o.Fixture = facetest.New(t, facetest.Options{
		Config: facetest.Config(t, map[string]string{
			"callgate.yaml":  "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\n",
			"approvals.yaml": "rules: {refunds: {within: 30m, by: caller}}\n",
			"tools.yaml":     tools,
			"policy.csv":     "p, Analyst, *, *, , ask:refunds\n",
		}),
		Engine: o.tool,
		Change: func(c *gateway.Config, p *calls.Deps) {
			kept := store.NewMemory(now)
			c.Identity, c.ApprovalPages, p.Now, p.Store, p.Approvals = byName{}, page, now, kept, kept
		},
	})
	oxp.New(oxp.Options{Executor: o.Executor, Log: o.Logger, URL: func() string { return "https://gate.example" }}).Mount(o.Server)
	return o
}

// pay sends a call of the caller app.
func (o office) pay(callID, query string) reply {
	return o.call(`{"tool_id":"web.search","call_id":"`+callID+`","input":{"query":"`+query+`"}}`, "Authorization", "Bearer app")
}

// status is that of an approval, as a caller reads it.
func (o office) status(caller, id string) string {
	r := o.ask(http.MethodGet, "/tools/authorizations/"+id, "", "Authorization", "Bearer "+caller)
	if r.status != 200 {
		return r.code()
	}
	return strings.TrimSuffix(strings.TrimPrefix(r.raw, `{"status":"`), "\"}\n")
}

// TestOXP18And19Approvals: a call that people approve is refused with their page and its status,
// and runs once it was approved, under a new id.
func TestOXP18And19Approvals(t *testing.T) {
	challenges := corpora.OpenAPI(t, "oxp", "openapi-auth-challenge.json")
	for name, c := range map[string]struct {
		end    func(o office, id string) error
		status string
		code   string // of the call that is sent again
	}{
		"yes": {func(o office, id string) error { return o.vote(id, true) }, "completed", ""},
		"no":  {func(o office, id string) error { return o.vote(id, false) }, "failed", "approval_denied"},
		"silence": {func(o office, _ string) error {
			o.later.Store(int64(31 * time.Minute))
			return nil
		}, "failed", "approval_required"}, // asked anew
		"called off": {func(o office, id string) error {
			_, err := o.Executor.Desk().End(t.Context(), id, approval.EndWithdrawn, "app", "")
			return err
		}, "failed", "approval_required"},
	} {
		o := openOffice(t, pages)
		first := o.pay("c-1", "x")
		id := first.header.Get("Callgate-Call-Id")
		want := `{"id":"approval","url":"` + pages + id + `","check_url":"https://gate.example/tools/authorizations/` + id + `/0"}`
		if first.status != 400 || first.code() != "approval_required" || len(first.Missing.Authorization) != 1 || string(first.Missing.Authorization[0]) != want || strings.Contains(first.Message, pages) {
			t.Fatalf("%d %s", first.status, first.raw)
		}
		if err := challenges.Check("ToolAuthorizationChallenge", first.Missing.Authorization[0]); err != nil {
			t.Error(err)
		}
		if again := o.pay("c-1", "x"); again.raw != first.raw || again.header.Get("Callgate-Call-Id") != id {
			t.Errorf("again: %s", again.raw)
		}
		if got := o.status("app", id+"/0"); got != "pending" {
			t.Errorf("%s: %s", name, got)
		}
		if err := c.end(o, id); err != nil {
			t.Fatal(err)
		}
		if got := o.status("app", id+"/0"); got != c.status {
			t.Errorf("%s: %s", name, got)
		}
		for path, caller := range map[string]string{id + "/0": "eve", id + "/1": "app", id + "/-1": "app", "call_other/0": "app"} {
			if got := o.status(caller, path); got != "not_found" {
				t.Errorf("%s of %s: %s", path, caller, got)
			}
		}
		runs := map[bool]int{true: 1}[c.code == ""]
		if r := o.pay("c-2", "x"); r.code() != c.code || len(o.tool.ran()) != runs {
			t.Errorf("%s: sent again, %d runs: %s", name, len(o.tool.ran()), r.raw)
		}
		if runs == 0 {
			continue
		}
		if got := o.status("app", id+"/0"); got != "completed" {
			t.Errorf("%s: and it ran: %s", name, got)
		}
		if r := o.pay("c-2", "x"); r.status != 200 || len(o.tool.ran()) != 1 {
			t.Errorf("repeated: %s", r.raw)
		}
		if r := o.pay("c-3", "x"); r.code() != "approval_required" || r.header.Get("Callgate-Call-Id") == id {
			t.Errorf("it was used: %s", r.raw)
		}
	}
	// Where the page is not known there is no challenge, which needs one.
	o := openOffice(t, "")
	r := o.pay("c", "x")
	if r.status != 400 || r.code() != "approval_required" || strings.Contains(r.raw, "missing_requirements") {
		t.Errorf("%d %s", r.status, r.raw)
	}
	if got := o.status("app", r.header.Get("Callgate-Call-Id")+"/0"); got != "pending" {
		t.Errorf("%s", got)
	}
}

// vote has somebody decide.
func (o office) vote(id string, yes bool) error {
	a, err := o.Executor.Desk().Get(o.t.Context(), id)
	if err != nil {
		return err
	}
	_, err = o.Executor.Desk().Vote(o.t.Context(), approval.Voter{Principal: "ada", Approves: a.Rules}, id, approvals.Ballot{Yes: yes, Digest: a.Digest})
	return err
}
