package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
)

// longFaults asks for the long form of what is injected.
const longFaults = "CALLGATE_FAULTS"

// TestClockSteps puts the clock of a gateway an hour ahead, and two hours back. Keys
// are what they were, calls are answered, and the log is in the order of its
// sequence numbers, whatever its times say.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	tool := newRecordingTool()
	server := httptest.NewServer(tool)
	defer server.Close()
	config, data := effectsConfig(t, server.URL, "")
	limits := filepath.Join(filepath.Dir(config), "limits.yaml")
	if err := os.WriteFile(limits, []byte("tools: {read: {rate: 1/h, burst: 2}}\n# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := serveGate(t, config, stepClock+"=1")
	ids := map[int]string{}
	ask := func(n int) {
		t.Helper()
		eventually(t, "the call is answered", func() bool {
			r := g.call(t, numbered("once", n), "Idempotency-Key", fmt.Sprint("key-", n))
			if !isResult(r) && !busy(r) {
				t.Fatalf("call %d: %d %s", n, r.status, r.body)
			}
			if ids[n] == "" {
				ids[n] = r.header.Get("Callgate-Call-Id")
			} else if got := r.header.Get("Callgate-Call-Id"); isResult(r) && got != ids[n] {
				t.Errorf("the key of call %d is answered by %s, but at first by %s", n, got, ids[n])
			}
			return isResult(r)
		})
	}
	eventually(t, "the limit is reached", func() bool { return g.call(t, numbered("read", 0)).code() == "rate_limited" })
	ask(1)
	for i, step := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGUSR2, syscall.SIGUSR1} {
		g.arm(t, step)
		for n := 1; n <= i+2; n++ { // those from before, and a new one
			ask(n)
		}
		if r := g.call(t, numbered("read", 0)); r.code() != "rate_limited" {
			t.Errorf("beyond its limit, after a step: %d %s", r.status, r.body)
		}
		if r := g.ask(t, http.MethodGet, "/v1/calls/"+ids[1], ""); r.status != http.StatusOK || !strings.Contains(r.body, `"state":"done"`) {
			t.Errorf("a call from before a step: %d %s", r.status, r.body)
		}
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	readLedger(t, data)
	back, last := 0, time.Time{}
	if _, err := audit.Read(func(r audit.Record) error {
		if r.Time.Before(last) {
			back++
		}
		last = r.Time
		return nil
	}, filepath.Join(data, "audit.jsonl")); err != nil {
		t.Fatal(err)
	}
	if back == 0 {
		t.Error("no record is older than the one before: the clock was not put back")
	}
	for n := range ids {
		if hits := tool.of(n); hits != 1 {
			t.Errorf("call %d reached its tool %d times", n, hits)
		}
	}
}

// TestModelBreaksOff has the model of a gateway fail in the middle of a call that
// it asks for. Nothing of an answer that has not come to its end is acted on.
func TestModelBreaksOff(t *testing.T) {
	t.Parallel()
	tool := newRecordingTool()
	tools := httptest.NewServer(tool)
	defer tools.Close()
	const (
		head = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,`
		end  = "data: " + head + `"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n"
		long = "data: " + head + `"delta":{},"finish_reason":"length"}]}` + "\n\n"
		done = "data: [DONE]\n\n"
	)
	call := func(n int) string {
		return "data: " + head + fmt.Sprintf(`"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"once","arguments":"{\"n\":%d}"}}]},"finish_reason":null}]}`, n) + "\n\n"
	}
	stalls := func(r *http.Request) { <-r.Context().Done() }
	aborts := func(*http.Request) { panic(http.ErrAbortHandler) }
	ends := func(*http.Request) {}
	cases := []struct {
		name   string
		part   int // of the call, in hundredths
		behind string
		then   func(*http.Request)
		want   string // what the answer says; "" acts
	}{
		{"500", 0, "", nil, "no"},
		{"cut in the call", 50, "", aborts, "upstream_unavailable"},
		{"cut behind the call", 100, "", aborts, "upstream_unavailable"},
		{"cut behind its end", 100, end, aborts, "upstream_unavailable"},
		{"no end", 100, done, ends, "upstream_unavailable"},
		{"cut for its length", 100, long + done, ends, "truncated_output"},
		{"stalls", 100, "", stalls, "upstream_timeout"},
		{"whole, then stalls", 100, end, stalls, ""},
		{"says nothing", 0, "", stalls, "upstream_timeout"},
		{"noise behind", 100, end + "data: nonsense\n\n", ends, "upstream_unavailable"},
		{"another answer behind", 100, end + done + end + done, ends, ""}, // which no client reads
		{"whole, then cut", 100, end + done, aborts, ""},
		{"whole", 100, end + done, ends, ""},
	}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Model string }
		_ = json.NewDecoder(r.Body).Decode(&request) // a gateway asks with JSON
		n, err := strconv.Atoi(strings.TrimPrefix(request.Model, "case-"))
		if err != nil || cases[n].then == nil {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		c := cases[n]
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, call(n)[:len(call(n))*c.part/100]+c.behind)
		w.(http.Flusher).Flush()
		c.then(r)
	}))
	defer model.Close()
	config, data := effectsConfig(t, tools.URL, "upstreams: upstreams.yaml\n")
	upstreams := fmt.Sprintf("upstreams:\n  - {name: m, base_url: %q, models: [\"case-*\"], modes: [orchestrate], max_repairs: 0, retries: 0, max_turns: 1, timeouts: {connect: 5s, response: 5s, idle: 5s, total: 1m}}\n# end\n", model.URL+"/v1")
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "upstreams.yaml"), []byte(upstreams), 0o600); err != nil {
		t.Fatal(err)
	}
	g := serveGate(t, config)
	var asking sync.WaitGroup
	for n, c := range cases {
		asking.Go(func() {
			r := g.ask(t, http.MethodPost, "/v1/chat/completions", fmt.Sprintf(`{"model":"case-%d","messages":[{"role":"user","content":"Go on."}],"stream":true}`, n), "Content-Type", "application/json")
			hits := tool.of(n)
			if c.want == "" && hits != 1 || c.want != "" && (hits != 0 || !strings.Contains(r.body, c.want)) {
				t.Errorf("%s: the call was executed %d times: %d %s", c.name, hits, r.status, r.body)
			}
		})
	}
	asking.Wait()
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	readLedger(t, data)
}

// TestDrainsWithStreams sends SIGTERM to a gateway that runs a call, which somebody
// follows. The call is answered, the stream ends, and the exit code says that
// nothing is open.
func TestDrainsWithStreams(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	config, data := workConfig(t, w, ", shutdown_timeout: 20s", "{}\n")
	g := serveGate(t, config)
	answer := make(chan reply, 1)
	go func() { answer <- g.callRetrying(t, use("slow", 1), "Idempotency-Key", "k") }()
	eventually(t, "the tool is hit", func() bool { return w.hits() == 1 })
	w.mu.Lock()
	id := w.ids[0]
	w.mu.Unlock()
	response, err := g.client.Get("http://" + g.listen + "/v1/calls/" + id + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the stream: %d %q %v", response.StatusCode, line, err)
	}
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := lines.ReadString('\n'); err != nil {
				return
			}
		}
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the stream does not end")
	}
	w.free <- struct{}{}
	if r := <-answer; r.status != http.StatusOK || !strings.Contains(r.body, `"hit":1`) {
		t.Errorf("the call in flight: %d %s", r.status, r.body)
	}
	if code := g.code(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	readLedger(t, data)
}

// TestManyLargeBodies sends bodies of a megabyte from everywhere at once to a gateway that
// is to use little memory. Each is refused; memory stays bounded, and it keeps serving.
func TestManyLargeBodies(t *testing.T) {
	t.Parallel()
	onLinux(t)
	server := httptest.NewServer(newRecordingTool())
	defer server.Close()
	config, data := effectsConfig(t, server.URL, "")
	g := serveGate(t, config, "GOMEMLIMIT=128MiB")
	g.client.Timeout = 2 * time.Minute
	text, err := json.Marshal(strings.Repeat("x", 1000<<10))
	if err != nil {
		t.Fatal(err)
	}
	body := `{"tool":{"name":"once","arguments":{"n":` + string(text) + `}}}`
	bodies := 100
	if testing.Short() {
		bodies = 30
	}
	codes := map[string]int{}
	var mu sync.Mutex
	var sending sync.WaitGroup
	for range bodies {
		sending.Go(func() {
			r, err := g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", body, "Content-Type", "text/plain")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				codes["broken off"]++ // refused before it was read
			case r.status == http.StatusOK:
				t.Errorf("%d %.100s", r.status, r.body)
			default:
				codes[r.code()]++
			}
		})
	}
	sending.Wait()
	g.client.CloseIdleConnections()
	eventually(t, "calls are answered", func() bool { return isResult(g.call(t, numbered("once", 1))) })
	peak := g.memory(t, "VmHWM")
	if peak > 768<<20 {
		t.Errorf("it has taken %s", mebibytes(peak))
	}
	for code := range codes {
		if code != "overloaded" && code != "wrong_type" && code != "broken off" && code != "bad_request" { // the last: not read in time
			t.Errorf("%d times %s", codes[code], code)
		}
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	verified(t, data)
	t.Logf("%d bodies of 1 MB at once: %v; peak memory %s", bodies, codes, mebibytes(peak))
}
