package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// soakRate is how many things are done each second.
const soakRate = 120

// held is what a process holds at a moment.
type held struct {
	goroutines, descriptors int
	memory                  int64
}

// TestFlatUnderLoad: a gateway under mixed load, with callers that leave, tools that fail
// and a configuration that changes, holds no more at the end than it did early on.
// CALLGATE_SOAK says how long.
func TestFlatUnderLoad(t *testing.T) {
	onLinux(t)
	run, measured := long(t, "CALLGATE_SOAK", 4*time.Second)
	tool := newSteady(2 * time.Millisecond)
	mux := http.NewServeMux()
	mux.Handle("/steady", forgetful(tool))
	mux.HandleFunc("/fails", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	server := httptest.NewServer(mux)
	defer server.Close()
	config, data := steadyConfig(t, server.URL+"/steady", "")
	writeTool(t, config, "fails", server.URL+"/fails")
	g := serveGate(t, config)
	s := &soak{gate: g, limits: filepath.Join(filepath.Dir(config), "limits.yaml")}
	s.client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Second}}
	for s.call == "" { // the first call, which others look up
		s.do(t, 0)
	}

	const samples = 40
	var all []held
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		for range samples {
			time.Sleep(run / samples)
			all = append(all, held{g.goroutines(t), g.descriptors(t), g.memory(t, "RssAnon")})
		}
	}()
	offerAt(soakRate, run, func(n int) { s.do(t, n) })
	<-sampled
	s.client.CloseIdleConnections()
	g.client.CloseIdleConnections()

	early, late := middle(all[samples/4:samples/2]), middle(all[3*samples/4:])
	t.Logf("%v, %d requests a second: %d answered, %d left early; %d refused while the machine was busy", run, soakRate, s.answered.Load(), s.left.Load(), s.late.Load())
	t.Logf("early: %d goroutines, %d descriptors, %s", early.goroutines, early.descriptors, mebibytes(early.memory))
	t.Logf("late:  %d goroutines, %d descriptors, %s", late.goroutines, late.descriptors, mebibytes(late.memory))
	// A machine that others slow down meanwhile has more calls under way.
	if most := early.goroutines + early.goroutines/4 + 50; measured && late.goroutines > most {
		t.Errorf("%d goroutines, more than %d", late.goroutines, most)
	}
	if most := early.descriptors + early.descriptors/4 + 50; measured && late.descriptors > most {
		t.Errorf("%d descriptors, more than %d", late.descriptors, most)
	}
	if most := early.memory + early.memory/4 + 32<<20; measured && late.memory > most {
		t.Errorf("%s, more than %s", mebibytes(late.memory), mebibytes(most))
	}
	// Without load it holds next to nothing.
	eventually(t, "everything is let go", func() bool { g.client.CloseIdleConnections(); return g.goroutines(t) < 60 })
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	readLedger(t, data)
}

// middle is the median of each figure.
func middle(all []held) held {
	of := func(figure func(held) int64) int64 {
		values := make([]int64, len(all))
		for i, h := range all {
			values[i] = figure(h)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return held{
		goroutines:  int(of(func(h held) int64 { return int64(h.goroutines) })),
		descriptors: int(of(func(h held) int64 { return int64(h.descriptors) })),
		memory:      of(func(h held) int64 { return h.memory }),
	}
}

// forgetful keeps a tool from remembering: this process is not the one that is
// looked at, but shares the machine with it.
func forgetful(s *steady) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r)
		s.mu.Lock()
		clear(s.hits)
		s.mu.Unlock()
	})
}

// writeTool adds a tool to a configuration.
func writeTool(t testing.TB, config, name, url string) {
	t.Helper()
	text := fmt.Sprintf("tools:\n  - {name: %s, effect: once, input_schema: {type: object}, run: {type: http, url: %q, timeout: 5s, addresses: [127.0.0.1/32]}}\n# end\n", name, url)
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "tools", name+".yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// soak does everything that callers do, in turn.
type soak struct {
	*gate
	client         *http.Client
	limits         string // the file
	mu             sync.Mutex
	call           string // the id of one that was answered
	answered, left atomic.Int64
	late           atomic.Int64 // that were refused since the machine was busy with something else
}

func (s *soak) do(t testing.TB, n int) {
	const calls = "/v1/calls"
	switch n % 12 {
	case 4:
		s.expect(t, calls, `{"tool":{"name":"steady","arguments":{"unknown":1}}}`, 422)
	case 5:
		s.expect(t, calls, "some text", 200)
	case 6:
		s.expect(t, "/v1/check", use("steady", n), 200)
	case 7:
		key := fmt.Sprintf("%q", fmt.Sprint("soak-", n))
		s.expect(t, calls, use("steady", n), 200, "Idempotency-Key", key)
		s.expect(t, calls, use("steady", n), 200, "Idempotency-Key", key)
	case 8:
		s.mu.Lock()
		path := calls + "/" + s.call
		s.mu.Unlock()
		if n%24 == 8 {
			path += "/events" // which end with what became of the call
		}
		s.expect(t, path, "", 200)
	case 9:
		s.expect(t, calls+"/call_none", "", 404)
	case 10: // fails, and soon is not asked any more
		s.expect(t, calls, `{"tool":{"name":"fails","arguments":{}}}`, 502)
	case 11:
		if n%240 == 11 {
			s.edit(t, n)
		}
		s.leave(n)
	default:
		r := s.expect(t, calls, use([]string{"steady", "look"}[n%2], n), 200)
		if r.status == http.StatusOK {
			s.mu.Lock()
			s.call = r.header.Get("Callgate-Call-Id")
			s.mu.Unlock()
		}
	}
}

// expect asks, and holds the answer to a status.
func (s *soak) expect(t testing.TB, path, body string, status int, headers ...string) reply {
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	} else {
		headers = append(headers, "Content-Type", "text/plain")
	}
	on := gate{client: s.client}
	r, err := on.try(method, "http://"+s.listen+path, body, headers...)
	switch code := r.code(); {
	case err == nil && slices.Contains([]string{"audit_unavailable", "store_unavailable", "overloaded"}, code):
		s.late.Add(1)
	case err != nil || r.status != status:
		t.Errorf("%s %s: %d %s %v", path, body, r.status, r.body, err)
	}
	s.answered.Add(1)
	return r
}

// leave sends a call and does not wait for its answer, or sends the half of one.
func (s *soak) leave(n int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(n%4)*time.Millisecond)
	defer cancel()
	body := use("steady", n)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.listen+"/v1/calls", strings.NewReader(body))
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", "text/plain")
	if n%3 == 0 {
		request.ContentLength = int64(len(body)) + 10 // which never come
	}
	if r, err := s.client.Do(request); err == nil {
		r.Body.Close()
	}
	s.left.Add(1)
}

// edit changes the configuration, which is taken up while serving.
func (s *soak) edit(t testing.TB, n int) {
	next := s.limits + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "default: {concurrency: %d}\n# end\n", 1000+n), 0o600); err != nil {
		t.Error(err)
	}
	if err := os.Rename(next, s.limits); err != nil {
		t.Error(err)
	}
}
