package ratelimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// A call that cannot be judged is refused, with a cause for the operator.
func TestFailsClosed(t *testing.T) {
	each(t, func(t *testing.T, l ratelimit.Limiter, _ *clock) { failsClosed(t, l) })
}

func failsClosed(t *testing.T, fine ratelimit.Limiter) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	var absent *ratelimit.Local
	b, noTokens := budget("1/s", 1), ratelimit.Budget{Rate: rateOf("1/s")}
	limits := onlyDefault(b)
	limits.Caller = &b
	slots := func(n int) *ratelimit.Limits {
		return &ratelimit.Limits{Caller: &noTokens, Default: ratelimit.Allowance{Concurrency: new(n)}}
	}
	with := func(b ratelimit.Budget) *ratelimit.Limits {
		l := onlyProject(b)
		l.Caller = &b
		return l
	}
	cases := map[string]struct {
		limiter ratelimit.Limiter
		ctx     context.Context
		limits  *ratelimit.Limits
		key     ratelimit.Key
		caller  string
	}{
		"no limiter":         {absent, context.Background(), limits, alpha, "c"},
		"zero limiter":       {&ratelimit.Local{}, context.Background(), limits, alpha, "c"},
		"no clock":           {ratelimit.NewLocal(nil), context.Background(), limits, alpha, "c"},
		"no context":         {fine, nil, limits, alpha, "c"},
		"context is done":    {fine, done, limits, alpha, "c"},
		"no limits":          {fine, context.Background(), nil, alpha, "c"},
		"no agent":           {fine, context.Background(), limits, keyOf("", "web.search", "alpha"), ""},
		"no tool":            {fine, context.Background(), limits, keyOf("Analyst", "", "alpha"), ""},
		"burst 0":            {fine, context.Background(), with(noTokens), alpha, "c"},
		"burst below 0":      {fine, context.Background(), with(budget("1/s", -1)), alpha, "c"},
		"burst beyond bound": {fine, context.Background(), with(budget("1/s", 1_000_001)), alpha, "c"},
		"no rate":            {fine, context.Background(), with(ratelimit.Budget{Burst: 1}), alpha, "c"},
		"zero budget":        {fine, context.Background(), with(ratelimit.Budget{}), alpha, "c"},
		"concurrency 0":      {fine, context.Background(), slots(0), alpha, "c"},
		"concurrency -1":     {fine, context.Background(), slots(-1), alpha, "c"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				lease, err := c.limiter.Take(c.ctx, c.limits, c.key)
				e := refused(t, err, refusal.LimiterUnavailable)
				if e.Cause == nil || e.RetryAfterMS != 0 || e.Status() != 503 || e.Message == "" {
					t.Errorf("got %v, %d ms", e, e.RetryAfterMS)
				}
				lease.Release()
				refused(t, c.limiter.Caller(c.ctx, c.limits, c.caller), refusal.LimiterUnavailable)
			}
		})
	}
	if _, err := fine.Take(done, limits, alpha); !errors.Is(err, context.Canceled) {
		t.Errorf("the cause of %v is not the context's", err)
	}
	// None of the refusals took the one token there is.
	admitted(t, fine, limits, alpha)
	if err := fine.Caller(context.Background(), limits, "c"); err != nil {
		t.Error(err)
	}
}

// A clock that panics must not leave the limiter locked.
func TestAPanickingClockLocksNothing(t *testing.T) {
	broken := false
	l := ratelimit.NewLocal(func() time.Time {
		if broken {
			panic("clock")
		}
		return epoch
	})
	limits := onlyDefault(budget("1/h", 1))
	broken = true
	func() {
		defer func() {
			if recover() == nil {
				t.Fatal("the fault was not injected")
			}
		}()
		_, _ = l.Take(context.Background(), limits, alpha)
	}()
	broken = false
	admitted(t, l, limits, alpha)
}

// A clock that steps back refills nothing, and the time to wait includes what
// it stepped back.
func TestTheClockStepsBack(t *testing.T) {
	each(t, func(t *testing.T, l ratelimit.Limiter, clk *clock) {
		limits := onlyDefault(budget("2/s", 5))
		drain(l, limits, alpha, 5)
		for range 50 {
			clk.move(-time.Hour)
			_, err := l.Take(context.Background(), limits, alpha)
			refused(t, err, refusal.RateLimited)
			clk.move(time.Hour) // seen before: it brings nothing
			_, err = l.Take(context.Background(), limits, alpha)
			if e := refused(t, err, refusal.RateLimited); e.RetryAfterMS != 500 {
				t.Fatalf("wait %d ms, want 500", e.RetryAfterMS)
			}
		}
		clk.move(-time.Hour)
		_, err := l.Take(context.Background(), limits, alpha)
		if e := refused(t, err, refusal.RateLimited); e.RetryAfterMS != 3_600_500 {
			t.Fatalf("wait %d ms, want 3600500", e.RetryAfterMS)
		}
		clk.moveMS(3_600_499)
		_, err = l.Take(context.Background(), limits, alpha)
		refused(t, err, refusal.RateLimited)
		clk.moveMS(1)
		admitted(t, l, limits, alpha)

		// Admitted while the clock stands back, as far as tokens go: what is
		// spent then does not come back twice.
		clk.move(time.Hour)
		admitted(t, l, limits, alpha)
		clk.move(-time.Minute)
		if n := drain(l, limits, alpha, 9); n != 4 {
			t.Fatalf("%d admitted, want 4", n)
		}
		clk.move(time.Minute)
		if n := drain(l, limits, alpha, 9); n != 0 {
			t.Fatalf("%d admitted after the clock came back, want 0", n)
		}
	})
}

// However far the clock jumps, there is an answer.
func TestTheClockJumpsFar(t *testing.T) {
	each(t, func(t *testing.T, l ratelimit.Limiter, clk *clock) {
		if strings.HasSuffix(t.Name(), "/redis") {
			itself(t)
		}
		limits := combined(budget("1/h", 1_000_000), budget("1/h", 1), budget("1000000/s", 1_000_000), budget("1/h", 1))
		for _, year := range []int{1, 1600, 1970, 2026, 2262, 2400, 9999} {
			clk.now = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			if n := drain(l, limits, alpha, 3); n > 1 {
				t.Errorf("year %d: %d admitted, want at most 1", year, n)
			}
			_, err := l.Take(context.Background(), limits, alpha)
			if e := refused(t, err, refusal.RateLimited); e.RetryAfterMS < 1 {
				t.Errorf("year %d: wait %d ms", year, e.RetryAfterMS)
			}
		}
		const twoCenturies = 200 * 365 * 24 * 3_600_000
		clk.now = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
		_, err := l.Take(context.Background(), limits, alpha)
		if e := refused(t, err, refusal.RateLimited); e.RetryAfterMS < twoCenturies {
			t.Errorf("back in year 1: wait %d ms", e.RetryAfterMS)
		}
	})
}
