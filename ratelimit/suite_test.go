package ratelimit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/redistest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// limiters are the backends: every test of the contract runs on each.
func limiters() map[string]func(testing.TB, func() time.Time) ratelimit.Limiter {
	all := map[string]func(testing.TB, func() time.Time) ratelimit.Limiter{
		"local": func(_ testing.TB, clock func() time.Time) ratelimit.Limiter { return ratelimit.NewLocal(clock) },
		"redis": redisBackend,
	}
	if redistest.Installed() {
		all["cluster"] = clusterBackend
	}
	return all
}

// each runs a test on every backend, each with a clock that stands until it
// is moved.
func each(t *testing.T, test func(t *testing.T, l ratelimit.Limiter, c *clock)) {
	t.Helper()
	for name, open := range limiters() {
		t.Run(name, func(t *testing.T) {
			c := &clock{now: epoch}
			test(t, open(t, c.Now), c)
		})
	}
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) moveMS(ms int64) { c.move(time.Duration(ms) * time.Millisecond) }

func rateOf(s string) ratelimit.Rate {
	r, err := ratelimit.ParseRate(s)
	if err != nil {
		panic(err)
	}
	return r
}

func budget(rate string, burst int) ratelimit.Budget {
	return ratelimit.Budget{Rate: rateOf(rate), Burst: burst}
}

var alpha = ratelimit.Key{Agent: "Analyst", Tool: "web.search", Workspace: "acme", Project: "alpha"}

func keyOf(agent, tool, project string) ratelimit.Key {
	return ratelimit.Key{Agent: agent, Tool: tool, Workspace: "acme", Project: project}
}

func acme(project string) ratelimit.Project {
	return ratelimit.Project{Workspace: "acme", Name: project}
}

// refused demands a refusal with this code and returns it.
func refused(t testing.TB, err error, code refusal.Code) *refusal.Error {
	t.Helper()
	var e *refusal.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a refusal %s", err, code)
	}
	if e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return e
}

func admitted(t testing.TB, l ratelimit.Limiter, limits *ratelimit.Limits, key ratelimit.Key) ratelimit.Lease {
	t.Helper()
	lease, err := l.Take(context.Background(), limits, key)
	if err != nil {
		t.Fatalf("%+v: got %v, want it admitted", key, err)
	}
	return lease
}

// drain takes until it is refused, at most max times, and returns how many
// were admitted.
func drain(l ratelimit.Limiter, limits *ratelimit.Limits, key ratelimit.Key, max int) int {
	for n := range max {
		lease, err := l.Take(context.Background(), limits, key)
		if err != nil {
			return n
		}
		lease.Release()
	}
	return max
}
