package limittest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// A call that cannot be judged is refused, with a cause for the operator.
func (bs Backends) failsClosed(t *testing.T) {
	bs.each(t, func(t *testing.T, l ratelimit.Limiter, _ *Clock) { refusesAll(t, l) })
}

func refusesAll(t *testing.T, fine ratelimit.Limiter) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	var absent *ratelimit.Local
	b, noTokens := Budget("1/s", 1), ratelimit.Budget{Rate: RateOf("1/s")}
	limits := OnlyDefault(b)
	limits.Caller = &b
	slots := func(n int) *ratelimit.Limits {
		return &ratelimit.Limits{Caller: &noTokens, Default: ratelimit.Allowance{Concurrency: new(n)}}
	}
	with := func(b ratelimit.Budget) *ratelimit.Limits {
		l := OnlyProject(b)
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
		"no limiter":         {absent, context.Background(), limits, Alpha, "c"},
		"zero limiter":       {&ratelimit.Local{}, context.Background(), limits, Alpha, "c"},
		"no clock":           {ratelimit.NewLocal(nil), context.Background(), limits, Alpha, "c"},
		"no context":         {fine, nil, limits, Alpha, "c"},
		"context is done":    {fine, done, limits, Alpha, "c"},
		"no limits":          {fine, context.Background(), nil, Alpha, "c"},
		"no agent":           {fine, context.Background(), limits, KeyOf("", "web.search", "alpha"), ""},
		"no tool":            {fine, context.Background(), limits, KeyOf("Analyst", "", "alpha"), ""},
		"burst 0":            {fine, context.Background(), with(noTokens), Alpha, "c"},
		"burst below 0":      {fine, context.Background(), with(Budget("1/s", -1)), Alpha, "c"},
		"burst beyond bound": {fine, context.Background(), with(Budget("1/s", 1_000_001)), Alpha, "c"},
		"no rate":            {fine, context.Background(), with(ratelimit.Budget{Burst: 1}), Alpha, "c"},
		"zero budget":        {fine, context.Background(), with(ratelimit.Budget{}), Alpha, "c"},
		"concurrency 0":      {fine, context.Background(), slots(0), Alpha, "c"},
		"concurrency -1":     {fine, context.Background(), slots(-1), Alpha, "c"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				lease, err := c.limiter.Take(c.ctx, c.limits, c.key)
				e := Refused(t, err, refusal.LimiterUnavailable)
				if e.Cause == nil || e.RetryAfterMS != 0 || e.Status() != 503 || e.Message == "" {
					t.Errorf("got %v, %d ms", e, e.RetryAfterMS)
				}
				lease.Release()
				Refused(t, c.limiter.Caller(c.ctx, c.limits, c.caller), refusal.LimiterUnavailable)
			}
		})
	}
	if _, err := fine.Take(done, limits, Alpha); !errors.Is(err, context.Canceled) {
		t.Errorf("the cause of %v is not the context's", err)
	}
	// None of the refusals took the one token there is.
	Admitted(t, fine, limits, Alpha)
	if err := fine.Caller(context.Background(), limits, "c"); err != nil {
		t.Error(err)
	}
}

// A clock that steps back refills nothing, and the time to wait includes what
// it stepped back.
func (bs Backends) theClockStepsBack(t *testing.T) {
	bs.each(t, func(t *testing.T, l ratelimit.Limiter, clk *Clock) {
		limits := OnlyDefault(Budget("2/s", 5))
		Drain(l, limits, Alpha, 5)
		for range 50 {
			clk.Move(-time.Hour)
			_, err := l.Take(context.Background(), limits, Alpha)
			Refused(t, err, refusal.RateLimited)
			clk.Move(time.Hour) // seen before: it brings nothing
			_, err = l.Take(context.Background(), limits, Alpha)
			if e := Refused(t, err, refusal.RateLimited); e.RetryAfterMS != 500 {
				t.Fatalf("wait %d ms, want 500", e.RetryAfterMS)
			}
		}
		clk.Move(-time.Hour)
		_, err := l.Take(context.Background(), limits, Alpha)
		if e := Refused(t, err, refusal.RateLimited); e.RetryAfterMS != 3_600_500 {
			t.Fatalf("wait %d ms, want 3600500", e.RetryAfterMS)
		}
		clk.MoveMS(3_600_499)
		_, err = l.Take(context.Background(), limits, Alpha)
		Refused(t, err, refusal.RateLimited)
		clk.MoveMS(1)
		Admitted(t, l, limits, Alpha)

		// Admitted while the clock stands back, as far as tokens go: what is
		// spent then does not come back twice.
		clk.Move(time.Hour)
		Admitted(t, l, limits, Alpha)
		clk.Move(-time.Minute)
		if n := Drain(l, limits, Alpha, 9); n != 4 {
			t.Fatalf("%d admitted, want 4", n)
		}
		clk.Move(time.Minute)
		if n := Drain(l, limits, Alpha, 9); n != 0 {
			t.Fatalf("%d admitted after the clock came back, want 0", n)
		}
	})
}

// However far the clock jumps, there is an answer.
func (bs Backends) theClockJumpsFar(t *testing.T) {
	bs.each(t, func(t *testing.T, l ratelimit.Limiter, clk *Clock) {
		limits := Combined(Budget("1/h", 1_000_000), Budget("1/h", 1), Budget("1000000/s", 1_000_000), Budget("1/h", 1))
		for _, year := range []int{1, 1600, 1970, 2026, 2262, 2400, 9999} {
			clk.Set(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
			if n := Drain(l, limits, Alpha, 3); n > 1 {
				t.Errorf("year %d: %d admitted, want at most 1", year, n)
			}
			_, err := l.Take(context.Background(), limits, Alpha)
			if e := Refused(t, err, refusal.RateLimited); e.RetryAfterMS < 1 {
				t.Errorf("year %d: wait %d ms", year, e.RetryAfterMS)
			}
		}
		const twoCenturies = 200 * 365 * 24 * 3_600_000
		clk.Set(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC))
		_, err := l.Take(context.Background(), limits, Alpha)
		if e := Refused(t, err, refusal.RateLimited); e.RetryAfterMS < twoCenturies {
			t.Errorf("back in year 1: wait %d ms", e.RetryAfterMS)
		}
	})
}
