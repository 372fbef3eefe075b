// Package approvals_test brings calls that ask people to every face of the gateway, by the real
// kernel, with a scripted model and a clock that tests move.
package approvals_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/mcp"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/gateway/faces/oxp"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

func TestMain(m *testing.M) { facetest.Main(m) }

// call is what a model calls, and by whom.
type call struct {
	Arguments string
	Tool      string // empty: pay
	Agent     string // empty: Analyst
	Project   string // empty: alpha
	Thread    string
	User      string
	Caller    string // the credential, which is the principal's name; empty: app
}

// office is a gateway of all faces.
type office struct {
	*facetest.Fixture
	model *httptest.Server
	later atomic.Int64 // by how much its clock is ahead
	mu    sync.Mutex
	next  *call             // that the model makes; nil: it answers
	read  string            // the last request that the model got
	sent  int               // calls of OXP, which number them
	ran   []string          // the arguments that the tool got
	lacks map[string]string // people, and the rule that they no longer approve by, or everything

	beforeDispatch func() // happens once; nil: nothing

	t     *testing.T
	turns turns.Options
	desks desks

	requests context.Context // of requests; nil: one that does not end
	prefer   string          // the header Prefer
}

const (
	// pages are where people decide, and gate is the gateway's own URL.
	pages = "https://ops.example/console/approvals/"
	gate  = "https://gate.example"
)

// everything is what those lack who are gone.
const everything = "*"

// everybody's name is the credential.
type byName struct{ *office }

func (o byName) Authenticate(name string) *identity.Principal {
	if o.lacks[name] == everything {
		return nil
	}
	return &identity.Principal{Name: name, Agents: []string{"Analyst", "Clerk"}, Workspace: "acme", Projects: []string{"alpha", "beta"}}
}

const rulesFile = `rules:
  one: {within: 30m, remember: {same: 1h, thread: 1h, tool: 1h}}
  other: {}
  two: {approve: 2}
  mine: {by: caller, remember: {same: 1h}}
wait: 0s
`

const toolsFile = `tools:
  - {name: pay, version: 1.0.0, description: Pays., kind: execute, effect: once, run: {type: demo}, input_schema: {type: object, properties: {amount: {type: number}, note: {type: string}}}}
  - {name: refund, version: 1.0.0, description: Refunds., kind: execute, effect: once, run: {type: demo}, input_schema: {type: object, properties: {amount: {type: number}, note: {type: string}}}}
`

// config is a configuration, with other files than the usual ones.
func config(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	all := map[string]string{
		"callgate.yaml":   "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\nauth: {mode: keys}\nprincipals: principals.yaml\n",
		"principals.yaml": "principals: [{name: op, key_sha256: " + strings.Repeat("ab", 32) + ", operator: true}]\n", // others are byName
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst, Clerk], roots: [/w]}, beta: {agents: [Analyst], roots: [/w]}}}}\n",
		"approvals.yaml":  rulesFile, "tools.yaml": toolsFile,
	}
	for name, text := range files {
		all[name] = text
	}
	return all
}

// newOffice opens a gateway with a policy.
func newOffice(t *testing.T, files map[string]string) *office {
	t.Helper()
	return openOffice(t, facetest.Config(t, config(t, files)))
}

// openOffice opens a gateway with a configuration, which it does not change.
func openOffice(t *testing.T, loaded *configs.Config) *office {
	t.Helper()
	o := &office{t: t, lacks: map[string]string{}, desks: desks{map[call]*acptest.Editor{}, map[call]string{}}}
	now := func() time.Time { return time.Now().Add(time.Duration(o.later.Load())) }
	o.Fixture = facetest.New(t, facetest.Options{
		Config: loaded,
		Engine: facetest.ToolFunc(func(c tool.Call) (tool.Result, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.ran = append(o.ran, string(c.Arguments))
			return tool.Result{Body: []byte(`{}`), JSON: true}, nil
		}),
		Change: func(c *gateway.Config, p *calls.Deps) {
			kept := store.NewMemory(now)
			c.Identity, c.People, c.ApprovalPages = byName{o}, o.people, pages
			p.Now, p.Store, p.Approvals = now, between{kept, o}, kept
		},
	})
	o.model = httptest.NewServer(http.HandlerFunc(o.say))
	t.Cleanup(o.model.Close)
	client := upstream.NewClient(upstream.Options{})
	t.Cleanup(client.Close)
	var models []upstream.Definition
	for _, wire := range []upstream.Wire{upstream.ChatWire, upstream.MessagesWire, upstream.ResponsesWire} {
		d := upstream.Defaults()
		d.Name, d.BaseURL, d.Retries = string(wire), o.model.URL, 0
		d.Models, d.Rules.Speaks = []upstream.Model{{ID: string(wire)}}, []upstream.Wire{wire}
		d.Rules.Modes = []upstream.Mode{upstream.Enforce, upstream.Orchestrate}
		models = append(models, d)
	}
	set, err := upstream.New(models)
	if err != nil {
		t.Fatal(err)
	}
	forModels := turns.Options{Executor: o.Executor, Upstreams: func() *upstream.Set { return set }, Client: client, Runs: runs.New(runs.Options{})}
	native.New(native.Options{Executor: o.Executor, Log: o.Logger}).Mount(o.Server)
	o.turns = forModels
	for _, face := range app.ModelFaces(forModels) {
		face.Mount(o.Server)
	}
	mcp.New(mcp.Options{Executor: o.Executor, Version: "1"}).Mount(o.Server)
	oxp.New(oxp.Options{Executor: o.Executor, Log: o.Logger, URL: func() string { return gate }}).Mount(o.Server)
	return o
}

// people are who may vote: ada, bob and the caller by every rule, zoe by one other, and twin, who
// stands for the agent.
func (o *office) people(v approval.Vote) approval.Voter {
	voter := approval.Voter{Principal: v.By, Approves: []string{"one", "other", "two", "mine"}}
	switch v.By {
	case "zoe":
		voter.Approves = []string{"other"}
	case "eve":
		voter.Approves = nil
	case "twin":
		voter.Agents = []string{"Analyst"}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lacks[v.By] == everything {
		return approval.Voter{}
	}
	voter.Approves = slices.DeleteFunc(voter.Approves, func(rule string) bool { return rule == o.lacks[v.By] })
	return voter
}

func (c call) tool() string {
	if c.Tool == "" {
		return "pay"
	}
	return c.Tool
}

// post sends a request of a call's caller.
func (o *office) post(path, body string, c call, headers ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	o.ServeHTTP(w, o.request(path, body, c, headers...))
	return w
}

// request is a request of a call's caller, as over a connection of this machine.
func (o *office) request(path, body string, c call, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer " + or(c.Caller, "app"), "Callgate-Agent": or(c.Agent, "Analyst"),
		"Callgate-Workspace": "acme", "Callgate-Project": or(c.Project, "alpha"), "Callgate-Thread": c.Thread, "Callgate-User": c.User,
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if o.prefer != "" {
		r.Header.Set("Prefer", o.prefer)
	}
	ctx := r.Context()
	if o.requests != nil {
		ctx = o.requests
	}
	r.Host = "127.0.0.1:8080"
	return r.WithContext(context.WithValue(ctx, http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080})))
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// face brings a call to the gateway. Those that hand it over do not run it.
type face struct {
	name      string
	handsOver bool
	waits     bool // the request waits for people, without asking its client anything
	send      func(o *office, c call) *httptest.ResponseRecorder
	// code is that of an answer, in the shape of the face; empty: the call has passed.
	code func(t *testing.T, o *office, w *httptest.ResponseRecorder) string
}

// faces are the faces that people can be asked on.
func faces() []face {
	all := []face{{"native", false, true, func(o *office, c call) *httptest.ResponseRecorder {
		return o.post("/v1/calls", `{"tool":{"name":"`+c.tool()+`","arguments":`+c.Arguments+`}}`, c, "Content-Type", "text/plain")
	}, codeOf}}
	all = append(all, byModels()...)
	return append(append(all, byMCP()...), byOXP())
}

// reported is what became of one call: the id of its decision, and its code, empty where it passed.
type reported struct{ id, code string }

// bring brings a call by a face, and holds that it ran if and only if its decision says so, with
// the bytes that the model wrote.
func (o *office) bring(t *testing.T, f face, c call) reported {
	t.Helper()
	before, ran := len(o.Journal.Records()), len(o.ran)
	w := f.send(o, c)
	if err := o.Executor.Kernel.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range o.Journal.Records()[before:] {
		if r.Event != audit.Decision || r.Tool != c.tool() {
			continue
		}
		runs := 0
		if r.Code == "" && !f.handsOver {
			runs = 1
		}
		if len(o.ran) != ran+runs || runs == 1 && o.ran[ran] != c.Arguments {
			t.Errorf("%s: decided %q, and ran %q", f.name, r.Code, o.ran[ran:])
		}
		if code := f.code(t, o, w); code != string(r.Code) {
			t.Errorf("decided %q, and answered %q: %d %.2000s", r.Code, code, w.Code, w.Body)
		}
		return reported{r.CallID, string(r.Code)}
	}
	t.Fatalf("%s: no decision: %d %s", f.name, w.Code, w.Body)
	return reported{}
}

// opened are the ids of the approvals that people were asked for.
func (o *office) opened() (ids []string) {
	for _, r := range o.Journal.Records() {
		if r.Event == audit.Approval && r.Code == audit.Requested {
			ids = append(ids, r.CallID)
		}
	}
	return ids
}
