package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stopSaid is the answer to a stop or a resumption.
type stopSaid struct {
	Stop               struct{ ID string }
	Scope              string
	Confirmed, Missing []struct{ Node, Replica string }
	InFlight           []struct {
		CallID string `json:"call_id"`
		Tool   string
	} `json:"in_flight"`
	Problems []string
}

// acts stops or resumes at one gateway, as an operator.
func (a *askers) acts(t testing.TB, at int, method, path, body string) (said stopSaid) {
	t.Helper()
	r, err := a.try(at, "op", method, path, body)
	if err != nil || r.status != http.StatusOK || json.Unmarshal([]byte(r.body), &said) != nil {
		t.Fatalf("%s %s: %d %s, %v", method, path, r.status, r.body, err)
	}
	return said
}

// TestStops stops an agent at one of two gateways while one of its calls waits for people, one runs at the
// other gateway, and a model would be asked. All but the call that runs, which is listed, are stopped, at
// both gateways, over a restart of both, and until an operator resumes it.
func TestStops(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	redis.start(t)
	w := newReplicas(t, at(redis.address()))
	asked := w.opened(t, first, "once", 1)
	runs := w.begin(t, second, appOf(2), http.MethodPost, "/v1/calls", askedCall("steady", 2))
	eventually(t, "a call runs", func() bool { return len(w.stuck.hitCounts()) == 1 })

	if r, err := w.try(first, appOf(0), http.MethodPost, "/v1/stops", `{"everything":true,"reason":"mine"}`); err != nil || r.status != http.StatusForbidden {
		t.Errorf("a principal stops: %d %s, %v", r.status, r.body, err)
	}
	const stop = `{"agent":"Analyst","reason":"canary-4711"}`
	var said stopSaid
	eventually(t, "both have confirmed", func() bool { // on a busy machine one may be late
		said = w.acts(t, first, http.MethodPost, "/v1/stops", stop)
		if len(said.Confirmed) == 2 && len(said.Missing) == 0 && len(said.Problems) == 0 {
			return true
		}
		w.acts(t, first, http.MethodDelete, "/v1/stops/"+said.Stop.ID, "")
		return false
	})
	running := w.stuck.hitCounts()
	if len(said.InFlight) != 1 || running[said.InFlight[0].CallID] != 1 || said.InFlight[0].Tool != "steady" {
		t.Fatalf("stopped: %+v, %v runs", said, running)
	}
	stopped := func(when string) {
		t.Helper()
		for at := range w.gates {
			for what, r := range map[string]reply{
				"a call": w.send(t, at, appOf(3), http.MethodPost, "/v1/calls", askedCall("read", 3)),
				"a model": w.send(t, at, appOf(3), http.MethodPost, "/v1/chat/completions",
					`{"model":"text","messages":[{"role":"user","content":"hello"}]}`, "Callgate-Mode", "orchestrate"),
				"a question": w.send(t, at, appOf(4), http.MethodPost, "/v1/calls", askedCall("once", 4)),
			} {
				if r.status != http.StatusForbidden || r.code() != "stopped" || strings.Contains(r.body, "canary") {
					t.Errorf("%s: %s at gateway %d: %d %s", when, what, at, r.status, r.body)
				}
			}
		}
	}
	stopped("stopped")
	if r := w.vote(t, second, "ada", asked, "yes"); r.status != http.StatusOK {
		t.Errorf("a vote: %d %s", r.status, r.body)
	}
	for at := range w.gates {
		if r := w.send(t, at, appOf(1), http.MethodPost, "/v1/calls/"+asked+"/resume", ""); r.code() != "stopped" {
			t.Errorf("approved: %d %s", r.status, r.body)
		}
	}
	w.stuck.let()
	if r := runs.end(t); !isResult(r) {
		t.Errorf("the call that ran: %d %s", r.status, r.body)
	}

	for at := range w.gates {
		if code := w.gates[at].Load().stop(t); code != exitAccepted {
			t.Errorf("gateway %d: exit code %d", at, code)
		}
	}
	for at := range w.gates {
		w.serve(t, at, w.hook.environment())
	}
	w.ready(t)
	stopped("after a restart")

	last := said.Stop.ID
	eventually(t, "both have confirmed that it is resumed", func() bool {
		if said := w.acts(t, second, http.MethodDelete, "/v1/stops/"+last, ""); len(said.Missing) == 0 {
			return true
		}
		last = w.acts(t, second, http.MethodPost, "/v1/stops", stop).Stop.ID
		return false
	})
	if r := w.resumed(t, 1, asked); !isResult(r) || w.tool.of(1) != 1 {
		t.Errorf("approved, and resumed: %d %s, ran %d times", r.status, r.body, w.tool.of(1))
	}
	w.ended(t, 2)
	code, stdout, stderr := command(t, nil, "audit", "query", "--call", said.Stop.ID, "--json", "--log", filepath.Join(w.dirs[first], "callgate-data"))
	if code != exitAccepted || strings.Count(stdout, `"event":"stop"`) != 1 || !strings.Contains(stdout, "canary-4711") {
		t.Errorf("the log: %s%s", stdout, stderr)
	}
}

// TestStopsOfOneGateway: without Redis a stop is of this gateway alone, and outlives it however it ends; a list that
// cannot be read keeps it from starting.
func TestStopsOfOneGateway(t *testing.T) {
	t.Parallel()
	w := askersConfig(t, 1, "", "")
	w.people(t, "pays", map[string]string{"op": "operator: true"})
	w.edit(t, "policy.csv", "p, Analyst, acme/alpha, *, , allow\n")
	g := w.serve(t, 0)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(w.keys["op"]), 0o600); err != nil {
		t.Fatal(err)
	}
	operator := func(args ...string) (int, string, string) {
		t.Helper()
		return command(t, nil, append(args, "--url", "http://"+w.gates[0].Load().admin, "--key-file", key)...)
	}
	code, stdout, stderr := operator("stop", "--tool", "once", "--for", "1h", "--reason", "a test")
	if code != exitAccepted || !strings.Contains(stdout, "tool once") || !strings.Contains(stdout, "this gateway alone") {
		t.Fatalf("stop: %d %s%s", code, stdout, stderr)
	}
	id, _, _ := strings.Cut(stdout, ":")
	if r := g.call(t, numbered("once", 1), "Authorization", "Bearer "+w.keys[appOf(1)]); r.code() != "stopped" {
		t.Errorf("stopped: %d %s", r.status, r.body)
	}
	if r := g.call(t, numbered("read", 1), "Authorization", "Bearer "+w.keys[appOf(1)]); !isResult(r) {
		t.Errorf("another tool: %d %s", r.status, r.body)
	}
	if !g.counts(t, "callgate_stops", "1") || !g.counts(t, "callgate_stops_local", "0") {
		t.Error("the metrics do not say so")
	}
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-g.ended
	g = w.serve(t, 0)
	if code, stdout, _ := operator("stops"); code != exitAccepted || !strings.Contains(stdout, id) || !strings.Contains(stdout, "a test") {
		t.Errorf("stops: %d %s", code, stdout)
	}
	if r := g.call(t, numbered("once", 1), "Authorization", "Bearer "+w.keys[appOf(1)]); r.code() != "stopped" {
		t.Errorf("after a restart: %d %s", r.status, r.body)
	}
	if code, stdout, _ := operator("resume", id); code != exitAccepted || !strings.Contains(stdout, "resumed") {
		t.Errorf("resume: %d %s", code, stdout)
	}
	if code, _, stderr := operator("resume", id); code != exitRefused || !strings.Contains(stderr, "not_found") {
		t.Errorf("resumed twice: %d %s", code, stderr)
	}
	if r := g.call(t, numbered("once", 1), "Authorization", "Bearer "+w.keys[appOf(1)]); !isResult(r) {
		t.Errorf("resumed: %d %s", r.status, r.body)
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	file := filepath.Join(w.dirs[0], "callgate-data", "stops.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = command(t, nil, "serve", "--config", filepath.Join(w.dirs[0], "callgate.yaml"))
	if code != exitUsage || !strings.Contains(stderr, file) {
		t.Errorf("a list that cannot be read: %d %s", code, stderr)
	}
}

// TestStopsOverLimits: gateways that share limits alone share what is stopped by the same Redis. While that is away a
// stop holds where it was made, and elsewhere once it is back.
func TestStopsOverLimits(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	redis.start(t)
	config := sharing(t, "replicas: 2\n")
	more := "tools:\n  - {name: other, effect: read, input_schema: {type: object}, run: {type: demo}}\n# end\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "tools", "other.yaml"), []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	var gates []*gate
	for range 2 {
		gates = append(gates, serveGateIn(t, quickDir(t), config, "REDIS_URL=redis://"+redis.address()))
	}
	stop := func(at int, body string) (said stopSaid) {
		t.Helper()
		r, err := gates[at].try(http.MethodPost, "http://"+gates[at].admin+"/v1/stops", body, "Content-Type", "application/json")
		if err != nil || r.status != http.StatusOK || json.Unmarshal([]byte(r.body), &said) != nil {
			t.Fatalf("%d %s, %v", r.status, r.body, err)
		}
		return said
	}
	both := func() bool {
		var list struct{ Problem string }
		for _, g := range gates {
			if r := g.askAdmin(t, "/v1/stops"); json.Unmarshal([]byte(r.body), &list) != nil || list.Problem != "" || !g.counts(t, "callgate_stops_local", "0") {
				return false
			}
		}
		return true
	}
	eventually(t, "both know what is stopped", both)
	var said stopSaid
	eventually(t, "both have confirmed", func() bool { // a busy machine may have missed Redis
		said = stop(0, `{"tool":"echo","reason":"r"}`)
		return len(said.Confirmed) == 2 && len(said.Missing) == 0
	})
	for at, g := range gates {
		if r := g.call(t, echoCall); r.status != http.StatusForbidden || r.code() != "stopped" {
			t.Errorf("gateway %d: %d %s", at, r.status, r.body)
		}
	}
	redis.kill(t)
	said = stop(1, `{"agent":"Analyst","reason":"away"}`)
	if len(said.Problems) == 0 || len(said.Confirmed) != 0 {
		t.Errorf("while Redis is away: %+v", said)
	}
	const other = `{"tool":{"name":"other","arguments":{}}}`
	if r := gates[1].call(t, other); r.code() != "stopped" {
		t.Errorf("while Redis is away: %d %s", r.status, r.body)
	}
	eventually(t, "operators are told", func() bool { return gates[0].counts(t, "callgate_stops_local", "1") })
	redis.start(t)
	eventually(t, "the other gateway is told", func() bool { return gates[0].call(t, other).code() == "stopped" })
	for at, g := range gates {
		if r := g.call(t, echoCall); r.code() != "stopped" { // which Redis has forgotten
			t.Errorf("gateway %d: %d %s", at, r.status, r.body)
		}
	}
}
