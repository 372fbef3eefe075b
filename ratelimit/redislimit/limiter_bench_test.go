package redislimit_test

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/ratelimit/redislimit"
)

// BenchmarkRedis compares, at 32 goroutines: PING through the library's pool,
// one budget, that of each of many agents, four in one script, four one after the other, and a
// reservation of a budget of tokens with its settlement.
func BenchmarkRedis(b *testing.B) {
	const goroutines = 32
	address := redistest.Shared(b)
	ctx := context.Background()
	r, warnings, err := redislimit.NewWithSlack(ctx, optionsFor(address), redislimit.Patient)
	opened(b, r, warnings, err)
	c := redis.NewClient(&redis.Options{Addr: address, Protocol: 2})
	defer c.Close()
	wide := limittest.Roomy()
	limits := func(l *ratelimit.Limits) func() error {
		return func() error {
			lease, err := r.Take(ctx, l, limittest.Alpha)
			lease.Release()
			return err
		}
	}
	slot := limittest.OnlyAgent(wide)
	slot.Default.Concurrency = new(1000)
	anyAgent := limittest.OnlyDefault(wide)
	var turn atomic.Uint64
	agents := make([]string, 10_000)
	for i := range agents {
		agents[i] = "agent" + strconv.Itoa(i)
	}
	_, monthly := monthly(budget.Most, 0)
	each := []func() error{limits(limittest.OnlyAgent(wide)), limits(limittest.OnlyAgentTool(wide)), limits(limittest.OnlyTool(wide)), limits(limittest.OnlyProject(wide))}
	for _, way := range []struct {
		name string
		run  func() error
	}{
		{"ping", func() error { return c.Ping(ctx).Err() }},
		{"1", each[0]},
		{"1+slot", limits(slot)},
		{"1 of 10,000 agents in turn", func() error {
			key := limittest.Alpha
			key.Agent = agents[turn.Add(1)%uint64(len(agents))]
			_, err := r.Take(ctx, anyAgent, key)
			return err
		}},
		{"4", limits(limittest.Combined(wide, wide, wide, wide))},
		{"4 in sequence", func() error {
			for _, f := range each {
				if err := f(); err != nil {
					return err
				}
			}
			return nil
		}},
		{"reserve and settle", func() error {
			held, err := r.Reserve(ctx, nil, monthly, budget.Amount{Tokens: 500})
			held.Settle(budget.Amount{Tokens: 1})
			return err
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(max(1, goroutines/runtime.GOMAXPROCS(0)))
			server, own := processorTime(b, c), ownProcessorTime(b)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := way.run(); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			b.ReportMetric(float64((processorTime(b, c)-server).Nanoseconds())/float64(b.N), "redis-cpu-ns/op")
			b.ReportMetric(float64((ownProcessorTime(b)-own).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// processorTime is what a server has used.
func processorTime(b *testing.B, c *redis.Client) (used time.Duration) {
	b.Helper()
	info, err := c.Info(context.Background(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.Fatal(err)
			}
			used += time.Duration(seconds * float64(time.Second))
		}
	}
	return used
}

// ownProcessorTime is what this process has used.
func ownProcessorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkRedisAway is what a call costs while Redis is away.
func BenchmarkRedisAway(b *testing.B) {
	o := optionsFor("127.0.0.1:1")
	start := time.Now()
	o.Clock = func() time.Time { return start.Add(100 * time.Since(start)) }
	r, _, err := redislimit.New(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	wide := limittest.Roomy()
	limits := local(wide, 1)
	time.Sleep(20 * time.Millisecond) // the share begins empty
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Take(context.Background(), limits, limittest.Alpha); err != nil {
			b.Fatal(err)
		}
	}
}
