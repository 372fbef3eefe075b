package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
)

// TestToolHangs stops the process of a tool. A once call may have acted, a read call has no
// answer; no request waits longer, and the tool is called again when it continues.
func TestToolHangs(t *testing.T) {
	t.Parallel()
	onLinux(t)
	process, url := toolProcess(t)
	var tools strings.Builder
	tools.WriteString("tools:\n")
	for _, effect := range []string{"once", "read"} {
		fmt.Fprintf(&tools, "  - {name: %s, effect: %s, input_schema: {type: object, properties: {n: {type: integer}}}, run: {type: http, url: %q, timeout: 2s, addresses: [127.0.0.1/32]}}\n", effect, effect, url)
	}
	config, data := quickLayout(t, map[string]string{"callgate.yaml": "server: {" + anyPort + "}\n", "limits.yaml": "{}\n", "tools/effects.yaml": tools.String()})
	g := serveGate(t, config)
	answers := func(when string) {
		for _, effect := range []string{"once", "read"} {
			eventually(t, when+" the tool answers", func() bool { return isResult(g.call(t, numbered(effect, 0))) })
		}
	}
	answers("at first")
	g.client.CloseIdleConnections()
	running := g.goroutines(t)
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the tool stands still", func() bool { return standsStill(process.Pid) })
	want := map[string]struct {
		code    string
		outcome audit.Outcome
	}{"once": {"outcome_unknown", audit.Unknown}, "read": {"tool_timeout", audit.Timeout}}
	type effectCall struct{ effect, id string }
	var mu sync.Mutex
	var calls []effectCall
	var asking sync.WaitGroup
	for effect, w := range want {
		for n := range 3 {
			asking.Go(func() {
				r := g.callRetrying(t, numbered(effect, n), "Idempotency-Key", fmt.Sprint(effect, n))
				if r.code() != w.code {
					t.Errorf("%s: %d %s, want %s", effect, r.status, r.body, w.code)
				}
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, effectCall{effect, r.header.Get("Callgate-Call-Id")})
			})
		}
	}
	asking.Wait()
	if err := process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	answers("when it continues")
	for n := range 3 {
		if r := g.callRetrying(t, numbered("once", n), "Idempotency-Key", fmt.Sprint("once", n)); r.code() != "outcome_unknown" {
			t.Errorf("the key of a call that hung: %d %s", r.status, r.body)
		}
	}
	eventually(t, "nothing waits for the tool any more", func() bool {
		g.client.CloseIdleConnections()
		return g.goroutines(t) <= running+5
	})
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	outcomes := readLedger(t, data).outcomes
	for _, c := range calls {
		if got := outcomes[c.id]; len(got) != 1 || got[0] != want[c.effect].outcome {
			t.Errorf("%s: the outcomes are %v", c.effect, got)
		}
	}
}

// standsStill tells whether every thread of a process was stopped: a signal is sent
// before it has come.
func standsStill(pid int) bool {
	states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, name := range states {
		stat, err := os.ReadFile(name)
		if _, state, _ := strings.Cut(string(stat), ") "); err != nil || !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return err == nil && len(states) > 0
}

// rude is a tool that answers by tool name, with bytes.
type rude struct {
	answers map[string]func(net.Conn)
	mu      sync.Mutex
	hits    map[string]int // by path
}

// listen returns an address of the tool that nobody else has: it closes each connection
// without saying so, and a call on one that another has used may find it closing.
func (r *rude) listen(t testing.TB) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(c)
		}
	}()
	return "http://" + l.Addr().String()
}

func (r *rude) serve(c net.Conn) {
	defer c.Close()
	request, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, request.Body) // the answer is rude whatever was asked
	path := strings.Trim(request.URL.Path, "/")
	r.mu.Lock()
	r.hits[path]++
	r.mu.Unlock()
	name, _, _ := strings.Cut(path, "/")
	r.answers[name](c)
}

// TestToolsThatMisbehave asks tools that answer in every bad way, over connections
// of their own. Each call has the code that says what is known; what the tool wrote
// reaches nobody; memory stays bounded.
func TestToolsThatMisbehave(t *testing.T) {
	t.Parallel()
	onLinux(t)
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	say := func(parts ...string) func(net.Conn) {
		return func(c net.Conn) { io.WriteString(c, strings.Join(parts, "")) }
	}
	body := func(text string) func(net.Conn) {
		return say(head, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(text)), text)
	}
	until := func(pause time.Duration, head, more string) func(net.Conn) {
		return func(c net.Conn) {
			for _, err := io.WriteString(c, head); err == nil; _, err = io.WriteString(c, more) {
				time.Sleep(pause)
			}
		}
	}
	var bomb bytes.Buffer
	zipped := gzip.NewWriter(&bomb)
	for range 16 {
		zipped.Write(make([]byte, 1<<20))
	}
	zipped.Close()
	// A code that ends in "!" is for a tool that acts once too: it has answered.
	cases := map[string]struct {
		answer func(net.Conn)
		code   string
	}{
		"s500":      {say("HTTP/1.1 500 X\r\nContent-Length: 6\r\n\r\nSECRET"), "tool_failed!"},
		"s404":      {say("HTTP/1.1 404 X\r\nContent-Length: 6\r\n\r\nSECRET"), "tool_failed!"},
		"redirect":  {say("HTTP/1.1 302 X\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"), "tool_failed!"},
		"s503":      {say("HTTP/1.1 503 X\r\nContent-Length: 6\r\n\r\nSECRET"), "tool_unavailable"},
		"close":     {func(net.Conn) {}, "tool_unavailable"},
		"reset":     {func(c net.Conn) { c.(*net.TCPConn).SetLinger(0) }, "tool_unavailable"},
		"cut":       {say(head, "Content-Length: 100\r\n\r\n", `{"ok":true`), "tool_unavailable"},
		"chunk":     {say(head, "Transfer-Encoding: chunked\r\n\r\n", "b\r\n", `{"ok":true}`, "\r\n"), "tool_unavailable"},
		"nohttp":    {say("SECRET SECRET\r\n\r\n"), "tool_unavailable"},
		"heads":     {until(0, "HTTP/1.1 200 OK\r\n", "X: "+strings.Repeat("y", 1000)+"\r\n"), "tool_unavailable"},
		"drip":      {until(20*time.Millisecond, head+"Content-Length: 1000\r\n\r\n", "1"), "tool_timeout"},
		"silent":    {func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }, "tool_timeout"},
		"large":     {say(head, "Content-Length: 9000000000000\r\n\r\n"), "result_too_large!"},
		"endless":   {until(0, head+"\r\n", strings.Repeat("1", 1<<16)), "result_too_large!"},
		"bomb":      {say(head, "Content-Encoding: gzip\r\nConnection: close\r\n\r\n", bomb.String()), "result_too_large!"},
		"nojson":    {body("SECRET"), "invalid_result!"},
		"twice":     {body(`{"ok":true,"ok":false}`), "invalid_result!"},
		"utf8":      {body("{\"ok\":\"\xff\"}"), "invalid_result!"},
		"surrogate": {body(`{"ok":"\ud800"}`), "invalid_result!"},
		"behind":    {body(`{"ok":true} {"tool":{"name":"once","arguments":{}}}`), "invalid_result!"},
		"deep":      {body(strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), "invalid_result!"},
		"empty":     {body(""), "invalid_result!"},
		"shape":     {body(`{"SECRET":"SECRET"}`), "invalid_result!"},
	}
	answers := map[string]func(net.Conn){}
	for name, c := range cases {
		answers[name] = c.answer
	}
	r := &rude{answers: answers, hits: map[string]int{}}
	var tools strings.Builder
	tools.WriteString("tools:\n")
	for name := range cases {
		for _, effect := range []string{"once", "read"} {
			timeout := "90s"
			if name == "drip" || name == "silent" {
				timeout = "2s"
			}
			fmt.Fprintf(&tools, "  - {name: %s.%s, effect: %s, input_schema: {type: object}, output_schema: {type: object, properties: {ok: {type: boolean}}, additionalProperties: false}, run: {type: http, url: %q, timeout: %s, max_result_bytes: 100000, addresses: [127.0.0.1/32]}}\n", name, effect, effect, r.listen(t)+"/"+name+"/"+effect, timeout)
		}
	}
	config, data := quickLayout(t, map[string]string{"callgate.yaml": "server: {" + anyPort + "}\n", "limits.yaml": "{}\n", "tools/rude.yaml": tools.String()})
	g := serveGate(t, config)
	g.client.Timeout = 2 * time.Minute // of which a machine that is busy may need some
	turns := make(chan struct{}, 8)
	var asking sync.WaitGroup
	for name, c := range cases {
		for _, effect := range []string{"once", "read"} {
			asking.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				answered, want := strings.CutSuffix(c.code, "!")
				code := answered
				if !want && effect == "once" {
					code = "outcome_unknown"
				}
				got := g.callRetrying(t, fmt.Sprintf(`{"tool":{"name":"%s.%s","arguments":{}}}`, name, effect))
				if got.code() != code {
					t.Errorf("%s, %s: %d %s, want %s", name, effect, got.status, got.body, code)
				}
				if strings.Contains(got.body, "SECRET") || isResult(got) {
					t.Errorf("%s, %s: the model reads %s", name, effect, got.body)
				}
			})
		}
	}
	asking.Wait()
	for name := range cases {
		r.mu.Lock()
		once, read := r.hits[name+"/once"], r.hits[name+"/read"]
		r.mu.Unlock()
		if once != 1 || read < 1 || read > 3 {
			t.Errorf("%s: what acts once was asked %d times, what reads %d times", name, once, read)
		}
	}
	peak := g.memory(t, "VmHWM")
	if peak > 512<<20 {
		t.Errorf("it has taken %s", mebibytes(peak))
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(g.stderr.String(), "SECRET") {
		t.Errorf("what a tool wrote is in the log: %s", g.stderr.String())
	}
	if n := len(readLedger(t, data).outcomes); n != 2*len(cases) {
		t.Errorf("%d calls have outcomes, want %d", n, 2*len(cases))
	}
	t.Logf("%d ways to answer badly, for two effects; peak memory %s", len(cases), mebibytes(peak))
}
