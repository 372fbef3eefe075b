package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// metric is a value of the gateway's metrics, by its whole name.
func (g *gate) metric(t testing.TB, name string) string {
	t.Helper()
	for line := range strings.Lines(g.askAdmin(t, "/metrics").body) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// TestToolGoesAwayAndReturns: calls of a tool whose server is away are refused
// without asking it, across a reload; operators are told once; and calls pass again
// when it is back.
func TestToolGoesAwayAndReturns(t *testing.T) {
	t.Parallel()
	tool := newSteady(0)
	var away atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		tool.ServeHTTP(w, r)
	}))
	defer server.Close()
	config, data := steadyConfig(t, server.URL, "")
	g := serveGate(t, config)
	if r := g.call(t, use("steady", 0)); !isResult(r) || g.metric(t, "callgate_breakers_open") != "0" {
		t.Fatalf("at first: %d %s", r.status, r.body)
	}
	away.Store(true)
	unknown := 0
	eventually(t, "the breaker opens", func() bool {
		r := g.call(t, use("steady", 1))
		switch r.code() {
		case "outcome_unknown":
			unknown++
		case "tool_unavailable":
			return r.status == 502
		default:
			t.Errorf("while it is away: %d %s", r.status, r.body)
		}
		return false
	})
	if unknown != 10 {
		t.Errorf("the breaker opened after %d calls, want 10", unknown)
	}
	// A new configuration with the same tool does not ask it anew.
	limits := filepath.Join(filepath.Dir(config), "limits.yaml")
	if err := os.WriteFile(limits, []byte("default: {concurrency: 99}\n# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the configuration is reloaded", func() bool {
		return strings.Contains(g.stderr.String(), `"configuration reloaded","files":["`+limits+`"]`)
	})
	if got := g.metric(t, "callgate_breakers_open"); got != "1" {
		t.Errorf("%s breakers are open", got)
	}
	if r := g.call(t, use("look", 1)); r.code() != "tool_unavailable" { // of its own, closed
		t.Errorf("another tool of the same server: %d %s", r.status, r.body)
	}
	away.Store(false)
	eventually(t, "the tool is asked again", func() bool { return isResult(g.call(t, use("steady", 2))) })
	if got := g.metric(t, "callgate_breakers_open"); got != "0" {
		t.Errorf("%s breakers are open", got)
	}
	for event, want := range map[string]string{"opened": "1", "closed": "1"} {
		if got := g.metric(t, `callgate_breaker_events_total{event="`+event+`"}`); got != want {
			t.Errorf("%s: %q, want %q", event, got, want)
		}
	}
	if refused, err := strconv.Atoi(g.metric(t, `callgate_breaker_events_total{event="refused"}`)); err != nil || refused < 1 {
		t.Errorf("%d refused: %v", refused, err)
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	log := g.stderr.String() // whole, now that the process has ended
	for _, line := range []string{`"msg":"circuit breaker opened: the tool does not answer, its calls are refused","tool":"steady","version":"0.0.0"`, `"msg":"circuit breaker closed: the tool answers again","tool":"steady"`} {
		if n := strings.Count(log, line); n != 1 {
			t.Errorf("the log has %s %d times", line, n)
		}
	}
	readLedger(t, data)
}

// TestFewDescriptors: a gateway that has no descriptor left refuses, does not hold
// it against the tools, and is itself again when there are some.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	onLinux(t)
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Skip("skipped: there is no prlimit, which changes a limit of another process")
	}
	tool := newSteady(0)
	server := httptest.NewServer(tool)
	defer server.Close()
	config, data := steadyConfig(t, server.URL, "")
	g := serveGate(t, config)
	if r := g.call(t, use("steady", 0)); !isResult(r) { // its connection stays
		t.Fatalf("at first: %d %s", r.status, r.body)
	}
	most := g.descriptors(t) + 10
	if out, err := exec.Command(prlimit, "--pid", strconv.Itoa(g.cmd.Process.Pid), "--nofile="+strconv.Itoa(most)).CombinedOutput(); err != nil {
		t.Skipf("skipped: prlimit: %v: %s", err, out)
	}
	var conns []net.Conn
	for range 100 {
		c, err := net.DialTimeout("tcp", g.listen, time.Second)
		if err != nil {
			break
		}
		conns = append(conns, c)
	}
	eventually(t, "no descriptor is left", func() bool { return g.descriptors(t) >= most })
	for range 15 {
		// A call that acts once has a connection of its own to the tool.
		r, err := g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", use("steady", 1), "Content-Type", "text/plain")
		if err != nil || isResult(r) {
			continue // a descriptor came free, or the connection was closed
		}
		if r.code() != "tool_unavailable" {
			t.Errorf("without descriptors: %d %s", r.status, r.body)
		}
	}
	for _, c := range conns {
		c.Close()
	}
	eventually(t, "calls pass again", func() bool {
		r, err := g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", use("steady", 2), "Content-Type", "text/plain")
		return err == nil && isResult(r)
	})
	if got := g.metric(t, `callgate_breaker_events_total{event="opened"}`); got != "" {
		t.Errorf("%s breakers opened for a lack that was the gateway's own", got)
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	readLedger(t, data)
	for id, n := range tool.hitCounts() {
		if n != 1 {
			t.Errorf("the call %s reached the tool %d times", id, n)
		}
	}
}
