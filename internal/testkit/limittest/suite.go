// Package limittest is the suite that every ratelimit.Limiter passes, with the helpers
// that its packages share in tests.
package limittest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// Backends open a limiter that follows a clock, by the name of the backend. Each test
// of the suite runs on each.
type Backends map[string]func(testing.TB, func() time.Time) ratelimit.Limiter

// each runs a test on every backend, each with a clock that stands until it
// is moved.
func (bs Backends) each(t *testing.T, test func(t *testing.T, l ratelimit.Limiter, c *Clock)) {
	t.Helper()
	for name, open := range bs {
		t.Run(name, func(t *testing.T) {
			c := NewClock(Epoch)
			test(t, open(t, c.Now), c)
		})
	}
}

// Epoch is where the clocks of the suite begin.
var Epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Clock is a clock that a test moves. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at t.
func NewClock(t time.Time) *Clock { return &Clock{now: t} }

// Set moves the clock to t.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Move moves the clock by d, which may be negative.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// MoveMS moves the clock by milliseconds.
func (c *Clock) MoveMS(ms int64) { c.Move(time.Duration(ms) * time.Millisecond) }

// RateOf returns the rate of a text as limits have it, such as 5/s; it panics for another.
func RateOf(s string) ratelimit.Rate {
	r, err := ratelimit.ParseRate(s)
	if err != nil {
		panic(err)
	}
	return r
}

// Budget returns the budget of a rate as limits have it, and a burst in tokens.
func Budget(rate string, burst int) ratelimit.Budget {
	return ratelimit.Budget{Rate: RateOf(rate), Burst: burst}
}

// Alpha is the key of a call of Analyst in the project acme/alpha.
var Alpha = ratelimit.Key{Agent: "Analyst", Tool: "web.search", Workspace: "acme", Project: "alpha"}

// KeyOf returns the key of a call in the workspace acme.
func KeyOf(agent, tool, project string) ratelimit.Key {
	return ratelimit.Key{Agent: agent, Tool: tool, Workspace: "acme", Project: project}
}

// Acme returns a project of the workspace acme.
func Acme(project string) ratelimit.Project {
	return ratelimit.Project{Workspace: "acme", Name: project}
}

// Refused checks that err is a refusal of a code, and returns it.
func Refused(t testing.TB, err error, code refusal.Code) *refusal.Error {
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

// Admitted takes for a call, and fails the test if it is refused.
func Admitted(t testing.TB, l ratelimit.Limiter, limits *ratelimit.Limits, key ratelimit.Key) ratelimit.Lease {
	t.Helper()
	lease, err := l.Take(context.Background(), limits, key)
	if err != nil {
		t.Fatalf("%+v: got %v, want it admitted", key, err)
	}
	return lease
}

// Drain takes until it is refused, at most max times, and returns how many
// were admitted.
func Drain(l ratelimit.Limiter, limits *ratelimit.Limits, key ratelimit.Key, max int) int {
	for n := range max {
		lease, err := l.Take(context.Background(), limits, key)
		if err != nil {
			return n
		}
		lease.Release()
	}
	return max
}

// Roomy never refuses within a benchmark: what is measured is admission.
func Roomy() ratelimit.Budget { return Budget("1000000/s", 1_000_000) }
