package main

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/detector"
)

// The gateway under overload answers so many calls of one caller at a time, which is half
// of its slots, and each takes so long; that is its capacity.
const (
	overloadSlots = 8
	overloadTakes = 40 * time.Millisecond
	capacity      = overloadSlots * int(time.Second/overloadTakes)
)

// TestThreeTimesCapacity offers three times what the gateway can do: it answers what it can,
// refuses the rest at once, still lets calls be looked up and health be asked, and
// is itself again when it is over. CALLGATE_OVERLOAD says how long, and holds the
// figures to bounds that a machine with some other work keeps.
func TestThreeTimesCapacity(t *testing.T) {
	onLinux(t)
	run, measured := long(t, "CALLGATE_OVERLOAD", 3*time.Second)
	tool := newSteady(overloadTakes)
	server := httptest.NewServer(tool)
	defer server.Close()
	config, data := steadyConfig(t, server.URL, ", max_in_flight: "+strconv.Itoa(2*overloadSlots))
	g := serveGate(t, config)
	g.client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}

	var unloaded latencies
	var answered atomic.Int64 // calls that were answered with a result
	var last atomic.Pointer[string]
	call := func(n int) (reply, time.Duration) {
		before := time.Now()
		r := g.call(t, use("steady", n))
		took := time.Since(before)
		if isResult(r) {
			answered.Add(1)
			id := r.header.Get("Callgate-Call-Id")
			last.Store(&id)
		}
		return r, took
	}
	for n := range 50 {
		r, took := call(n)
		if !isResult(r) {
			t.Fatalf("unloaded: %d %s", r.status, r.body)
		}
		unloaded.add(took)
	}

	var accepted, shed, late, looked, healthy latencies
	beside := make(chan struct{})
	go func() {
		defer close(beside)
		// One at a time: more than the reserved lane holds would be refused rightly.
		for began := time.Now(); time.Since(began) < run; time.Sleep(20 * time.Millisecond) {
			before := time.Now()
			if r := g.ask(t, http.MethodGet, "/v1/calls/"+*last.Load(), ""); r.status != 200 {
				t.Errorf("a lookup: %d %s", r.status, r.body)
			}
			looked.add(time.Since(before))
			before = time.Now()
			if r := g.ask(t, http.MethodGet, "/healthz", ""); r.status != 200 {
				t.Errorf("health: %d %s", r.status, r.body)
			}
			healthy.add(time.Since(before))
		}
	}()
	offerAt(3*capacity, run, func(n int) {
		switch r, took := call(n); {
		case isResult(r):
			accepted.add(took)
		case r.status == 503 && r.code() == "overloaded" && r.header.Get("Retry-After") == "1":
			shed.add(took)
		case r.code() == "audit_unavailable": // the disk is busy with something else
			late.add(took)
		default:
			t.Errorf("under load: %d %s", r.status, r.body)
		}
	})
	ended := time.Now()
	<-beside
	// It is itself again when as many calls as it has slots are answered in a row; as
	// fast as before, where the machine has nothing else to do.
	recovery := time.Since(ended)
	for fast := 0; fast < overloadSlots; {
		if time.Since(ended) > patience {
			t.Fatal("it does not recover")
		}
		if r, took := call(0); isResult(r) && (!measured || took < 2*unloaded.at(0.99)) {
			fast++
		} else {
			fast, recovery = 0, time.Since(ended)
		}
	}
	peak := g.memory(t, "VmHWM")
	t.Logf("%v at 3 × %d calls a second, %d slots", run, capacity, overloadSlots)
	t.Logf("unloaded: %v", &unloaded)
	t.Logf("accepted: %v", &accepted)
	t.Logf("shed:     %v", &shed)
	t.Logf("the log was not written in time for %d", late.count())
	t.Logf("lookups:  %v", &looked)
	t.Logf("health:   %v", &healthy)
	t.Logf("accepted to unloaded: p50 × %.2f, p99 × %.2f", float64(accepted.at(0.5))/float64(unloaded.at(0.5)), float64(accepted.at(0.99))/float64(unloaded.at(0.99)))
	t.Logf("recovery: %v (%d calls in a row as fast as before); peak memory: %s", recovery.Round(time.Millisecond), overloadSlots, mebibytes(peak))

	if accepted.count() == 0 || shed.count() == 0 {
		t.Errorf("%d accepted and %d shed: this was no overload", accepted.count(), shed.count())
	}
	// The race detector takes more than the gateway, the more the longer requests wait for a busy machine.
	if peak > 256<<20 && !detector.On {
		t.Errorf("it has taken %s", mebibytes(peak))
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	// Requests that were shed were not read, let alone executed.
	readLedger(t, data)
	hits := tool.hitCounts()
	if int64(len(hits)) != answered.Load() {
		t.Errorf("%d calls reached the tool, and %d were answered", len(hits), answered.Load())
	}
	for id, n := range hits {
		if n != 1 {
			t.Errorf("the call %s reached the tool %d times", id, n)
		}
	}
	if !measured {
		return
	}
	for _, bound := range []struct {
		what      string
		got, most time.Duration
	}{
		{"shed, p50", shed.at(0.5), 10 * time.Millisecond},
		{"shed, p99", shed.at(0.99), 250 * time.Millisecond},
		{"accepted, p50", accepted.at(0.5), 2 * unloaded.at(0.5)},
		{"accepted, p99", accepted.at(0.99), 10 * unloaded.at(0.99)},
		{"lookups, p99", looked.at(0.99), 250 * time.Millisecond},
		{"recovery", recovery, 5 * time.Second},
	} {
		if bound.got > bound.most {
			t.Errorf("%s: %v, more than %v", bound.what, bound.got, bound.most)
		}
	}
	if least := int(0.5 * float64(capacity) * run.Seconds()); accepted.count() < least {
		t.Errorf("%d were accepted, fewer than half of what can be done (%d)", accepted.count(), least)
	}
}
