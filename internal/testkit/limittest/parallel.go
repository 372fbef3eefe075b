package limittest

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// OverAdmission fails where any stretch of time saw more than its rate and a
// burst.
func OverAdmission(t interface {
	Helper()
	Fatalf(string, ...any)
}, times []time.Time, perSecond float64, burst int) {
	t.Helper()
	for i := range times {
		for j := i; j < len(times) && j < i+500; j++ {
			may := float64(burst) + perSecond*times[j].Sub(times[i]).Seconds()
			if n := j - i + 1; float64(n) > may+1e-6 {
				t.Fatalf("%d admitted in %v, at %v/s and burst %d", n, times[j].Sub(times[i]), perSecond, burst)
			}
		}
	}
}

// Sixteen goroutines take, release and change the limits: the counts are
// exact, and the slots are never overbooked.
func (bs Backends) parallel(t *testing.T) {
	bs.each(t, func(t *testing.T, l ratelimit.Limiter, _ *Clock) {
		const goroutines, tries, slots = 16, 100, 5 // more tries than any budget has tokens
		b := Budget("1/h", 1000)
		limits := Combined(Budget("1/h", 700), Budget("1/h", 650), Budget("1/h", 600), b)
		limits.Default.Concurrency = new(slots)
		limits.Default.Budget = &b
		limits.Caller = &b
		var passed, inFlight, callers, crowded atomic.Int64
		var group sync.WaitGroup
		for range goroutines {
			group.Go(func() {
				for range tries {
					if l.Caller(context.Background(), limits, "192.0.2.1") == nil {
						callers.Add(1)
					}
					lease, err := l.Take(context.Background(), limits, Alpha)
					if err != nil {
						if e := refusal.From(refusal.Rate, err); e.Code == refusal.ConcurrencyLimited {
							crowded.Add(1)
						}
						runtime.Gosched()
						continue
					}
					if n := inFlight.Add(1); n > slots {
						t.Errorf("%d calls at the same time, want at most %d", n, slots)
					}
					passed.Add(1)
					runtime.Gosched()
					inFlight.Add(-1)
					var twice sync.WaitGroup
					twice.Go(lease.Release)
					lease.Release()
					twice.Wait()
				}
			})
		}
		group.Wait()
		// Calls that met the full limit may have left some of the 600.
		rest := Drain(l, limits, Alpha, 2000)
		if n := passed.Load() + int64(rest); n != 600 {
			t.Errorf("%d and %d admitted, want 600 in all", passed.Load(), rest)
		}
		if callers.Load() != 1000 {
			t.Errorf("%d requests admitted, want 1000", callers.Load())
		}
		// The others lost exactly what was admitted.
		if n := Drain(l, OnlyAgent(Budget("1/h", 700)), Alpha, 2000); n != 100 {
			t.Errorf("%d tokens left of the agent, want 100", n)
		}
		if n := Drain(l, OnlyProject(b), Alpha, 2000); n != 400 {
			t.Errorf("%d tokens left of the project, want 400", n)
		}
	})
}
