package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"encoding/json"
)

// workshop is a tool server: /hit answers at once, /slow when it is let go,
// /fail with 500, /hang never while somebody waits.
type workshop struct {
	url string
	mu  sync.Mutex
	ids []string
	// free lets one /slow go for each value; closed, all.
	free chan struct{}
}

func newWorkshop(t testing.TB) *workshop {
	w := &workshop{free: make(chan struct{})}
	server := httptest.NewServer(w)
	w.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return w
}

func (w *workshop) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.ids = append(w.ids, r.Header.Get("Callgate-Call-Id"))
	n := len(w.ids)
	w.mu.Unlock()
	io.Copy(io.Discard, r.Body)
	switch r.URL.Path {
	case "/slow":
		select {
		case <-w.free:
		case <-r.Context().Done():
			return
		}
	case "/hang":
		<-r.Context().Done()
		return
	case "/fail":
		http.Error(out, "no", http.StatusInternalServerError)
		return
	}
	out.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(out, `{"hit":%d}`, n)
}

func (w *workshop) hits() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ids)
}

// tools is a file of the workshop's tools.
func (w *workshop) tools() string {
	var b strings.Builder
	b.WriteString("tools:\n")
	for _, name := range []string{"hit", "slow", "fail", "hang"} {
		timeout := "20s"
		if name == "hang" {
			timeout = "300ms"
		}
		fmt.Fprintf(&b, "  - {name: %s, effect: once, input_schema: {type: object, properties: {n: {type: integer}, secret: {type: string, x-secret: true}}}, run: {type: http, url: %q, timeout: %s, addresses: [127.0.0.1/32]}}\n", name, w.url+"/"+name, timeout)
	}
	return b.String()
}

// workConfig is a configuration with the tools of a workshop; server is what
// its file says under server.
func workConfig(t testing.TB, w *workshop, server, limits string) (config, data string) {
	t.Helper()
	return layout(t, map[string]string{
		"callgate.yaml":   "server: {" + anyPort + server + "}\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst, Intern]}, beta: {agents: [Analyst]}}}}\n",
		"policy.csv":      "p, Analyst, *, *, , allow\np, Intern, *, *, , allow\n",
		"limits.yaml":     limits,
		"tools/work.yaml": w.tools(),
	})
}

func use(tool string, n int) string {
	return fmt.Sprintf(`{"tool":{"name":%q,"arguments":{"n":%d}}}`, tool, n)
}

// same holds two answers to be one.
func same(t *testing.T, what string, first, second reply) {
	t.Helper()
	if second.body != first.body || second.status != first.status || second.header.Get("Callgate-Call-Id") != first.header.Get("Callgate-Call-Id") {
		t.Errorf("%s: %d %s %s, but at first %d %s %s", what, second.status, second.header.Get("Callgate-Call-Id"), second.body, first.status, first.header.Get("Callgate-Call-Id"), first.body)
	}
}

// refusedWith holds an answer to be one refusal.
func refusedWith(t *testing.T, what string, r reply, status int, code string) {
	t.Helper()
	if r.status != status || r.code() != code {
		t.Errorf("%s: %d %s, want %d %s", what, r.status, r.body, status, code)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	config, data := workConfig(t, w, "", "{}\n")
	g := serveGate(t, config)
	key := func(k string, more ...string) []string { return append([]string{"Idempotency-Key", k}, more...) }

	first := g.call(t, use("hit", 1), key("a")...)
	if first.status != 200 || w.hits() != 1 {
		t.Fatalf("%d %s, %d hits", first.status, first.body, w.hits())
	}
	same(t, "a repeat", first, g.call(t, use("hit", 1), key("a")...))
	same(t, "a repeat by another body that asks the same", first, g.ask(t, http.MethodPost, "/v1/calls", fmt.Sprintf(`{"completion":%q}`, use("hit", 1)), key("a", "Content-Type", "application/json")...))
	refusedWith(t, "another completion", g.call(t, use("hit", 2), key("a")...), 409, "idempotency_conflict")
	refusedWith(t, "another agent", g.call(t, use("hit", 1), key("a", "Callgate-Agent", "Intern")...), 409, "idempotency_conflict")
	refusedWith(t, "a text", g.call(t, "hi", key("a")...), 409, "idempotency_conflict")
	if w.hits() != 1 {
		t.Errorf("%d hits", w.hits())
	}

	failed := g.call(t, use("fail", 1), key("b")...)
	if failed.status != 200 && failed.status != 502 {
		t.Errorf("%d %s", failed.status, failed.body)
	}
	same(t, "a repeat of a failure", failed, g.call(t, use("fail", 1), key("b")...))
	lost := g.call(t, use("hang", 1), key("c")...)
	refusedWith(t, "an outcome that is not known", lost, 502, "outcome_unknown")
	same(t, "its repeat", lost, g.call(t, use("hang", 1), key("c")...))
	if w.hits() != 3 {
		t.Errorf("%d hits", w.hits())
	}

	// A call that was refused before dispatch does not hold its key.
	refusedWith(t, "a refusal", g.call(t, use("nobody", 1), key("d")...), 422, "unknown_tool")
	refusedWith(t, "a refusal", g.call(t, `{"tool":{"name":"hit","arguments":{"m":1}}}`, key("d")...), 422, "unexpected_argument")
	if r := g.call(t, "only words", key("d")...); r.status != 200 || r.body != "{\"text\":\"only words\"}\n" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := g.call(t, use("hit", 1), key("d")...); r.status != 200 || w.hits() != 4 {
		t.Errorf("%d %s, %d hits", r.status, r.body, w.hits())
	}

	// Where it acts is part of what the key is of.
	elsewhere := g.call(t, use("hit", 1), key("a", "Callgate-Project", "beta")...)
	if elsewhere.status != 200 || elsewhere.body == first.body || w.hits() != 5 {
		t.Errorf("another project: %d %s, %d hits", elsewhere.status, elsewhere.body, w.hits())
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	outcomes := map[any]int{}
	for _, r := range verified(t, data) {
		if r["event"] == "outcome" {
			outcomes[r["call_id"]]++
		}
	}
	if len(outcomes) != 5 {
		t.Errorf("%d outcomes in the log, want 5", len(outcomes))
	}
}

// TestIdempotencyOfPrincipals: one key of two principals is two keys.
func TestIdempotencyOfPrincipals(t *testing.T) {
	t.Parallel()
	one, two, _ := threeCallers()
	config, _ := keyedConfig(t, one, two)
	g := serveGate(t, config)
	ids := map[string]bool{}
	for _, headers := range [][]string{
		{"Authorization", "Bearer " + one.key},
		{"Authorization", "Bearer " + two.key, "Callgate-Agent", "Analyst", "Callgate-Project", "alpha"},
		{"Authorization", "Bearer " + two.key, "Callgate-Agent", "Analyst", "Callgate-Project", "beta"},
	} {
		for range 2 {
			r := g.call(t, `{"tool":{"name":"echo","arguments":{}}}`, append(headers, "Idempotency-Key", "k")...)
			if r.status != 200 {
				t.Errorf("%d %s", r.status, r.body)
			}
			ids[r.header.Get("Callgate-Call-Id")] = true
		}
	}
	if len(ids) != 3 {
		t.Errorf("%d calls, want 3", len(ids))
	}
}

// TestManyOfOneKey: 64 requests with one key at the same time are one call.
func TestManyOfOneKey(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	config, _ := workConfig(t, w, "", "{}\n")
	g := serveGate(t, config)
	for round := range 5 {
		var wait sync.WaitGroup
		replies := make([]reply, 64)
		for i := range replies {
			wait.Go(func() { replies[i] = g.call(t, use("hit", round), "Idempotency-Key", strconv.Itoa(round)) })
		}
		wait.Wait()
		body := ""
		for _, r := range replies {
			switch {
			case r.status == 409 && r.code() == "call_in_progress":
			case r.status != 200 || body != "" && r.body != body:
				t.Errorf("%d %s", r.status, r.body)
			default:
				body = r.body
			}
		}
		if w.hits() != round+1 || body == "" {
			t.Errorf("%d hits after %d rounds", w.hits(), round+1)
		}
	}
}

// TestCallWhileItRuns: its key and its id tell that it runs, then how it ended.
func TestCallWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	config, data := workConfig(t, w, "", "{}\n")
	g := serveGate(t, config)
	get := func(id string) reply { return g.ask(t, http.MethodGet, "/v1/calls/"+id, "") }
	state := func(id string) string {
		var s struct{ State string }
		json.Unmarshal([]byte(get(id).body), &s)
		return s.State
	}
	answer := make(chan reply, 1)
	go func() { answer <- g.call(t, use("slow", 1), "Idempotency-Key", "k") }()
	eventually(t, "the tool is hit", func() bool { return w.hits() == 1 })
	id := w.ids[0]
	refusedWith(t, "a repeat while it runs", g.call(t, use("slow", 1), "Idempotency-Key", "k"), 409, "call_in_progress")
	refusedWith(t, "another call while it runs", g.call(t, use("slow", 2), "Idempotency-Key", "k"), 409, "idempotency_conflict")
	if s := state(id); s != "pending" {
		t.Errorf("while it runs the call is %q", s)
	}
	w.free <- struct{}{}
	first := <-answer
	same(t, "a repeat when it has ended", first, g.call(t, use("slow", 1), "Idempotency-Key", "k"))
	if r := get(id); r.status != 200 || state(id) != "done" || !strings.Contains(r.body, strings.TrimPrefix(strings.TrimSpace(first.body), "{")) {
		t.Errorf("then: %s, but the answer was %s", r.body, first.body)
	}

	// One whose caller leaves ends all the same.
	ctx, leave := context.WithCancel(context.Background())
	request, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+g.listen+"/v1/calls", strings.NewReader(use("slow", 3)))
	request.Header = http.Header{"Content-Type": {"text/plain"}, "Idempotency-Key": {"left"}}
	left := make(chan error, 1)
	go func() {
		_, err := g.client.Do(request)
		left <- err
	}()
	eventually(t, "the tool is hit", func() bool { return w.hits() == 2 })
	leave()
	if err := <-left; err == nil {
		t.Fatal("the caller did not leave")
	}
	time.Sleep(20 * time.Millisecond) // for the gateway to see that nobody is there
	if s := state(w.ids[1]); s != "pending" {
		t.Errorf("the call of a caller who left is %q while it runs", s)
	}
	w.free <- struct{}{}
	eventually(t, "the call ends", func() bool { return state(w.ids[1]) == "done" })
	if r := g.call(t, use("slow", 3), "Idempotency-Key", "left"); r.status != 200 || r.header.Get("Callgate-Call-Id") != w.ids[1] || w.hits() != 2 {
		t.Errorf("the answer for who left: %d %s", r.status, r.body)
	}

	lost := g.call(t, use("hang", 1))
	if s := state(lost.header.Get("Callgate-Call-Id")); s != "unknown" {
		t.Errorf("a call whose outcome is not known is %q", s)
	}
	for _, refused := range []reply{g.call(t, use("nobody", 1)), g.call(t, "text")} {
		refusedWith(t, "what was not dispatched", get(refused.header.Get("Callgate-Call-Id")), 404, "not_found")
	}
	g.stop(t)
	ended := map[any]int{}
	for _, r := range verified(t, data) {
		if r["event"] == "outcome" {
			ended[r["call_id"]]++
		}
	}
	for _, id := range w.ids {
		if ended[id] != 1 {
			t.Errorf("the call %s has %d outcomes", id, ended[id])
		}
	}
}

// TestRetryAfter: who waits as long as was said is let in.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	config, _ := workConfig(t, w, "", "agents: {Analyst: {rate: 60/m, burst: 1}}\n")
	g := serveGate(t, config)
	if r := g.call(t, use("hit", 1)); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	refused, passed := g.call(t, use("hit", 1)), 1
	for ; refused.status == 200 && passed < 20; passed++ { // a second has gone by
		refused = g.call(t, use("hit", 1))
	}
	refusedWith(t, "at once", refused, 429, "rate_limited")
	var decoded struct {
		Result struct {
			Output struct {
				Error struct {
					Retryable bool
					After     int64 `json:"retry_after_ms"`
				}
			}
		} `json:"tool_result"`
	}
	if err := json.Unmarshal([]byte(refused.body), &decoded); err != nil {
		t.Fatal(err)
	}
	ms := decoded.Result.Output.Error.After
	seconds, err := strconv.ParseInt(refused.header.Get("Retry-After"), 10, 64)
	if err != nil || ms <= 0 || ms > 1000 || !decoded.Result.Output.Error.Retryable || seconds != (ms+999)/1000 {
		t.Fatalf("Retry-After: %s, and %s", refused.header.Get("Retry-After"), refused.body)
	}
	time.Sleep(time.Duration(ms) * time.Millisecond)
	if r := g.call(t, use("hit", 1)); r.status != 200 {
		t.Errorf("after %d ms: %d %s", ms, r.status, r.body)
	}
	if w.hits() != passed+1 {
		t.Errorf("%d hits; %d were let in before, and one after", w.hits(), passed)
	}
}

// TestOverload: beyond what is taken on, requests are refused at once; health is
// answered, and the rest when there is room.
func TestOverload(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	config, data := workConfig(t, w, ", max_in_flight: 4", "{}\n") // one caller has half of it
	g := serveGate(t, config)
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			if r := g.call(t, use("slow", 1)); r.status != 200 {
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	eventually(t, "both tools are hit", func() bool { return w.hits() == 2 })
	var took []time.Duration
	for range 20 {
		before := time.Now()
		r := g.call(t, use("hit", 1))
		took = append(took, time.Since(before))
		refusedWith(t, "the third", r, 503, "overloaded")
		if r.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	slices.Sort(took)
	t.Logf("refused in %v, at most %v", took[10], took[19])
	for _, path := range []string{"/healthz", "/readyz"} {
		if r := g.ask(t, http.MethodGet, path, ""); r.status != 200 {
			t.Errorf("%s: %d", path, r.status)
		}
	}
	if r := g.askAdmin(t, "/readyz"); !strings.Contains(r.body, `"in_flight":2`) {
		t.Error(r.body)
	}
	if r := g.askAdmin(t, "/metrics"); !strings.Contains(r.body, "callgate_overloaded_total 20\n") {
		t.Error("the metrics do not count what was refused")
	}
	close(w.free)
	wait.Wait()
	eventually(t, "there is room", func() bool { return g.call(t, use("hit", 1)).status == 200 })
	g.stop(t)
	verified(t, data)
}
