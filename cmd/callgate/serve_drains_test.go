package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
)

// drainClients send calls, one after the other, until nobody takes them.
const drainClients = 12

// drained is what clients saw of one gateway that was told to end.
type drained struct {
	mu       sync.Mutex
	answered map[string]string // call ids of results, by request id
	broken   map[string]error  // requests whose connection broke, and how
	refused  int               // connections that were not taken
	other    []string          // any other answer
}

// TestDrainsUnderLoad sends SIGTERM to a gateway under load, again and again, with
// one data folder. Each call that was accepted has been answered and has its one
// outcome; a request without an answer was never looked at.
// CALLGATE_DRAINS says how often.
func TestDrainsUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := 3
	if text := os.Getenv("CALLGATE_DRAINS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("CALLGATE_DRAINS: found %q; expected a number of rounds", text)
		}
		rounds = n
	}
	tool := newSteady(15 * time.Millisecond)
	server := httptest.NewServer(tool)
	defer server.Close()
	config, data := steadyConfig(t, server.URL, ", shutdown_timeout: 20s")
	all := drained{answered: map[string]string{}, broken: map[string]error{}}
	var took latencies
	for round := range rounds {
		g := serveGate(t, config, usualDrain)
		d, ended := drainOnce(t, g, round)
		took.add(ended)
		if code := g.code(t); code != exitAccepted {
			t.Errorf("round %d: exit code %d", round, code)
		}
		for id, call := range d.answered {
			all.answered[id] = call
		}
		for id, err := range d.broken {
			all.broken[id] = err
		}
		all.refused += d.refused
		all.other = append(all.other, d.other...)
	}

	l := readLedger(t, data)
	lost, unanswered, unknown := 0, 0, 0
	for request, call := range l.decided {
		switch {
		case all.broken[request] != nil:
			lost++
			t.Errorf("the call of request %s was accepted, and its connection broke: %v", request, all.broken[request])
		case all.answered[request] != call:
			unanswered++
			t.Errorf("the call %s of request %s was accepted, and answered with %q", call, request, all.answered[request])
		}
		if o := l.outcomes[call]; len(o) != 1 || o[0] != audit.Result {
			unknown++
			t.Errorf("the call %s was answered with a result, and the log says %v", call, o)
		}
	}
	for request, call := range all.answered {
		if l.decided[request] != call {
			t.Errorf("the answer %s to request %s is not in the log", call, request)
		}
	}
	hits := tool.hitCounts()
	twice := 0
	for id, n := range hits {
		if n != 1 {
			twice++
			t.Errorf("the call %s reached the tool %d times", id, n)
		}
	}
	if len(hits) != len(l.decided) {
		t.Errorf("%d calls reached the tool, and %d were accepted", len(hits), len(l.decided))
	}
	for _, text := range all.other {
		t.Errorf("an answer that is no result: %s", text)
	}
	t.Logf("%d rounds: %d calls accepted, %d answered; in flight lost %d, unanswered %d, without their outcome %d, dispatched twice %d",
		rounds, len(l.decided), len(all.answered), lost, unanswered, unknown, twice)
	t.Logf("turned away, and not looked at: %d connections not taken, %d broken before their request was read", all.refused, len(all.broken))
	t.Logf("from the signal to the end: p50 %v, longest %v", took.at(0.5), took.at(1))
}

// drainOnce loads a gateway, tells it to end at some moment, and returns what the
// clients saw, and how long the end took.
func drainOnce(t *testing.T, g *gate, round int) (*drained, time.Duration) {
	t.Helper()
	d := &drained{answered: map[string]string{}, broken: map[string]error{}}
	var clients sync.WaitGroup
	for n := range drainClients {
		clients.Go(func() {
			// Half of them keep their connections, half open one for each call.
			transport := &http.Transport{DisableKeepAlives: n%2 == 0}
			defer transport.CloseIdleConnections()
			c := &http.Client{Timeout: patience, Transport: transport}
			for i := 0; d.send(c, g, fmt.Sprintf("%d-%d-%d", round, n, i)); i++ {
			}
		})
	}
	eventually(t, "calls are under way", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.answered) > 0
	})
	time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
	before := time.Now()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	clients.Wait()
	select {
	case <-g.ended:
	case <-time.After(patience):
		t.Fatalf("round %d: the gateway does not end", round)
	}
	return d, time.Since(before)
}

// send sends one call, and tells whether there may be another one.
func (d *drained) send(c *http.Client, g *gate, id string) (more bool) {
	on := gate{client: c}
	r, err := on.try(http.MethodPost, "http://"+g.listen+"/v1/calls", use("steady", 1), "Content-Type", "text/plain", "Callgate-Id", id)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err != nil && errors.Is(err, syscall.ECONNREFUSED):
		d.refused++
		return false
	case err != nil:
		d.broken[id] = err
	case isResult(r):
		d.answered[id] = r.header.Get("Callgate-Call-Id")
	default:
		d.other = append(d.other, fmt.Sprintf("%d %s", r.status, r.body))
	}
	return true
}
