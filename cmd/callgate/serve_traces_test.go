package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
)

// collector is a stub that takes traces.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	got   []byte
	token []string
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.got, c.token = append(c.got, body...), append(c.token, r.Header.Get("X-Token"))
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

// holds tells whether the collector was given all of some words.
func (c *collector) holds(words ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range words {
		if !bytes.Contains(c.got, []byte(w)) {
			return false
		}
	}
	return true
}

// TestTraces follows a call from its caller's trace to a collector, and to
// another one once the configuration names that.
func TestTraces(t *testing.T) {
	t.Parallel()
	first, second := newCollector(t), newCollector(t)
	file := func(c *collector) string {
		return fmt.Sprintf("server: {%s}\ntelemetry: {traces: {endpoint: %q, headers: {X-Token: \"env:TRACE_TOKEN\"}}}\n", anyPort, c.URL)
	}
	w := newWorkshop(t)
	config, data := layout(t, map[string]string{
		"callgate.yaml":   file(first),
		"tools/work.yaml": w.tools(),
	})
	const secret = "canary-trace-token"
	g := serveGate(t, config, "TRACE_TOKEN="+secret)
	trace := func(id string) string {
		raw, err := hex.DecodeString(id)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	// Long enough that no digest and no id has the same digits by chance.
	const firstArgument, otherArguments = 700_123_456_789, 711_234_567_000
	const one, two = "0af7651916cd43dd8448eb211c80319c", "1bf7651916cd43dd8448eb211c80319c"
	if r := g.call(t, use("hit", firstArgument), "Traceparent", "00-"+one+"-b7ad6b7169203331-01"); r.status != http.StatusOK {
		t.Fatalf("%d %s", r.status, r.body)
	}
	eventually(t, "the call is traced", func() bool { return first.holds(trace(one), "execute_tool hit", "gen_ai.tool.name") })

	if err := os.WriteFile(config, []byte(file(second)+"data_dir: "+data+"\n# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := otherArguments
	eventually(t, "the other collector is told", func() bool {
		n++
		g.call(t, use("hit", n), "Traceparent", "00-"+two+"-b7ad6b7169203331-01")
		return second.holds(trace(two))
	})
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("it ended with %d", code)
	}
	for _, c := range []*collector{first, second} {
		if c.holds(fmt.Sprint(firstArgument)) || c.holds(fmt.Sprint(otherArguments)[:9]) {
			t.Error("an argument stands in a trace")
		}
		for _, token := range c.token {
			if token != secret {
				t.Errorf("an export came with the token %q", token)
			}
		}
	}
	unseen(t, g, data, secret)
}
