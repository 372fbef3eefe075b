package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
)

// rounds is how often a test does what it does: what an environment variable says,
// or so often as fits among the tests.
func rounds(t testing.TB, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s: found %q; expected a number", variable, text)
	}
	return n
}

// recordingTool is a tool that notes which call reached it, and for which number.
type recordingTool struct {
	mu      sync.Mutex
	calls   map[string]int         // how often, by call id
	numbers map[int]map[string]int // by the argument n, how often each call id
}

func newRecordingTool() *recordingTool {
	return &recordingTool{calls: map[string]int{}, numbers: map[int]map[string]int{}}
}

func (w *recordingTool) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	var arguments struct{ N int }
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &arguments) // the gateway has checked it
	id := r.Header.Get("Callgate-Call-Id")
	w.mu.Lock()
	w.calls[id]++
	if w.numbers[arguments.N] == nil {
		w.numbers[arguments.N] = map[string]int{}
	}
	w.numbers[arguments.N][id]++
	w.mu.Unlock()
	time.Sleep(time.Duration(rand.IntN(8)) * time.Millisecond)
	out.Header().Set("Content-Type", "application/json")
	io.WriteString(out, `{"ok":true}`)
}

// busy tells answers of a gateway whose disk, or Redis, does not confirm in time:
// on a machine that does much else that is no fault.
func busy(r reply) bool {
	return r.status == http.StatusAccepted || strings.HasSuffix(r.code(), "_unavailable")
}

// numbered is a call of steady, which acts once, or of look, which reads.
func numbered(tool string, n int) string {
	return fmt.Sprintf(`{"tool":{"name":%q,"arguments":{"n":%d}}}`, tool, n)
}

// TestCrashes kills a gateway at random moments under load, again and again, with
// one data folder. A call of the effect once reached its tool at most once, whatever was
// asked again with its key; every call that was accepted has its one outcome; what
// was answered with a result has that outcome; the log verifies. With audit.sync: decision,
// a result without a key may have the outcome unknown, and everything else is the same;
// with audit.preallocate, everything is.
// CALLGATE_CRASHES says how often.
func TestCrashes(t *testing.T) {
	t.Parallel()
	for name, audit := range map[string]configs.Audit{
		"both": {Sync: "both"}, "decision": {Sync: configs.SyncDecision}, "preallocate": {Sync: "both", Preallocate: true},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); crash(t, audit) })
	}
}

func crash(t *testing.T, settings configs.Audit) {
	crashes := rounds(t, "CALLGATE_CRASHES", 10)
	const clients = 12
	tool := newRecordingTool()
	server := httptest.NewServer(tool)
	defer server.Close()
	config, data := steadyConfig(t, server.URL, fmt.Sprintf("}\naudit: {sync: %s, preallocate: %t", settings.Sync, settings.Preallocate))
	type ask struct {
		n    int
		tool string
		key  string
	}
	var mu sync.Mutex
	next := 0
	results := map[string]string{} // call ids that were answered with a result, by key or request
	var retries []ask              // what was not answered, and has a key
	answered := func(g *gate, a ask) bool {
		headers := []string{"Content-Type", "text/plain"}
		if a.key != "" {
			headers = append(headers, "Idempotency-Key", a.key)
		}
		r, err := g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", numbered(a.tool, a.n), headers...)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			if a.key != "" {
				retries = append(retries, a)
			}
			return false
		case isResult(r):
			results[fmt.Sprint(a.n)] = r.header.Get("Callgate-Call-Id")
		case r.code() != "outcome_unknown" && r.code() != "call_in_progress" && !busy(r):
			t.Errorf("%+v: %d %s", a, r.status, r.body)
		}
		return true
	}
	reached := func() int {
		tool.mu.Lock()
		defer tool.mu.Unlock()
		return len(tool.calls)
	}
	for round := range crashes {
		g := serveGate(t, config)
		before := reached()
		mu.Lock()
		resent := retries
		retries = nil
		mu.Unlock()
		var working sync.WaitGroup
		for client := range clients {
			working.Go(func() {
				for i := client; i < len(resent); i += clients {
					if !answered(g, resent[i]) {
						mu.Lock()
						for i += clients; i < len(resent); i += clients {
							retries = append(retries, resent[i])
						}
						mu.Unlock()
						return
					}
				}
				for {
					mu.Lock()
					next++
					a := ask{n: next, tool: []string{"steady", "look"}[next%2]}
					if next%3 > 0 {
						a.key = fmt.Sprint("key-", next)
					}
					mu.Unlock()
					if !answered(g, a) {
						return
					}
				}
			})
		}
		eventually(t, "calls are under way", func() bool { return reached() > before })
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		if err := g.cmd.Process.Kill(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		working.Wait()
		<-g.ended
		g.client.CloseIdleConnections()
	}
	// The last start sees to the rest, and answers what was asked again.
	g := serveGate(t, config)
	for _, a := range retries {
		answered(g, a)
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}

	tools, outcomes := map[string]string{}, map[string][]audit.Outcome{}
	files, err := filepath.Glob(filepath.Join(data, "audit*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Read(func(r audit.Record) error {
		if r.Event == audit.Ending {
			outcomes[r.CallID] = append(outcomes[r.CallID], r.Outcome)
		} else if r.Verdict == audit.ToolCall {
			tools[r.CallID] = r.Tool
		}
		return nil
	}, files...); err != nil {
		t.Errorf("the log does not verify: %v", err)
	}
	twice, undecided, missing, unknown := 0, 0, 0, 0
	for id, n := range tool.calls {
		if tools[id] == "" {
			undecided++
			t.Errorf("the call %s reached the tool and is not in the log", id)
		}
		if tools[id] == "steady" && n > 1 {
			twice++
			t.Errorf("the call %s, which acts once, reached the tool %d times", id, n)
		}
	}
	for n, by := range tool.numbers {
		if n%2 == 0 && n%3 > 0 && len(by) > 1 { // steady, with a key
			twice++
			t.Errorf("the key of %d started %d calls", n, len(by))
		}
	}
	for id, tool := range tools {
		if len(outcomes[id]) != 1 {
			missing++
			t.Errorf("the call %s of %s has the outcomes %v", id, tool, outcomes[id])
		} else if outcomes[id][0] == audit.Unknown {
			unknown++
		}
	}
	for id := range outcomes {
		if tools[id] == "" {
			t.Errorf("the call %s has an outcome and no decision", id)
		}
	}
	lost := 0
	for n, id := range results {
		o := outcomes[id]
		if i, _ := strconv.Atoi(n); settings.Sync == configs.SyncDecision && i%3 == 0 && len(o) == 1 && o[0] == audit.Unknown { // without a key
			lost++
			continue
		}
		if len(o) != 1 || o[0] != audit.Result {
			t.Errorf("the call %s of %s was answered with a result, and has the outcomes %v", id, n, o)
		}
	}
	t.Logf("%d crashes: %d calls accepted, %d reached the tool, %d answered with a result, %d unknown, %d of them answered; acted twice %d, without a decision %d, without their one outcome %d",
		crashes, len(tools), len(tool.calls), len(results), unknown, lost, twice, undecided, missing)
}

// sharedSteady is steadyConfig for two gateways that keep their calls on one Redis,
// each with its data in a folder of its own.
func sharedSteady(t testing.TB, url string, redis *redisServer) (config string) {
	t.Helper()
	config, _ = steadyConfig(t, url, "")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "data_dir:")
	shared := before + "redis: {url: \"redis://" + redis.address() + "\"}\nstore: {kind: redis, replicas: 2}\n# end\n"
	if err := os.WriteFile(config, []byte(shared), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestRacers lets racers send the same calls, each with its key, to two gateways
// that keep their calls on one Redis: each key starts one.
// CALLGATE_RACE_KEYS says how many keys there are.
func TestRacers(t *testing.T) {
	t.Parallel()
	keys := rounds(t, "CALLGATE_RACE_KEYS", 100)
	const racers = 8
	redis := newRedis(t)
	redis.start(t)
	tool := newRecordingTool()
	server := httptest.NewServer(tool)
	defer server.Close()
	config := sharedSteady(t, server.URL, redis)
	var gates []*gate
	for range 2 {
		gates = append(gates, serveGateIn(t, quickDir(t), config))
	}
	for _, g := range gates {
		eventually(t, "calls are kept on Redis", func() bool { return g.operators(t).Calls == "" })
	}
	var mu sync.Mutex
	answered, inProgress := map[int]map[string]int{}, 0
	race := func(n int) {
		var group sync.WaitGroup
		for racer := range racers {
			group.Go(func() {
				g := gates[racer%len(gates)]
				send := func() (reply, error) {
					return g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", numbered("steady", n), "Content-Type", "text/plain", "Idempotency-Key", fmt.Sprint("key-", n))
				}
				r, err := send()
				for deadline := time.Now().Add(patience); err == nil && busy(r) && time.Now().Before(deadline); r, err = send() {
					time.Sleep(50 * time.Millisecond)
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					t.Errorf("%d: %v", n, err)
				case isResult(r):
					if answered[n] == nil {
						answered[n] = map[string]int{}
					}
					answered[n][r.header.Get("Callgate-Call-Id")]++
				case r.code() == "call_in_progress":
					inProgress++
				default:
					t.Errorf("%d: %d %s", n, r.status, r.body)
				}
			})
		}
		group.Wait()
	}
	var running sync.WaitGroup
	for worker := range 4 {
		running.Go(func() {
			for n := worker; n < keys; n += 4 {
				race(n)
			}
		})
	}
	running.Wait()
	dispatched, other := 0, 0
	for n := range keys {
		for _, times := range tool.numbers[n] {
			dispatched += times
		}
		for deadline := time.Now().Add(patience); len(answered[n]) == 0 && time.Now().Before(deadline); {
			race(n) // the one that started it was told to come again
		}
		if len(answered[n]) != 1 {
			t.Errorf("the key of %d was answered by the calls %v", n, answered[n])
		}
		if n%10 > 0 {
			continue
		}
		g := gates[n/10%2]
		if r := g.call(t, numbered("steady", n+keys), "Idempotency-Key", fmt.Sprint("key-", n)); r.status != http.StatusConflict || r.code() != "idempotency_conflict" {
			other++
			t.Errorf("the key of %d with another body: %d %s", n, r.status, r.body)
		}
	}
	if dispatched != keys {
		t.Errorf("%d dispatches for %d keys", dispatched, keys)
	}
	t.Logf("%d keys, %d racers over %d gateways: %d dispatches, %d answers while the call ran, %d other bodies taken", keys, racers, len(gates), dispatched, inProgress, other)
}
