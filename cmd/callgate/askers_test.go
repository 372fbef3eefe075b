package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/identity"
)

// askers are gateways whose calls people are asked about: those of the tools once, read and
// idempotent, of the principals app-0 to app-7. Of people there are ada and bob, who approve.
type askers struct {
	tool   *recordingTool
	keys   map[string]string // of principals and people, by their names
	config string
	dirs   []string
	gates  []atomic.Pointer[gate]
	again  atomic.Int64 // how often a request was sent once more
}

const apps = 8

func appOf(n int) string { return fmt.Sprint("app-", n%apps) }

// askersConfig is their configuration, with lines of the main file and the rule of approvals.
func askersConfig(t testing.TB, gates int, main, rule string) *askers {
	t.Helper()
	a := &askers{tool: newRecordingTool(), keys: map[string]string{}, gates: make([]atomic.Pointer[gate], gates)}
	server := httptest.NewServer(a.tool)
	t.Cleanup(server.Close)
	a.config, _ = effectsConfig(t, server.URL, "")
	a.people(t, "pays", nil)
	for name, text := range map[string]string{
		"callgate.yaml":  "server: {" + anyPort + "}\nauth: {mode: keys}\nprincipals: principals.yaml\napprovals: approvals.yaml\n" + main,
		"approvals.yaml": "rules: {pays: {" + rule + "}}\n",
		"policy.csv":     "p, Analyst, acme/alpha, *, , ask:pays\n",
		"limits.yaml":    fmt.Sprintf("replicas: %d\n", gates),
	} {
		a.edit(t, name, text)
	}
	return a
}

// people gives everybody a key: ada and bob approve by some rules, and others may what is said.
func (a *askers) people(t testing.TB, approves string, others map[string]string) {
	t.Helper()
	principals := "principals:\n"
	add := func(name, may string) {
		key, sha := identity.NewAPIKey()
		a.keys[name] = key
		principals += "  - {name: " + name + ", key_sha256: " + sha + ", " + may + "}\n"
	}
	for n := range apps {
		add(appOf(n), "agents: [Analyst], workspace: acme, projects: [alpha]")
	}
	add("ada", "approves: ["+approves+"]")
	add("bob", "approves: ["+approves+"]")
	for name, may := range others {
		add(name, may)
	}
	a.edit(t, "principals.yaml", principals)
}

// edit writes a file of the configuration, whose last line it adds.
func (a *askers) edit(t testing.TB, name, text string) {
	t.Helper()
	file := filepath.Join(filepath.Dir(a.config), name)
	if err := os.WriteFile(file+".new", []byte(text+"# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// serve starts a gateway, for the first time or anew.
func (a *askers) serve(t testing.TB, at int, environment ...string) *gate {
	t.Helper()
	for len(a.dirs) <= at {
		a.dirs = append(a.dirs, quickDir(t))
	}
	g := serveGateIn(t, a.dirs[at], a.config, environment...)
	a.gates[at].Store(g)
	return g
}

// ready waits until every gateway can keep calls.
func (a *askers) ready(t testing.TB) {
	t.Helper()
	for at := range a.gates {
		eventually(t, "calls are kept", func() bool { return a.gates[at].Load().operators(t).Calls == "" })
	}
}

// try asks one gateway once. A path of approvals or grants is asked of its admin listener.
func (a *askers) try(at int, who, method, path, body string, headers ...string) (reply, error) {
	g := a.gates[at%len(a.gates)].Load()
	address := g.listen
	if strings.HasPrefix(path, "/v1/approvals") || strings.HasPrefix(path, "/v1/grants") || strings.HasPrefix(path, "/v1/stops") {
		address = g.admin
	}
	return g.try(method, "http://"+address+path, body, append([]string{"Authorization", "Bearer " + a.keys[who], "Content-Type", "application/json"}, headers...)...)
}

// ask asks one gateway after the other until one is there and can say something.
func (a *askers) ask(t testing.TB, at int, who, method, path, body string) reply {
	t.Helper()
	for deadline := time.Now().Add(recoveryTimeout); ; at++ {
		r, err := a.try(at, who, method, path, body)
		if err == nil && !strings.HasSuffix(r.code(), "_unavailable") {
			return r
		}
		if time.Now().After(deadline) {
			t.Errorf("%s %s is never answered: %d %s, %v", method, path, r.status, r.body, err)
			return r
		}
		a.again.Add(1)
		time.Sleep(time.Duration(10+rand.IntN(40)) * time.Millisecond)
	}
}

func askedCall(tool string, n int) string {
	return fmt.Sprintf(`{"completion":%q,"agent":"Analyst"}`, numbered(tool, n))
}

// opened sends a call that people are asked about, and returns its id.
func (a *askers) opened(t testing.TB, at int, tool string, n int) string {
	t.Helper()
	r := a.ask(t, at, appOf(n), http.MethodPost, "/v1/calls", askedCall(tool, n))
	var said struct {
		CallID string `json:"call_id"`
		State  string
	}
	if err := json.Unmarshal([]byte(r.body), &said); err != nil || r.status != http.StatusAccepted || said.State != "approval" {
		t.Errorf("call %d: %d %s", n, r.status, r.body)
	}
	return said.CallID
}

// shown is an approval as people see it.
type shown struct{ ID, State, Digest, Ran string }

func (a *askers) show(t testing.TB, at int, id string) shown {
	t.Helper()
	var s shown
	r := a.ask(t, at, "ada", http.MethodGet, "/v1/approvals/"+id, "")
	if err := json.Unmarshal([]byte(r.body), &s); err != nil || r.status != http.StatusOK {
		t.Errorf("%s: %d %s", id, r.status, r.body)
	}
	return s
}

// vote says yes or no to an approval as it is shown.
func (a *askers) vote(t testing.TB, at int, who, id, vote string) reply {
	t.Helper()
	return a.ask(t, at, who, http.MethodPost, "/v1/approvals/"+id, fmt.Sprintf(`{"vote":%q,"digest":%q}`, vote, a.show(t, at, id).Digest))
}

// askedLedger is what the logs of all gateways say.
type askedLedger struct {
	requested int                        // how often people were asked
	passed    map[string]bool            // the calls that passed
	outcomes  map[string][]audit.Outcome // by the call
}

// ledger reads the logs of all gateways, and holds each call to have one outcome, and people to
// have been obeyed.
func (a *askers) ledger(t testing.TB) askedLedger {
	t.Helper()
	l := askedLedger{passed: map[string]bool{}, outcomes: map[string][]audit.Outcome{}}
	args := []string{"audit", "verify", "--approvals"}
	for _, dir := range a.dirs {
		files, err := filepath.Glob(filepath.Join(dir, "callgate-data", "audit*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no log in %s: %v", dir, err)
		}
		args = append(args, files...)
		if _, err := audit.Read(func(r audit.Record) error {
			switch {
			case r.Event == audit.Ending:
				l.outcomes[r.CallID] = append(l.outcomes[r.CallID], r.Outcome)
			case r.Event == audit.Approval && r.Code == audit.Requested:
				l.requested++
			case r.Verdict == audit.ToolCall:
				l.passed[r.CallID] = true
			}
			return nil
		}, files...); err != nil {
			t.Errorf("the log does not verify: %v", err)
		}
	}
	if code, stdout, stderr := command(t, nil, args...); code != exitAccepted {
		t.Errorf("people were not obeyed, by the logs: %.2000s%s", stdout, stderr)
	}
	for id := range l.passed {
		if len(l.outcomes[id]) != 1 {
			t.Errorf("the call %s has the outcomes %v", id, l.outcomes[id])
		}
	}
	return l
}
