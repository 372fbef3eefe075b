package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/identity"
)

// caller is a principal of a test, with its key.
type caller struct {
	name, key, sha   string
	agents, projects []string
	workspace        string
}

func newCaller(name, workspace string, agents, projects []string) caller {
	key, sha := identity.NewAPIKey()
	return caller{name: name, key: key, sha: sha, agents: agents, projects: projects, workspace: workspace}
}

// principalsFile is the file of principals without its last line.
func principalsFile(callers ...caller) string {
	var b strings.Builder
	b.WriteString("principals:\n")
	for _, c := range callers {
		fmt.Fprintf(&b, "  - {name: %s, key_sha256: %q, agents: [%s], workspace: %s, projects: [%s]}\n",
			c.name, c.sha, strings.Join(c.agents, ", "), c.workspace, strings.Join(c.projects, ", "))
	}
	return b.String()
}

// threeCallers are a principal of one agent, one of two, and one of elsewhere.
func threeCallers() (one, two, spy caller) {
	return newCaller("one", "acme", []string{"Analyst"}, []string{"alpha"}),
		newCaller("two", "acme", []string{"Analyst", "Intern"}, []string{"alpha", "beta"}),
		newCaller("spy", "globex", []string{"Spy"}, []string{"gamma"})
}

// keyedConfig is a configuration with keys and one tool, echo, that everybody
// may use.
func keyedConfig(t testing.TB, callers ...caller) (config, data string) {
	t.Helper()
	return layout(t, map[string]string{
		"callgate.yaml":   "server: {" + anyPort + "}\nauth: {mode: keys}\nprincipals: principals.yaml\n",
		"principals.yaml": principalsFile(callers...),
		"policy.csv":      "p, Analyst, *, *, , allow\np, Intern, *, *, , allow\np, Spy, *, *, , allow\n",
		"workspaces.yaml": "workspaces:\n  acme: {projects: {alpha: {agents: [Analyst, Intern]}, beta: {agents: [Analyst, Intern]}, delta: {agents: [Analyst, Intern]}}}\n  globex: {projects: {gamma: {agents: [Spy]}}}\n",
		"tools/echo.yaml": "tools:\n  - {name: echo, effect: read, input_schema: {type: object, properties: {n: {type: integer}}}, run: {type: demo}}\n",
	})
}

// cell is one combination of what a request says of who asks, and for whom.
type cell struct{ credential, agent, claim, kind, workspace, project string }

func cells() []cell {
	var all []cell
	for _, credential := range []string{"none", "basic", "unknown", "near", "one", "two"} {
		for _, agent := range []string{"absent", "own", "other", "unknown", "role"} {
			for _, claim := range []string{"absent", "own", "other", "no string"} {
				for _, kind := range []string{"call", "text", "envelope", "parse"} {
					for _, workspace := range []string{"absent", "own", "other"} {
						for _, project := range []string{"absent", "own", "other"} {
							all = append(all, cell{credential, agent, claim, kind, workspace, project})
						}
					}
				}
			}
		}
	}
	return all
}

// want says by the contract how a call of the cell is answered: a status, and a
// code where it is refused. Whatever decides first stands first.
func (c cell) want() (int, string) {
	several := c.credential == "two"
	switch {
	case c.credential != "one" && !several:
		return 401, "unauthenticated"
	case c.agent == "unknown" || c.agent == "role":
		return 403, "agent_unknown"
	case c.agent == "other":
		return 403, "agent_mismatch"
	case c.kind == "text":
		return 200, ""
	case c.kind == "parse":
		return 422, "malformed_json"
	case several && c.agent == "absent":
		return 403, "agent_required"
	case c.claim == "other":
		return 403, "agent_mismatch"
	case c.kind == "envelope":
		if c.claim == "no string" {
			return 422, "wrong_type" // at /agent, before /tool
		}
		return 422, "missing_field"
	case c.claim == "no string":
		return 422, "wrong_type"
	case several && c.project == "absent":
		return 403, "project_required"
	case c.workspace == "other":
		return 403, "workspace_mismatch"
	case c.project == "other":
		return 403, "project_mismatch"
	}
	return 200, ""
}

// completion is what the model wrote.
func (c cell) completion() string {
	var claim string
	switch c.claim {
	case "own":
		claim = `,"agent":"Analyst"`
	case "other":
		claim = `,"agent":"Intern"`
	case "no string":
		claim = `,"agent":7`
	}
	switch c.kind {
	case "text":
		return "Good day, I am Intern."
	case "envelope":
		return `{"tool":{"name":"echo"}` + claim + `}`
	case "parse":
		return `{"tool":{"name":"echo","arguments":{}}` + claim + `,}`
	}
	return `{"tool":{"name":"echo","arguments":{"n":1}}` + claim + `}`
}

// ask sends the cell, as JSON or as text.
func (c cell) ask(t testing.TB, g *gate, one, two caller, asText bool) reply {
	pick := func(choice string, values map[string]string) string { return values[choice] }
	agent := pick(c.agent, map[string]string{"own": "Analyst", "other": "Spy", "unknown": "Nobody", "role": "role:researcher"})
	workspace := pick(c.workspace, map[string]string{"own": "acme", "other": "globex"})
	project := pick(c.project, map[string]string{"own": "alpha", "other": "delta"})
	near := one.key[:len(one.key)-1] + map[bool]string{true: "A", false: "B"}[one.key[len(one.key)-1] == 'B']
	credential := pick(c.credential, map[string]string{"basic": "Basic " + one.key, "unknown": "Bearer cgk_unknown", "near": "Bearer " + near, "one": "Bearer " + one.key, "two": "bearer " + two.key})
	var headers []string
	if credential != "" {
		headers = append(headers, "Authorization", credential)
	}
	if asText {
		headers = append(headers, "Content-Type", "text/plain")
		for name, value := range map[string]string{"Callgate-Agent": agent, "Callgate-Workspace": workspace, "Callgate-Project": project} {
			if value != "" {
				headers = append(headers, name, value)
			}
		}
		return g.ask(t, http.MethodPost, "/v1/calls", c.completion(), headers...)
	}
	body := map[string]string{"completion": c.completion()}
	for name, value := range map[string]string{"agent": agent, "workspace": workspace, "project": project} {
		if value != "" {
			body[name] = value
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return g.ask(t, http.MethodPost, "/v1/calls", string(text), append(headers, "Content-Type", "application/json")...)
}

// TestIdentityMatrix asks every combination.
func TestIdentityMatrix(t *testing.T) {
	t.Parallel()
	one, two, spy := threeCallers()
	config, data := keyedConfig(t, one, two, spy)
	g := serveGate(t, config)
	all := cells()
	step := 1
	if testing.Short() {
		step = 11
	}
	var wait sync.WaitGroup
	const askers = 8
	for asker := range askers {
		wait.Go(func() {
			for i := asker * step; i < len(all); i += askers * step {
				c := all[i]
				status, code := c.want()
				if r := c.ask(t, g, one, two, i%2 == 0); r.status != status || r.code() != code {
					t.Errorf("%+v: %d %s, want %d %s: %s", c, r.status, r.code(), status, code, r.body)
				}
			}
		})
	}
	wait.Wait()
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	for _, r := range verified(t, data) {
		principal, agent := r["principal"], r["agent"]
		if principal != "one" && principal != "two" || r["verdict"] == "tool_call" && agent != "Analyst" {
			t.Errorf("the log holds a record of %v for %v", principal, agent)
		}
	}
	unseen(t, g, data, one.key, two.key, spy.key, one.key[4:20], two.key[4:20])
}

// unseen holds that nothing of what a gateway wrote contains a secret.
func unseen(t testing.TB, g *gate, data string, secrets ...string) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(data, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"standard output": g.stdout.String(), "the log": g.stderr.String(), "the audit log": string(log)} {
		for _, s := range secrets {
			if strings.Contains(text, s) {
				t.Errorf("%s contains %q", where, s)
			}
		}
	}
}

// TestCallsOfOthers: what became of a call is told to its principal alone, and
// nobody else can tell it from one that never was.
func TestCallsOfOthers(t *testing.T) {
	t.Parallel()
	one, two, spy := threeCallers()
	config, _ := keyedConfig(t, one, two, spy)
	g := serveGate(t, config)
	mine := g.call(t, `{"tool":{"name":"echo","arguments":{"n":7}}}`, "Authorization", "Bearer "+one.key)
	id := mine.header.Get("Callgate-Call-Id")
	get := func(id string, headers ...string) reply {
		return g.ask(t, http.MethodGet, "/v1/calls/"+id, "", headers...)
	}
	if r := get(id, "Authorization", "Bearer "+one.key); r.status != 200 || !strings.Contains(r.body, `"state":"done"`) || !strings.Contains(r.body, `{"echo":{"n":7}}`) {
		t.Errorf("its own call: %d %s", r.status, r.body)
	}
	absent := get("call_AAAAAAAAAAAAAAAAAAAAAAAAAA", "Authorization", "Bearer "+two.key)
	for _, c := range []caller{two, spy} {
		r := get(id, "Authorization", "Bearer "+c.key)
		if r.status != 404 || r.body != absent.body || r.header.Get("Callgate-Call-Id") != absent.header.Get("Callgate-Call-Id") || len(r.header) != len(absent.header) {
			t.Errorf("the call of another, to %s: %d %v %s; an absent one: %v %s", c.name, r.status, r.header, r.body, absent.header, absent.body)
		}
	}
	for _, headers := range [][]string{nil, {"Authorization", "Bearer x"}} {
		if r := get(id, headers...); r.status != 401 || r.code() != "unauthenticated" || r.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("without a key: %d %s", r.status, r.body)
		}
	}
	list := func(key string, headers ...string) reply {
		return g.ask(t, http.MethodGet, "/v1/tools", "", append([]string{"Authorization", "Bearer " + key}, headers...)...)
	}
	for _, c := range []struct {
		reply
		status int
		code   string
	}{
		{list(one.key), 200, ""}, {list(two.key), 403, "agent_required"}, {list(two.key, "Callgate-Agent", "Intern"), 403, "project_required"},
		{list(two.key, "Callgate-Agent", "Intern", "Callgate-Project", "alpha"), 200, ""},
		{list(one.key, "Callgate-Agent", "Intern"), 403, "agent_mismatch"}, {list(one.key, "Callgate-Agent", "Nobody"), 403, "agent_unknown"}, {list("x"), 401, "unauthenticated"},
	} {
		if c.reply.status != c.status || c.reply.code() != c.code {
			t.Errorf("tools: %d %s, want %d %s", c.reply.status, c.reply.body, c.status, c.code)
		}
	}
}

// TestPrincipalsReload: a key that is taken out of the file is refused, and one
// that is put in is let in, while the gateway serves.
func TestPrincipalsReload(t *testing.T) {
	t.Parallel()
	one, two, spy := threeCallers()
	config, _ := keyedConfig(t, one, spy)
	g := serveGate(t, config)
	status := func(c caller) int {
		return g.ask(t, http.MethodPost, "/v1/check", "hi", "Content-Type", "text/plain", "Authorization", "Bearer "+c.key).status
	}
	if status(one) != 200 || status(two) != 401 {
		t.Fatalf("at first: %d and %d", status(one), status(two))
	}
	file := filepath.Join(filepath.Dir(config), "principals.yaml")
	if err := os.WriteFile(file+".new", []byte(principalsFile(two, spy)+"# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new key is let in", func() bool { return status(two) == 200 })
	if status(one) != 401 {
		t.Error("the removed key is let in beside the new one")
	}
	t.Logf("live after %v", time.Since(before))
	if err := os.WriteFile(file, []byte("principals: []\n"), 0o600); err != nil { // cut off
		t.Fatal(err)
	}
	eventually(t, "the bad file is reported", func() bool { return strings.Contains(g.askAdmin(t, "/readyz").body, "principals.yaml") })
	if status(two) != 200 || status(one) != 401 {
		t.Error("a file that is cut off has changed who is let in")
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
}
