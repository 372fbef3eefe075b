package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
)

// long is how long a run under load takes: what an environment variable says, or
// so long as fits among the tests.
func long(t testing.TB, variable string, otherwise time.Duration) (run time.Duration, wanted bool) {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise, false
	}
	run, err := time.ParseDuration(text)
	if err != nil || run <= 0 {
		t.Fatalf("%s: found %q; expected a duration, as 60s", variable, text)
	}
	return run, true
}

// latencies gathers how long answers of one kind took.
type latencies struct {
	mu   sync.Mutex
	took []time.Duration
}

func (l *latencies) add(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = append(l.took, took)
}

func (l *latencies) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.took)
}

// at is the time within which that part of the answers came.
func (l *latencies) at(part float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.took) == 0 {
		return 0
	}
	slices.Sort(l.took)
	return l.took[min(int(part*float64(len(l.took))), len(l.took)-1)].Round(10 * time.Microsecond)
}

func (l *latencies) String() string {
	return fmt.Sprintf("%d, p50 %v, p99 %v, longest %v", l.count(), l.at(0.5), l.at(0.99), l.at(1))
}

// offerAt calls do so often a second, whether earlier ones have ended or not, and
// returns when all have.
func offerAt(rate int, run time.Duration, do func(n int)) {
	var running sync.WaitGroup
	began := time.Now()
	for n := 0; ; n++ {
		at := time.Duration(n) * time.Second / time.Duration(rate)
		if at >= run {
			break
		}
		time.Sleep(at - time.Since(began))
		running.Go(func() { do(n) })
	}
	running.Wait()
}

// onLinux skips where what a process holds cannot be looked at.
func onLinux(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: memory and descriptors are read in /proc")
	}
}

// memory is a figure of the gateway's own, in bytes: VmHWM, RssAnon.
func (g *gate) memory(t testing.TB, figure string) int64 {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(g.cmd.Process.Pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, figure+":"); ok {
			kilobytes, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatalf("the status of the process does not tell %s", figure)
	return 0
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// ledger is what a log says of calls, by request id.
type ledger struct {
	decided  map[string]string // call ids of calls that were accepted
	outcomes map[string][]audit.Outcome
}

// readLedger verifies a log, and holds every accepted call to have one outcome, and
// nothing else to have any.
func readLedger(t testing.TB, data string) ledger {
	t.Helper()
	l := ledger{map[string]string{}, map[string][]audit.Outcome{}}
	files, err := filepath.Glob(filepath.Join(data, "audit*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no log in %s: %v", data, err)
	}
	accepted := map[string]bool{}
	if _, err := audit.Read(func(r audit.Record) error {
		switch {
		case r.Event == audit.Ending:
			l.outcomes[r.CallID] = append(l.outcomes[r.CallID], r.Outcome)
		case r.Verdict == audit.ToolCall:
			l.decided[r.RequestID] = r.CallID
			accepted[r.CallID] = true
		}
		return nil
	}, files...); err != nil {
		t.Fatalf("the log does not verify: %v", err)
	}
	for id := range accepted {
		if n := len(l.outcomes[id]); n != 1 {
			t.Errorf("the call %s has %d outcomes: %v", id, n, l.outcomes[id])
		}
	}
	for id := range l.outcomes {
		if !accepted[id] {
			t.Errorf("the call %s has an outcome and was not accepted", id)
		}
	}
	return l
}

// steady is a tool that takes its time, and notes which calls reached it.
type steady struct {
	takes time.Duration
	mu    sync.Mutex
	hits  map[string]int // by call id
}

func newSteady(takes time.Duration) *steady { return &steady{takes: takes, hits: map[string]int{}} }

func (s *steady) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.hits[r.Header.Get("Callgate-Call-Id")]++
	s.mu.Unlock()
	io.Copy(io.Discard, r.Body)
	time.Sleep(s.takes)
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"ok":true}`)
}

// hitCounts is how often each call has reached the tool.
func (s *steady) hitCounts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.hits)
}

// steadyConfig is a configuration with tools at a URL: steady, which acts once,
// and look, which reads.
func steadyConfig(t testing.TB, url, server string) (config, data string) {
	t.Helper()
	var tools strings.Builder
	tools.WriteString("tools:\n")
	for name, effect := range map[string]string{"steady": "once", "look": "read"} {
		fmt.Fprintf(&tools, "  - {name: %s, effect: %s, input_schema: {type: object, properties: {n: {type: integer}}}, run: {type: http, url: %q, timeout: 20s, addresses: [127.0.0.1/32]}}\n", name, effect, url)
	}
	return layout(t, map[string]string{
		"callgate.yaml": "server: {" + anyPort + server + "}\n", "limits.yaml": "replicas: 2\n", "tools/steady.yaml": tools.String(),
	})
}

// isResult holds an answer to be the tool's.
func isResult(r reply) bool {
	var b struct {
		Result struct{ Output struct{ OK bool } } `json:"tool_result"`
	}
	return r.status == http.StatusOK && json.Unmarshal([]byte(r.body), &b) == nil && b.Result.Output.OK
}
