package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/callgate/callgate/audit"
)

// effectsConfig is a configuration with a tool of each effect at a URL, named by
// it. store is what the main file says beside its listeners.
func effectsConfig(t testing.TB, url, store string) (config, data string) {
	t.Helper()
	var tools strings.Builder
	tools.WriteString("tools:\n")
	for _, effect := range []string{"once", "read", "idempotent"} {
		fmt.Fprintf(&tools, "  - {name: %s, effect: %s, input_schema: {type: object, properties: {n: {type: integer}}}, run: {type: http, url: %q, timeout: 20s, addresses: [127.0.0.1/32]}}\n", effect, effect, url)
	}
	return quickLayout(t, map[string]string{
		"callgate.yaml": "server: {" + anyPort + "}\n" + store, "limits.yaml": "replicas: 1\n", "tools/effects.yaml": tools.String(),
	})
}

// quickLayout is layout with its data in memory, where the system has a folder
// there: a disk that is busy with something else would be a fault of its own.
func quickLayout(t testing.TB, files map[string]string) (config, data string) {
	t.Helper()
	config, slow := layout(t, files)
	data = filepath.Join(quickDir(t), "data")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(strings.Replace(string(text), slow, data, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return config, data
}

// callRetrying is call for a machine that is busy: what was refused, since its log or its
// store was not written in time, is sent again.
func (g *gate) callRetrying(t testing.TB, completion string, headers ...string) (r reply) {
	t.Helper()
	eventually(t, "a call is not refused by a machine that is busy", func() bool {
		r = g.call(t, completion, headers...)
		return r.code() != "audit_unavailable" && r.code() != "store_unavailable"
	})
	return r
}

// arm has a process that was started with a failpoint, or a clock, do what it was
// started for.
func (g *gate) arm(t testing.TB, with syscall.Signal) {
	t.Helper()
	before := strings.Count(g.stderr.String(), "armed\n")
	if err := g.cmd.Process.Signal(with); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process is armed", func() bool { return strings.Count(g.stderr.String(), "armed\n") > before })
}

// killedByItself holds a gateway to have ended at its failpoint.
func (g *gate) killedByItself(t testing.TB) {
	t.Helper()
	g.code(t)
	if status, ok := g.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the gateway ended otherwise than at its failpoint: %v %s", g.cmd.ProcessState, g.stderr.String())
	}
}

// recorded reads a log that is being written: the call of each request that was
// accepted, and the outcomes of each call. A last line may be incomplete.
func recorded(t testing.TB, data string) (calls map[string]string, outcomes map[string][]audit.Outcome) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "audit.jsonl"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	calls, outcomes = map[string]string{}, map[string][]audit.Outcome{}
	for line := range strings.Lines(string(text)) {
		var r audit.Record
		if json.Unmarshal([]byte(line), &r) != nil {
			continue
		}
		if r.Event == audit.Ending {
			outcomes[r.CallID] = append(outcomes[r.CallID], r.Outcome)
		} else if r.Verdict == audit.ToolCall {
			calls[r.RequestID] = r.CallID
		}
	}
	return calls, outcomes
}

// passage is a call during which its gateway is killed at a point.
type passage struct {
	point, effect string
	keyed         bool
	shared        bool // the store is Redis
}

func (p passage) String() string {
	key := "without a key"
	if p.keyed {
		key = "with a key"
	}
	store := "file"
	if p.shared {
		store = "redis"
	}
	return fmt.Sprintf("%s, %s, %s, %s", store, p.point, p.effect, key)
}

// fate is the required end of such a call: by the time the next process has recovered it,
// and then of one more question with its key.
type fate struct {
	decided bool
	outcome audit.Outcome // of the call, where it was decided
	hits    int
	answer  string // to its key: "new" call, "same" result, or a code
}

// fate follows from the order of the steps alone. With a key a call is opened
// before it is judged, else once it was decided.
func (p passage) fate() fate {
	// The state of a call in the store after a crash: all from its dispatch on, or nothing,
	// where a file is spared the call.
	kept, twice := p.keyed || p.shared, p.effect != "once"
	unknown := fate{true, audit.Unknown, 0, "outcome_unknown"}
	result := fate{true, audit.Result, 1, "same"}
	switch p.point {
	case points.opened:
		return fate{!p.keyed, audit.Unknown, 0, "new"}
	case points.decided:
		return fate{true, audit.Unknown, 0, "new"}
	case points.dispatched:
		if kept && twice {
			return result
		}
		return unknown
	case points.ran:
		unknown.hits = 1
		if kept && twice {
			result.hits = 2
			return result
		}
		return unknown
	case points.finished:
		if kept {
			return result
		}
		unknown.hits = 1
		return unknown
	}
	return result
}

// passages are the calls of one store. The short form leaves out what another
// one passes in the same way.
func passages(shared, all bool) (list []passage) {
	for _, point := range []string{points.opened, points.decided, points.dispatched, points.ran, points.finished, points.outcome} {
		for _, effect := range []string{"once", "read", "idempotent"} {
			for _, keyed := range []bool{true, false} {
				late := point != points.dispatched && point != points.ran
				if all || effect == "once" && (keyed || !shared) || keyed && effect == "read" && !late {
					list = append(list, passage{point, effect, keyed, shared})
				}
			}
		}
	}
	return list
}

// TestFailpoints kills gateways between any two steps of a call, each a process of
// its own on one data folder, by themselves, so that the moment is exact. The next
// one sees to what was left: what acts once has reached its tool at most once,
// each call that was accepted has the one outcome that its steps allow, and its
// key starts another call only where the first was never dispatched.
func TestFailpoints(t *testing.T) {
	t.Parallel()
	all := os.Getenv(longFaults) != ""
	t.Run("file", func(t *testing.T) { failAlong(t, "", passages(false, all)) })
	t.Run("redis", func(t *testing.T) {
		redis := newRedis(t)
		redis.start(t)
		failAlong(t, "redis: {url: \"redis://"+redis.address()+"\"}\nstore: {kind: redis}\n", passages(true, all))
	})
}

func failAlong(t *testing.T, store string, list []passage) {
	tool := newRecordingTool()
	server := httptest.NewServer(tool)
	defer server.Close()
	config, data := effectsConfig(t, server.URL, store)
	ask := func(g *gate, n int, request string) (reply, error) {
		p := list[n]
		headers := []string{"Content-Type", "text/plain", "Callgate-Id", request}
		if p.keyed {
			headers = append(headers, "Idempotency-Key", fmt.Sprint("key-", n))
		}
		return g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", numbered(p.effect, n), headers...)
	}
	// A call that was refused since the machine is busy did not get that far.
	tries := make([]int, len(list))
	first := func(n int) string { return fmt.Sprint("first-", n, "-", tries[n]) }
	// see holds one call to its fate, before the process.
	see := func(g *gate, n int) {
		p, want := list[n], list[n].fate()
		var calls map[string]string
		var outcomes map[string][]audit.Outcome
		look := func() { calls, outcomes = recorded(t, data) }
		look()
		id := calls[first(n)]
		if (id != "") != want.decided {
			t.Errorf("%v: its decision stands: %v", p, id != "")
			return
		}
		if want.decided {
			eventually(t, p.String()+": the call has an outcome", func() bool { look(); return len(outcomes[id]) > 0 })
			if got := outcomes[id]; len(got) != 1 || got[0] != want.outcome {
				t.Errorf("%v: the outcomes are %v, want %s", p, got, want.outcome)
			}
		}
		if hits := tool.of(n); hits != want.hits {
			t.Errorf("%v: it reached its tool %d times, want %d", p, hits, want.hits)
		}
		if !p.keyed {
			return
		}
		var r reply
		eventually(t, p.String()+": its key is answered", func() bool {
			var err error
			if r, err = ask(g, n, fmt.Sprint("again-", n)); err != nil {
				t.Fatalf("%v: %v", p, err)
			}
			return !busy(r) && r.code() != "call_in_progress"
		})
		got := r.header.Get("Callgate-Call-Id")
		switch hits := tool.of(n); {
		case want.answer == "new" && (!isResult(r) || got == id || hits != 1),
			want.answer == "same" && (!isResult(r) || got != id || hits != want.hits),
			want.answer == "outcome_unknown" && (r.code() != want.answer || got != id || hits != want.hits):
			t.Errorf("%v: its key is answered with %d %s of %s, and its tool was hit %d times; want %s", p, r.status, r.body, got, hits, want.answer)
		}
	}
	for n := range list {
		g := serveGate(t, config, failAt+"=kill "+list[n].point)
		eventually(t, "calls are kept", func() bool { return g.operators(t).Calls == "" })
		if n > 0 {
			see(g, n-1)
		}
		g.arm(t, syscall.SIGUSR1)
		for {
			tries[n]++
			r, err := ask(g, n, first(n))
			if err != nil {
				break
			}
			if !busy(r) || r.status == http.StatusAccepted {
				t.Fatalf("%v: answered with %d %s", list[n], r.status, r.body)
			}
		}
		g.killedByItself(t)
	}
	g := serveGate(t, config)
	eventually(t, "calls are kept", func() bool { return g.operators(t).Calls == "" })
	see(g, len(list)-1)
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	readLedger(t, data)
	twice := 0
	for n, p := range list {
		if p.effect == "once" && tool.of(n) > 1 {
			twice++
		}
	}
	t.Logf("%d processes killed at %d points; acted twice: %d; each accepted call has its one outcome", len(list), 6, twice)
}

// TestThreadsOverKills kills gateways between any two steps of a call that its thread may make once. The next process knows
// of each thread at least what the records say, and lets no second call of it reach its tool.
func TestThreadsOverKills(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) { killThreads(t, "", true) })
	t.Run("redis", func(t *testing.T) {
		if testing.Short() {
			t.Skip("short: calls are kept in a file alone")
		}
		redis := newRedis(t)
		redis.start(t)
		killThreads(t, "redis: {url: \"redis://"+redis.address()+"\"}\nstore: {kind: redis}\n", false)
	})
}

// killThreads is TestThreadsOverKills with one store. exact says that what is in no record counts no longer.
func killThreads(t *testing.T, store string, exact bool) {
	tool := newRecordingTool()
	server := httptest.NewServer(tool)
	defer server.Close()
	config, data := effectsConfig(t, server.URL, store)
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "policy.csv"), []byte("p, Analyst, acme/alpha, once, thread.calls('once') <= 1, allow\n# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := 0 // each call has a number, and a thread of its own
	ask := func(g *gate, key string) (reply, error) {
		return g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", numbered("once", asked), "Content-Type", "text/plain", "Callgate-Thread", fmt.Sprint("t", asked), "Idempotency-Key", fmt.Sprint(key, asked))
	}
	killed := "" // the point at which the process before was killed
	for _, point := range []string{points.opened, points.decided, points.dispatched, points.ran, points.finished, points.outcome, ""} {
		env := []string{}
		if point != "" {
			env = append(env, failAt+"=kill "+point)
		}
		g := serveGate(t, config, env...)
		eventually(t, "calls are kept", func() bool { return g.operators(t).Calls == "" })
		if killed != "" {
			var counted int
			eventually(t, killed+": the call has an outcome", func() (ended bool) {
				counted, ended = countedIn(t, data, fmt.Sprint("t", asked))
				return ended
			})
			var r reply
			eventually(t, killed+": the thread is asked again", func() bool {
				var err error
				if r, err = ask(g, "again-"); err != nil {
					t.Fatal(err)
				}
				return !busy(r) && r.code() != "call_in_progress"
			})
			switch hits := tool.of(asked); {
			case hits > 1, counted > 0 && r.code() != "permission_denied", exact && counted == 0 && hits != 1:
				t.Errorf("%s: the records count %d, the tool was hit %d times, and then: %d %s", killed, counted, hits, r.status, r.body)
			}
		}
		if killed = point; point == "" {
			if code := g.stop(t); code != exitAccepted {
				t.Errorf("exit code %d", code)
			}
			break
		}
		g.arm(t, syscall.SIGUSR1)
		for err := error(nil); err == nil; { // until it dies of it
			asked++
			var r reply
			if r, err = ask(g, "first-"); err == nil && !busy(r) {
				t.Fatalf("%s: answered with %d %s", point, r.status, r.body)
			}
		}
		g.killedByItself(t)
	}
	readLedger(t, data)
}

// countedIn reads from a log that is being written what counts of a thread, and whether each of its calls has ended.
func countedIn(t testing.TB, data, thread string) (counted int, ended bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var r audit.Record
		if json.Unmarshal([]byte(line), &r) != nil {
			continue
		}
		if r.Event == audit.Decision && r.Verdict == audit.ToolCall && r.Thread == thread {
			calls[r.CallID] = true
			counted += len(r.Adds)
		} else if r.Event == audit.Ending && calls[r.CallID] {
			delete(calls, r.CallID)
			counted -= len(r.Undo)
		}
	}
	return counted, len(calls) == 0
}

// of is how often calls with a number have reached the tool.
func (w *recordingTool) of(n int) (hits int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, times := range w.numbers[n] {
		hits += times
	}
	return hits
}

// TestKilledAgainAndAgain kills each process that dispatches a call once more, just
// when its tool has answered. A call that nobody survives is dispatched three
// times, and then ends as unknown.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	tool := newRecordingTool()
	server := httptest.NewServer(tool)
	defer server.Close()
	config, data := effectsConfig(t, server.URL, "")
	g := serveGate(t, config, failAt+"=now kill "+points.ran)
	for err := error(nil); err == nil; { // until it dies of it
		_, err = g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", numbered("read", 1), "Content-Type", "text/plain", "Idempotency-Key", "k")
	}
	g.killedByItself(t)
	for round := range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		c := process(ctx, nil, "serve", "--config", config)
		c.Env = append(c.Env, failAt+"=now kill "+points.ran)
		err := c.Run()
		cancel()
		if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL || ctx.Err() == context.DeadlineExceeded {
			t.Fatalf("round %d: the process has not died of the call: %v", round, err)
		}
	}
	last := serveGate(t, config)
	var r reply
	eventually(t, "the call has ended", func() bool {
		r = last.call(t, numbered("read", 1), "Idempotency-Key", "k")
		return r.code() != "call_in_progress" && !busy(r)
	})
	if r.code() != "outcome_unknown" || tool.of(1) != 3 {
		t.Errorf("dispatched %d times, and answered with %d %s", tool.of(1), r.status, r.body)
	}
	if code := last.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	readLedger(t, data)
}

// TestPartsThatPanic has each part of a gateway panic in turn, before its step. The call is
// refused, or answered once the step was done again; nothing is dispatched that was not
// decided; and the process keeps serving.
func TestPartsThatPanic(t *testing.T) {
	for step, want := range map[string]string{
		"take": "internal", "open": "store_unavailable", "decision": "internal", "dispatch": "store_unavailable", "run": "internal", "get": "store_unavailable",
		// These are done again, beside or before the answer.
		"finish": "", "outcome": "", "recover": "",
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			panicsBefore(t, step, want)
		})
	}
}

func panicsBefore(t *testing.T, step, want string) {
	tool := newRecordingTool()
	server := httptest.NewServer(tool)
	defer server.Close()
	config, data := effectsConfig(t, server.URL, "")
	g := serveGate(t, config, failAt+"=panic before "+step)
	var first reply
	eventually(t, "a call is answered", func() bool { first = g.call(t, numbered("once", 0)); return isResult(first) })
	g.arm(t, syscall.SIGUSR1)
	var r reply
	if step == "get" {
		r = g.ask(t, http.MethodGet, "/v1/calls/"+first.header.Get("Callgate-Call-Id"), "")
	} else if want == "store_unavailable" {
		r = g.call(t, numbered("once", 1), "Idempotency-Key", "k")
	} else {
		r = g.callRetrying(t, numbered("once", 1), "Idempotency-Key", "k")
	}
	if want != "" && r.code() != want || want == "" && !isResult(r) && !busy(r) {
		t.Errorf("%d %s, want %q", r.status, r.body, want)
	}
	if strings.Contains(r.body, "panic") || strings.Contains(r.body, "a failure of the test") {
		t.Errorf("the caller reads %s", r.body)
	}
	if hits := tool.of(1); want != "" && hits != 0 {
		t.Errorf("the tool was called %d times", hits)
	}
	eventually(t, "calls are answered again", func() bool { return isResult(g.call(t, numbered("once", 2), "Idempotency-Key", "after")) })
	if log := g.stderr.String(); strings.Contains(log, "a failure of the test") || strings.Contains(log, "goroutine ") {
		t.Errorf("the log has what was thrown, or a stack: %s", log)
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	readLedger(t, data)
}
