package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/callgate/callgate/audit"
)

// standing are approvals in each of their states, by the number of the call.
type standing struct {
	waiting, approved, used, denied string
	first                           int
}

// stand asks for four approvals, and takes each to its state.
func (a *askers) stand(t *testing.T, first int) standing {
	t.Helper()
	s := standing{first: first}
	for i, id := range []*string{&s.waiting, &s.approved, &s.used, &s.denied} {
		*id = a.opened(t, i, "once", first+i)
	}
	for _, id := range []string{s.approved, s.used} {
		a.vote(t, 0, "ada", id, "yes")
	}
	a.vote(t, 1, "bob", s.denied, "no")
	if r := a.resumed(t, first+2, s.used); !isResult(r) {
		t.Errorf("taken up: %d %s", r.status, r.body)
	}
	return s
}

// awaySaid holds every request that asks, votes, runs or reads to be refused for want of a store by
// both gateways, once they know that it is away.
func (a *askers) awaySaid(t *testing.T, when string, s standing, digest string, reads bool) {
	t.Helper()
	type request struct{ who, method, path, body string }
	requests := []request{
		{appOf(s.first + 4), http.MethodPost, "/v1/calls", askedCall("once", s.first+4)},
		{"ada", http.MethodPost, "/v1/approvals/" + s.waiting, fmt.Sprintf(`{"vote":"yes","digest":%q}`, digest)},
		{appOf(s.first + 1), http.MethodPost, "/v1/calls/" + s.approved + "/resume", ""},
		{appOf(s.first + 1), http.MethodPost, "/v1/calls", askedCall("once", s.first+1)},
	}
	if reads {
		requests = append(requests,
			request{appOf(s.first), http.MethodGet, "/v1/calls/" + s.waiting, ""},
			request{"ada", http.MethodGet, "/v1/approvals/" + s.waiting, ""},
			request{"ada", http.MethodGet, "/v1/approvals?state=waiting", ""})
	}
	for at := range a.gates {
		for _, r := range requests {
			got, err := a.try(at, r.who, r.method, r.path, r.body)
			if err != nil || got.status != http.StatusServiceUnavailable || got.code() != "store_unavailable" {
				t.Errorf("%s: %s %s of gateway %d: %d %s, %v", when, r.method, r.path, at, got.status, got.body, err)
			}
		}
	}
	for n, want := range map[int]int{s.first: 0, s.first + 1: 0, s.first + 2: 1, s.first + 3: 0, s.first + 4: 0} {
		if hits := a.tool.of(n); hits != want {
			t.Errorf("%s: call %d reached its tool %d times", when, n, hits)
		}
	}
}

// asBefore holds both gateways to know the approvals as they were, takes those up that
// may be, and holds each to have run once at most.
func (a *askers) asBefore(t *testing.T, when string, s standing) {
	t.Helper()
	for at := range a.gates {
		for id, want := range map[string]string{s.waiting: "waiting", s.approved: "approved", s.used: "used", s.denied: "denied"} {
			if got := a.show(t, at, id).State; got != want {
				t.Errorf("%s: gateway %d: an approval that was %s is %s", when, at, want, got)
			}
		}
	}
	if again := a.opened(t, 1, "once", s.first); again != s.waiting {
		t.Errorf("%s: the call that waits asks anew", when)
	}
	if r := a.vote(t, 0, "ada", s.waiting, "yes"); r.status != http.StatusOK {
		t.Errorf("%s: a vote: %d %s", when, r.status, r.body)
	}
	for i, id := range []string{s.waiting, s.approved, s.used} {
		// Redis may have been the last that had an answer which was handed over.
		gone := func(r reply) bool { return id == s.used && strings.Contains(r.body, "its answer is no longer kept") }
		if r := a.resumed(t, s.first+i, id); !isResult(r) && !gone(r) {
			t.Errorf("%s: taken up: %d %s", when, r.status, r.body)
		}
		if hits := a.tool.of(s.first + i); hits != 1 {
			t.Errorf("%s: call %d reached its tool %d times", when, s.first+i, hits)
		}
	}
	if r := a.resumed(t, s.first+3, s.denied); r.code() != "approval_denied" || a.tool.of(s.first+3) != 0 {
		t.Errorf("%s: a denied call: %d %s", when, r.status, r.body)
	}
}

// sharedAskers are two gateways on one Redis, which a line of the configuration names.
func sharedAskers(t *testing.T, redis, more string) *askers {
	t.Helper()
	a := askersConfig(t, 2, "redis: {"+redis+"}\nstore: {kind: redis, replicas: 2"+more+"}\n", "")
	for at := range a.gates {
		a.serve(t, at, somewhatLong())
	}
	a.ready(t)
	return a
}

// ended stops the gateways, and reads their logs: nothing ran that was not approved.
func (a *askers) ended(t *testing.T, results int) {
	t.Helper()
	for at := range a.gates {
		if code := a.gates[at].Load().stop(t); code != exitAccepted {
			t.Errorf("gateway %d: exit code %d", at, code)
		}
	}
	got := 0
	for _, outcomes := range a.ledger(t).outcomes {
		if len(outcomes) == 1 && outcomes[0] == audit.Result {
			got++
		}
	}
	if got != results {
		t.Errorf("%d results, want %d", got, results)
	}
}

// TestRedisGoesWhilePeopleAreAsked takes Redis away, leaves it no room, and empties it while calls
// wait for people: nobody is asked, nobody votes and nothing runs meanwhile, and afterwards every
// approval is as it was, with its votes.
func TestRedisGoesWhilePeopleAreAsked(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	redis.start(t)
	a := sharedAskers(t, at(redis.address()), "")
	first := 0
	harmed := func(name string, harm func(s standing, digest string)) {
		s := a.stand(t, first)
		first += 5
		harm(s, a.show(t, 0, s.waiting).Digest)
		a.ready(t)
		a.asBefore(t, name, s)
	}
	harmed("killed", func(s standing, digest string) {
		redis.kill(t)
		a.awaySaid(t, "without Redis", s, digest, true)
		redis.start(t)
	})
	harmed("full", func(s standing, digest string) {
		redis.ask(t, "CONFIG SET maxmemory 1")
		a.awaySaid(t, "without room", s, digest, false)
		redis.ask(t, "CONFIG SET maxmemory 0")
	})
	harmed("emptied", func(standing, string) { redis.ask(t, "FLUSHALL") })
	a.ended(t, 3*3)
}

// TestRedisFailsOverWhilePeopleAreAsked takes the replica away, without which nothing is confirmed,
// and then the master, which sentinels replace.
func TestRedisFailsOverWhilePeopleAreAsked(t *testing.T) {
	t.Parallel()
	pair := newPair(t)
	var sentinels []string
	for _, s := range pair.sentinels {
		sentinels = append(sentinels, strconv.Quote(s.address()))
	}
	a := sharedAskers(t, "sentinel: {master: "+pairName+", addresses: ["+strings.Join(sentinels, ", ")+"]}", ", min_redis_replicas: 1")
	s := a.stand(t, 0)
	pair.servers[0].kill(t)
	pair.failedOver(t, 1)
	pair.start(t, 0, 1)
	a.ready(t)
	a.asBefore(t, "after the failover", s)
	a.ended(t, 3)
}
