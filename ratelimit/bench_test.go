package ratelimit_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/ratelimit"
)

// fed is a clock that stands, but for a microsecond a call, so that the rate
// just feeds the calls.
func fed() func() time.Time {
	var calls atomic.Int64
	return func() time.Time { return limittest.Epoch.Add(time.Duration(calls.Add(1)) * time.Microsecond) }
}

func benchmarkLimits() []struct {
	name   string
	limits *ratelimit.Limits
} {
	b := limittest.Roomy()
	one := &ratelimit.Limits{Default: ratelimit.Allowance{Budget: &b}}
	three := &ratelimit.Limits{Default: ratelimit.Allowance{Budget: &b}}
	three.Tools = map[string]ratelimit.Budget{"web.search": b}
	three.Projects = map[ratelimit.Project]ratelimit.Budget{{Workspace: "acme", Name: "alpha"}: b}
	slots := &ratelimit.Limits{Default: ratelimit.Allowance{Budget: &b, Concurrency: new(1000)}, Tools: three.Tools, Projects: three.Projects}
	four := &ratelimit.Limits{Tools: three.Tools, Projects: three.Projects}
	four.Agents = map[string]ratelimit.Agent{"Analyst": {
		Allowance: ratelimit.Allowance{Budget: &b, Concurrency: new(1000)}, Tools: map[string]ratelimit.Budget{"web.search": b},
	}}
	return []struct {
		name   string
		limits *ratelimit.Limits
	}{{"none", &ratelimit.Limits{}}, {"1", one}, {"3", three}, {"3+slot", slots}, {"4+slot", four}}
}

func BenchmarkLocalTake(b *testing.B) {
	for _, clock := range []string{"fixed", "real"} {
		for _, c := range benchmarkLimits() {
			b.Run(clock+"/"+c.name, func(b *testing.B) {
				l := ratelimit.NewLocal(clockOf(clock))
				b.ReportAllocs()
				for b.Loop() {
					lease, err := l.Take(context.Background(), c.limits, limittest.Alpha)
					if err != nil {
						b.Fatal(err)
					}
					lease.Release()
				}
			})
		}
	}
}

// BenchmarkLocalTakeAgents takes three budgets and a slot for agents in turn.
func BenchmarkLocalTakeAgents(b *testing.B) {
	limits := benchmarkLimits()[3].limits
	for _, agents := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(agents), func(b *testing.B) {
			l := ratelimit.NewLocal(clockOf("fixed"))
			keys := make([]ratelimit.Key, agents)
			for i := range keys {
				keys[i] = limittest.Alpha
				keys[i].Agent = fmt.Sprint("Agent", i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				lease, err := l.Take(context.Background(), limits, keys[i%agents])
				if err != nil {
					b.Fatal(err)
				}
				lease.Release()
			}
		})
	}
}

func clockOf(name string) func() time.Time {
	if name == "real" {
		// A hundredfold clock: calls come faster than the highest rate.
		start := time.Now()
		return func() time.Time { return start.Add(100 * time.Since(start)) }
	}
	return fed()
}

func BenchmarkLocalTakeParallel(b *testing.B) {
	for _, c := range benchmarkLimits() {
		b.Run(c.name, func(b *testing.B) {
			l := ratelimit.NewLocal(clockOf("real"))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					lease, err := l.Take(context.Background(), c.limits, limittest.Alpha)
					if err != nil {
						b.Fatal(err)
					}
					lease.Release()
				}
			})
		})
	}
}

func BenchmarkLocalTakeRefused(b *testing.B) {
	l := ratelimit.NewLocal(func() time.Time { return limittest.Epoch })
	spent := limittest.Budget("1/h", 1)
	limits := &ratelimit.Limits{Default: ratelimit.Allowance{Budget: &spent}}
	_, _ = l.Take(context.Background(), limits, limittest.Alpha)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Take(context.Background(), limits, limittest.Alpha); err == nil {
			b.Fatal("admitted")
		}
	}
}

func BenchmarkLocalCaller(b *testing.B) {
	r := limittest.Roomy()
	limits := &ratelimit.Limits{Caller: &r}
	b.Run("known", func(b *testing.B) {
		l := ratelimit.NewLocal(fed())
		b.ReportAllocs()
		for b.Loop() {
			if err := l.Caller(context.Background(), limits, "192.0.2.1"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("made up", func(b *testing.B) {
		names := make([]string, 1<<20)
		for i := range names {
			names[i] = fmt.Sprintf("2001:db8::%x", i)
		}
		l := ratelimit.NewLocal(fed())
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := l.Caller(context.Background(), limits, names[i%len(names)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
