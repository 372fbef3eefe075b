package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// TestKilledWhileItAsks kills a gateway between any two steps of an approval, each time at the
// exact point, on a file and on Redis. The next process has the approval as it was written, and the
// call runs once by it, or not at all: what was dispatched when the process died is not known.
func TestKilledWhileItAsks(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) { killedWhileItAsks(t, "") })
	t.Run("redis", func(t *testing.T) {
		redis := newRedis(t)
		redis.start(t)
		killedWhileItAsks(t, "redis: {url: \"redis://"+redis.address()+"\"}\nstore: {kind: redis}\n")
	})
}

// killing is a point at which a gateway is killed, and what the next process must find.
type killing struct {
	point string
	kills string // the request: ask, vote or resume
	state string // of the approval then; empty: there is none
}

func killedWhileItAsks(t *testing.T, store string) {
	a := askersConfig(t, 1, store, "")
	last, before := 0, func() {}
	for _, k := range []killing{
		{"before event", "ask", ""}, {"after event", "ask", ""}, {"before ask", "ask", ""}, {"after ask", "ask", "waiting"},
		{"before vote", "vote", "waiting"}, {"after vote", "vote", "approved"},
		{"before decision", "resume", "approved"}, {"after decision", "resume", "approved"},
		{"before dispatch", "resume", "approved"}, {"after dispatch", "resume", "used"},
	} {
		n, id := a.killAt(t, last+1, k, before)
		last, before = n, func() { a.goesOn(t, k, n, id) }
	}
	g := a.serve(t, 0, somewhatLong())
	a.ready(t)
	before()
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	a.ledger(t)
}

// goesOn holds a process to know what the one before it, which was killed, has written of an
// approval, and takes the call to its end. id is that of the call, or empty.
func (a *askers) goesOn(t *testing.T, k killing, n int, id string) {
	t.Helper()
	if got := a.stateOf(t, n, id); got != k.state {
		t.Errorf("%s: the approval is %q, want %q", k.point, got, k.state)
	}
	if k.state == "" || k.state == "waiting" {
		again := a.opened(t, 0, "once", n)
		if id != "" && again != id {
			t.Errorf("%s: the same call has asked for %s, and for %s now", k.point, id, again)
		}
		id = again
	}
	if k.state != "used" {
		if r := a.vote(t, 0, "ada", id, "yes"); r.status != http.StatusOK {
			t.Errorf("%s: the vote: %d %s", k.point, r.status, r.body)
		}
	}
	r := a.resumed(t, n, id)
	if again := a.resumed(t, n, id); again.header.Get("Callgate-Call-Id") != r.header.Get("Callgate-Call-Id") || again.code() != r.code() {
		t.Errorf("%s: taken up again: %d %s", k.point, again.status, again.body)
	}
	lost := k.state == "used" // what was dispatched when the process died is not known
	if hits := a.tool.of(n); lost && (hits != 0 || r.code() != "outcome_unknown") || !lost && (hits != 1 || !isResult(r)) {
		t.Errorf("%s: it reached its tool %d times: %d %s", k.point, hits, r.status, r.body)
	}
	if other := a.opened(t, 0, "once", n); other == id { // a yes is for one call
		t.Errorf("%s: the same call does not ask anew", k.point)
	}
}

// killAt starts a gateway, has it do something, and then die of a request at a point. It returns the
// number of the call, at least n, and its id, which is empty where the gateway did not say it. On a
// busy machine a request may be refused before it gets that far: then it takes another call, and
// another process.
func (a *askers) killAt(t *testing.T, n int, k killing, before func()) (int, string) {
	t.Helper()
	for most := n + 5; n < most; n++ {
		g := a.serve(t, 0, failAt+"=kill "+k.point, somewhatLong())
		a.ready(t)
		before()
		before = func() {}
		id, who, path, body := "", appOf(n), "/v1/calls", askedCall("once", n)
		if k.kills != "ask" {
			id = a.opened(t, 0, "once", n)
		}
		switch k.kills {
		case "vote":
			who, path, body = "ada", "/v1/approvals/"+id, fmt.Sprintf(`{"vote":"yes","digest":%q}`, a.show(t, 0, id).Digest)
		case "resume":
			a.vote(t, 0, "ada", id, "yes")
			path, body = "/v1/calls/"+id+"/resume", ""
		}
		g.arm(t, syscall.SIGUSR1)
		r, err := a.try(0, who, http.MethodPost, path, body)
		if err != nil {
			g.killedByItself(t)
			return n, id
		}
		t.Logf("%s: it lives: %d %s", k.point, r.status, r.body)
		if err := g.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-g.ended
	}
	t.Fatalf("%s: no process died of it", k.point)
	return 0, ""
}

// stateOf is the state of an approval, or, without its id, of that of a call with a number which has
// not run; empty: there is none.
func (a *askers) stateOf(t *testing.T, n int, id string) string {
	t.Helper()
	if id != "" {
		return a.show(t, 0, id).State
	}
	r := a.ask(t, 0, "ada", http.MethodGet, "/v1/approvals?limit=200", "")
	var list struct {
		Approvals []struct {
			State     string
			Arguments json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(r.body), &list); err != nil || r.status != http.StatusOK {
		t.Fatalf("%d %s", r.status, r.body)
	}
	state := ""
	for _, one := range list.Approvals {
		if strings.Contains(string(one.Arguments), fmt.Sprintf(`"n":%d}`, n)) {
			state = one.State
		}
	}
	return state
}

// resumed takes a call up until it has ended.
func (a *askers) resumed(t *testing.T, n int, id string) reply {
	t.Helper()
	var r reply
	eventually(t, "the call has ended", func() bool {
		r = a.ask(t, 0, appOf(n), http.MethodPost, "/v1/calls/"+id+"/resume", "")
		return r.status != http.StatusAccepted
	})
	return r
}
