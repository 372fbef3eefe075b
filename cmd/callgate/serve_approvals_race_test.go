package main

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
)

// TestApprovalRacers has eight racers take up each call that people have approved, at two gateways
// on one Redis, one of which is killed in the middle, nine times where there are many: each approval is used by one call, which has
// one outcome, and acts at most once. CALLGATE_TEST_APPROVALS says how many there are.
func TestApprovalRacers(t *testing.T) {
	t.Parallel()
	calls := rounds(t, "CALLGATE_TEST_APPROVALS", 40)
	const racers, workers = 8, 4
	redis := newRedis(t)
	redis.start(t)
	a := askersConfig(t, 2, "redis: {url: \"redis://"+redis.address()+"\"}\nstore: {kind: redis, replicas: 2}\n", "")
	for at := range a.gates {
		a.serve(t, at, somewhatLong())
	}
	a.ready(t)
	var mu sync.Mutex
	ran, lost := map[int]string{}, 0
	race := func(n int) {
		id := a.opened(t, rand.IntN(2), "once", n)
		if id == "" {
			return
		}
		if r := a.vote(t, rand.IntN(2), "ada", id, "yes"); r.status != http.StatusOK {
			t.Errorf("the vote on %d: %d %s", n, r.status, r.body)
		}
		said := map[string]bool{}
		var all sync.WaitGroup
		for racer := range racers {
			all.Go(func() {
				var r reply
				for deadline := time.Now().Add(recoveryTimeout); ; time.Sleep(time.Duration(10+rand.IntN(40)) * time.Millisecond) {
					r = a.ask(t, racer, appOf(n), http.MethodPost, "/v1/calls/"+id+"/resume", "")
					if r.status != http.StatusAccepted || time.Now().After(deadline) {
						break
					}
				}
				if !isResult(r) && r.code() != "outcome_unknown" {
					t.Errorf("call %d: %d %s", n, r.status, r.body)
				}
				mu.Lock()
				defer mu.Unlock()
				said[r.header.Get("Callgate-Call-Id")] = true
				if racer == 0 && !isResult(r) {
					lost++
				}
			})
		}
		all.Wait()
		s := a.show(t, rand.IntN(2), id)
		if s.State != "used" || len(said) != 1 || !said[s.Ran] {
			t.Errorf("call %d: the approval is %+v, and the racers were answered by %v", n, s, said)
		}
		mu.Lock()
		defer mu.Unlock()
		ran[n] = s.Ran
		if len(ran)%1000 == 0 {
			t.Logf("%d of %d", len(ran), calls)
		}
	}
	var next atomic.Int64
	kill := make(chan bool, calls)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for n := int(next.Add(1)); n <= calls; n = int(next.Add(1)) {
				if n%max(calls/10, 20) == 0 && n < calls {
					kill <- true
				}
				race(n)
			}
		})
	}
	kills := 0
	go func() { running.Wait(); close(kill) }()
	for range kill {
		kills++
		killed := a.gates[0].Load()
		if err := killed.cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-killed.ended
		a.serve(t, 0, somewhatLong())
	}
	for at := range a.gates {
		if code := a.gates[at].Load().stop(t); code != exitAccepted {
			t.Errorf("exit code %d", code)
		}
	}
	l := a.ledger(t)
	dispatched, results, unknown := map[string]bool{}, 0, 0
	for n, id := range ran {
		dispatched[id] = true
		hits := a.tool.of(n)
		switch outcomes := l.outcomes[id]; {
		case len(outcomes) != 1:
		case outcomes[0] == audit.Result && hits == 1:
			results++
		case outcomes[0] == audit.Unknown && hits <= 1:
			unknown++
		default:
			t.Errorf("call %d reached its tool %d times, and has the outcome %s", n, hits, outcomes[0])
		}
	}
	for id := range a.tool.calls {
		if !dispatched[id] {
			t.Errorf("%s reached the tool, and has used no approval", id)
		}
	}
	// A gateway that ends, or gives up on the store, behind the record has asked nobody: its caller sends the call again.
	if l.requested < calls || l.requested > calls+int(a.again.Load()) || len(dispatched) != calls || results+unknown != calls || unknown != lost {
		t.Errorf("%d approvals: asked for %d times, %d dispatches, %d results, %d outcomes unknown, %d callers told so",
			calls, l.requested, len(dispatched), results, unknown, lost)
	}
	t.Logf("%d approvals, %d racers over 2 gateways, one of them killed %d times: %d dispatches, %d outcomes: %d results, %d unknown; %d calls passed and were refused at their dispatch",
		calls, racers, kills, len(dispatched), results+unknown, results, unknown, len(l.passed)-len(dispatched))
}
