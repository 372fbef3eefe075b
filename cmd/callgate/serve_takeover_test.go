package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/callgate/callgate/audit"
)

// stuck is a tool that answers a call only when it comes again.
type stuck struct {
	mu   sync.Mutex
	hits map[string]int
	free chan struct{}
}

func (s *stuck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Callgate-Call-Id")
	s.mu.Lock()
	s.hits[id]++
	first := s.hits[id] == 1
	s.mu.Unlock()
	if first {
		<-s.free
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"ok":true}`)
}

func (s *stuck) hitCounts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]int{}
	for id, n := range s.hits {
		seen[id] = n
	}
	return seen
}

// TestTakenOver kills one of two gateways that share their calls: the other sees to
// what it has left, within seconds, and each call has one outcome, also once the
// first is back.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	redis.start(t)
	tool := &stuck{hits: map[string]int{}, free: make(chan struct{})}
	server := httptest.NewServer(tool)
	defer server.Close()
	defer close(tool.free)
	config := sharedSteady(t, server.URL, redis)
	dirs := []string{quickDir(t), quickDir(t)}
	var gates []*gate
	for _, dir := range dirs {
		gates = append(gates, serveGateIn(t, dir, config))
	}
	for _, g := range gates {
		eventually(t, "calls are kept on Redis", func() bool { return g.operators(t).Calls == "" })
	}
	var asking sync.WaitGroup
	for n, name := range []string{"steady", "look"} {
		asking.Go(func() {
			_, _ = gates[0].try(http.MethodPost, "http://"+gates[0].listen+"/v1/calls", numbered(name, n), "Content-Type", "text/plain", "Idempotency-Key", name)
		})
	}
	eventually(t, "both calls are under way", func() bool { return len(tool.hitCounts()) == 2 })
	if err := gates[0].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	asking.Wait()
	answer := func(g *gate, n int, name string) reply {
		return g.call(t, numbered(name, n), "Idempotency-Key", name)
	}
	eventually(t, "the other has ended what acts once", func() bool { return answer(gates[1], 0, "steady").code() == "outcome_unknown" })
	eventually(t, "the other has read again", func() bool { return isResult(answer(gates[1], 1, "look")) })
	back := serveGateIn(t, dirs[0], config)
	eventually(t, "calls are kept on Redis", func() bool { return back.operators(t).Calls == "" })
	if r := answer(back, 0, "steady"); r.code() != "outcome_unknown" {
		t.Errorf("the first, once it is back: %d %s", r.status, r.body)
	}
	for _, g := range []*gate{back, gates[1]} {
		if code := g.stop(t); code != exitAccepted {
			t.Errorf("exit code %d", code)
		}
	}
	tools, outcomes := map[string]string{}, map[string][]audit.Outcome{}
	for _, dir := range dirs {
		if _, err := audit.Read(func(r audit.Record) error {
			if r.Event == audit.Ending {
				outcomes[r.CallID] = append(outcomes[r.CallID], r.Outcome)
			} else if r.Verdict == audit.ToolCall {
				tools[r.CallID] = r.Tool
			}
			return nil
		}, filepath.Join(dir, "callgate-data", "audit.jsonl")); err != nil {
			t.Errorf("the log does not verify: %v", err)
		}
	}
	want := map[string]struct {
		hits    int
		outcome audit.Outcome
	}{"steady": {1, audit.Unknown}, "look": {2, audit.Result}}
	seen := tool.hitCounts()
	for id, name := range tools {
		if w := want[name]; seen[id] != w.hits || len(outcomes[id]) != 1 || outcomes[id][0] != w.outcome {
			t.Errorf("%s reached the tool %d times, and has the outcomes %v", name, seen[id], outcomes[id])
		}
	}
	if len(tools) != 2 {
		t.Errorf("the calls are %v", tools)
	}
}
