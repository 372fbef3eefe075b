package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
)

// TestStopWithDeferredOutcomes stops a gateway under load whose calls are answered before
// their outcomes are on disk: a clean stop loses none of them.
func TestStopWithDeferredOutcomes(t *testing.T) {
	t.Parallel()
	tool := newRecordingTool()
	server := httptest.NewServer(tool)
	defer server.Close()
	config, data := steadyConfig(t, server.URL, "}\naudit: {sync: decision")
	g := serveGate(t, config)
	var mu sync.Mutex
	var answered []string
	var next atomic.Int64
	var working sync.WaitGroup
	for range 12 {
		working.Go(func() {
			for {
				r, err := g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", numbered("steady", int(next.Add(1))), "Content-Type", "text/plain")
				if err != nil {
					return
				}
				if isResult(r) {
					mu.Lock()
					answered = append(answered, r.header.Get("Callgate-Call-Id"))
					mu.Unlock()
				}
			}
		})
	}
	eventually(t, "calls are answered", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(answered) > 100
	})
	time.Sleep(100 * time.Millisecond)
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	working.Wait()
	files, err := filepath.Glob(filepath.Join(data, "audit*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	open, results := map[string]bool{}, map[string]bool{}
	if _, err := audit.Read(func(r audit.Record) error {
		if r.Event == audit.Decision {
			open[r.CallID] = true
			return nil
		}
		delete(open, r.CallID)
		results[r.CallID] = r.Outcome == audit.Result
		return nil
	}, files...); err != nil {
		t.Error(err)
	}
	for _, id := range answered {
		if !results[id] {
			t.Errorf("the call %s was answered with a result, and has none in the log", id)
		}
	}
	if len(open) > 0 {
		t.Errorf("%d calls have no outcome", len(open))
	}
}
