package redislimit_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/internal/testkit/lossy"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/redislimit"
	"github.com/callgate/callgate/refusal"
)

// While Redis is away, replicas grant the limit together, and nobody waits.
func TestTheLocalShare(t *testing.T) {
	s := redistest.Start(t)
	clk := limittest.NewClock(limittest.Epoch)
	o := optionsFor(s.Address())
	o.Clock = clk.Now
	r, warnings, err := redislimit.NewWithSlack(context.Background(), o, slack())
	opened(t, r, warnings, err)
	limits := local(limittest.Budget("9/s", 30), 3)
	limits.Default.Concurrency = new(7)
	first := limittest.Admitted(t, r, limits, limittest.Alpha)
	s.Kill()
	_, err = timed(t, r, limits)
	// 3/s, from empty
	if e := limittest.Refused(t, err, refusal.RateLimited); e.RetryAfterMS != 334 || !strings.Contains(e.Message, "which begins empty, has no room for more calls now: wait 334 ms") {
		t.Errorf("%s wait %d ms, want 334", e.Message, e.RetryAfterMS)
	}
	if e := limittest.Refused(t, r.Caller(context.Background(), withCaller(limits), "c"), refusal.CallerRateLimited); !strings.Contains(e.Message, "which begins empty, has no room for more requests now: wait ") {
		t.Errorf("a caller's first request: %s", e.Message)
	}
	clk.MoveMS(333)
	_, err = timed(t, r, limits)
	limittest.Refused(t, err, refusal.RateLimited)
	clk.MoveMS(1)
	limittest.Admitted(t, r, limits, limittest.Alpha).Release()
	clk.Move(time.Hour)
	// A third of 7 slots is 2, and the call from before holds one of them.
	second := limittest.Admitted(t, r, limits, limittest.Alpha)
	_, err = timed(t, r, limits)
	limittest.Refused(t, err, refusal.ConcurrencyLimited)
	first.Release()
	second.Release()
	if n := limittest.Drain(r, limits, limittest.Alpha, 50); n != 9 {
		t.Errorf("%d admitted, want the 9 that are left of a third of the burst", n)
	}
	// Fewer slots than replicas: none of them may be granted twice.
	limits.Default.Concurrency = new(2)
	clk.Move(time.Hour)
	_, err = timed(t, r, limits)
	limittest.Refused(t, err, refusal.ConcurrencyLimited)
	limits.Replicas = 0
	_, err = timed(t, r, limits)
	limittest.Refused(t, err, refusal.LimiterUnavailable)
	limits.Replicas, limits.OnStoreLoss = 3, ratelimit.LossRefuse
	_, err = timed(t, r, limits)
	limittest.Refused(t, err, refusal.LimiterUnavailable)
	// The request may only ask about a call that has run.
	if e := limittest.Refused(t, r.Caller(context.Background(), withCaller(limits), "c"), refusal.LimiterUnavailable); strings.Contains(e.Message, "executed") {
		t.Errorf("a caller's request: %s", e.Message)
	}
}

func withCaller(l *ratelimit.Limits) *ratelimit.Limits {
	c := *l
	b := limittest.Budget("1/s", 1)
	c.Caller = &b
	return &c
}

// Calls granted while Redis was unreachable are debited from the shared budget.
func TestTheShareIsSettled(t *testing.T) {
	s := redistest.Start(t)
	clk := limittest.NewClock(time.Now())
	p := lossy.New(t, s.Address())
	o := optionsFor(p.Address())
	o.Clock = clk.Now
	r, warnings, err := redislimit.NewWithSlack(context.Background(), o, slack())
	opened(t, r, warnings, err)
	limits := local(limittest.Budget("1/h", 10), 1)
	limittest.Admitted(t, r, limits, limittest.Alpha)
	p.Set(func(h *lossy.Faults) { h.DropRequests = true })
	_, err = timed(t, r, limits)
	limittest.Refused(t, err, refusal.RateLimited)
	clk.Move(4 * time.Hour) // for the share only: the clock of Redis stands
	if n := limittest.Drain(r, limits, limittest.Alpha, 20); n != 4 {
		t.Fatalf("%d admitted in 4 hours at 1/h, want 4", n)
	}
	p.Clear()
	waitFor(t, r, true)
	if n := limittest.Drain(r, limits, limittest.Alpha, 20); n != 5 {
		t.Errorf("%d admitted, want 10 less 1 less 4", n)
	}
}

// A gateway that starts while Redis is away judges by its share, and finds
// Redis when it comes.
func TestStartsWithoutRedis(t *testing.T) {
	s := redistest.Start(t)
	s.Kill()
	var changes atomic.Int64
	o := optionsFor(s.Address())
	o.OnChange = func(shared bool, cause error) {
		if shared == (cause != nil) {
			t.Errorf("shared %v, cause %v", shared, cause)
		}
		changes.Add(1)
	}
	r, warnings, err := redislimit.NewWithSlack(context.Background(), o, slack())
	if err != nil || len(warnings) != 1 {
		t.Fatalf("got %v, %q, want a warning", err, warnings)
	}
	defer r.Close()
	limits := local(limittest.Budget("1/h", 5), 1)
	_, err = timed(t, r, limits)
	limittest.Refused(t, err, refusal.RateLimited)
	limits.OnStoreLoss = ratelimit.LossRefuse
	_, err = timed(t, r, limits)
	limittest.Refused(t, err, refusal.LimiterUnavailable)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, r, true)
	if n := limittest.Drain(r, limits, limittest.Alpha, 10); n != 5 {
		t.Errorf("%d admitted, want 5", n)
	}
	_ = r.Close()
	if changes.Load() != 2 {
		t.Errorf("%d changes told, want 2", changes.Load())
	}
	_, err = r.Take(context.Background(), limits, limittest.Alpha)
	limittest.Refused(t, err, refusal.LimiterUnavailable)
}
