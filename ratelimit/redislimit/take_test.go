package redislimit_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/redislimit"
)

// TestCallsDecidedTogether: calls in one batch are decided as the same calls one after the
// other, with foreign keys and changed budgets among them.
func TestCallsDecidedTogether(t *testing.T) {
	ctx := context.Background()
	address := redistest.Shared(t)
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: 2})
	defer client.Close()
	budget := func(rate string, burst int) *ratelimit.Budget {
		b := limittest.Budget(rate, burst)
		return &b
	}
	with := func(agent, tool *ratelimit.Budget, slots *int) *ratelimit.Limits {
		l := &ratelimit.Limits{Default: ratelimit.Allowance{Budget: agent, Concurrency: slots}}
		if tool != nil {
			l.Tools = map[string]ratelimit.Budget{"t0": *tool, "t1": *tool}
		}
		return l
	}
	variants := []*ratelimit.Limits{
		with(budget("1/s", 3), nil, nil), with(budget("1/s", 3), budget("3/m", 5), nil),
		with(budget("7/h", 2), nil, nil), with(budget("1/s", 3), nil, new(4)), with(nil, budget("3/m", 5), new(2)),
	}
	rapid.Check(t, func(rt *rapid.T) {
		clock := limittest.NewClock(limittest.Epoch)
		options := []redislimit.Options{optionsFor(address), optionsFor(address)}
		var limiters []*redislimit.Limiter
		for _, o := range options {
			r, warnings, err := redislimit.NewWithClock(ctx, o, clock.Now)
			limiters = append(limiters, opened(t, r, warnings, err))
			defer r.Close()
		}
		for range rapid.IntRange(1, 4).Draw(rt, "batches") {
			clock.MoveMS(int64(rapid.IntRange(-500, 3000).Draw(rt, "ms")))
			if rapid.IntRange(0, 3).Draw(rt, "spoil") == 0 {
				for _, o := range options {
					if err := client.RPush(ctx, redislimit.KeyOf(o.Prefix+"spoilt", "a0"), "x").Err(); err != nil {
						rt.Fatal(err)
					}
					if err := client.Rename(ctx, redislimit.KeyOf(o.Prefix+"spoilt", "a0"), redislimit.KeyOf(o.Prefix, "a0")).Err(); err != nil {
						rt.Fatal(err)
					}
				}
			}
			var limits []*ratelimit.Limits
			var keys []ratelimit.Key
			for range rapid.IntRange(1, 300).Draw(rt, "calls") {
				limits = append(limits, variants[rapid.IntRange(0, len(variants)-1).Draw(rt, "limits")])
				keys = append(keys, limittest.KeyOf(rapid.SampledFrom([]string{"a0", "a1", "a2"}).Draw(rt, "agent"), rapid.SampledFrom([]string{"t0", "t1"}).Draw(rt, "tool"), "p"))
			}
			together, err := limiters[0].TakeTogether(ctx, limits, keys)
			if err != nil {
				rt.Fatal(err)
			}
			for i := range keys {
				_, want := limiters[1].Take(ctx, limits[i], keys[i])
				if got := together[i]; (got == nil) != (want == nil) || got != nil && (got.Error() != want.Error()) {
					rt.Fatalf("call %d of %d, %+v: got %v, want %v", i, len(keys), keys[i], got, want)
				}
			}
		}
		stored := make([]map[string]string, len(options))
		for i, o := range options {
			stored[i] = map[string]string{}
			found, err := client.Keys(ctx, o.Prefix+"*").Result()
			if err != nil {
				rt.Fatal(err)
			}
			for _, key := range found {
				if text, err := client.Get(ctx, key).Result(); err == nil && !strings.HasSuffix(key, ":epoch") {
					stored[i][strings.TrimPrefix(key, o.Prefix)] = text
				}
			}
		}
		for key, want := range stored[1] {
			if stored[0][key] != want {
				rt.Fatalf("%s holds %q, want %q", key, stored[0][key], want)
			}
		}
		if len(stored[0]) != len(stored[1]) {
			rt.Fatalf("got %v, want %v", stored[0], stored[1])
		}
	})
}

// Anything but exactly a reply to this request is an error.
func TestReplies(t *testing.T) {
	type reply struct {
		text string
		runs []int
	}
	for _, c := range []struct {
		reply
		admitted int // -1: it is no reply
		ms       int64
	}{
		{reply{"id-1 1", []int{1}}, 1, 0},
		{reply{"id-1 1", []int{0}}, 1, 0},
		{reply{"id-1 crowded", []int{0}}, 0, 0},
		{reply{"id-1 foreign", []int{2}}, 0, 0},
		{reply{"id-1 0/500/2", []int{1}}, 0, 500},
		{reply{"id-1 3 2/7/1 crowded foreign", []int{3, 4, 0, 2}}, 5, 14},
		{reply{"id-1 =17/run/id-0 1", []int{1}}, 1, 0},
		{reply{"id-1 =17/run/id-0", []int{1}}, -1, 0},
		{reply{"id-1 1 =17/run/id-0", []int{1}}, -1, 0},
		{reply{"", []int{1}}, -1, 0},
		{reply{"id-1", []int{1}}, -1, 0},
		{reply{"id-1 ", []int{1}}, -1, 0},
		{reply{"id-2 1", []int{1}}, -1, 0},
		{reply{" 1", []int{1}}, -1, 0},
		{reply{"1", []int{1}}, -1, 0},
		{reply{"id-1 1 ", []int{1}}, -1, 0},
		{reply{"id-1  1", []int{1}}, -1, 0},
		{reply{"id-1 1 1", []int{1}}, -1, 0},
		{reply{"id-1 1", []int{1, 1}}, -1, 0},
		{reply{"id-1 2", []int{1}}, -1, 0},
		{reply{"id-1 0", []int{1}}, -1, 0},
		{reply{"id-1 +1", []int{1}}, -1, 0},
		{reply{"id-1 -1", []int{1}}, -1, 0},
		{reply{"id-1 crowded", []int{1}}, -1, 0},
		{reply{"id-1 1/500/2", []int{1}}, -1, 0},
		{reply{"id-1 0/500", []int{1}}, -1, 0},
		{reply{"id-1 0/0/1", []int{1}}, -1, 0},
		{reply{"id-1 0/-5/1", []int{1}}, -1, 0},
		{reply{"id-1 0/5/0", []int{1}}, -1, 0},
		{reply{"id-1 0/5/3", []int{1}}, -1, 0},
		{reply{"id-1 0/5/1/1", []int{1}}, -1, 0},
		{reply{"id-1 0/1e3/1", []int{1}}, -1, 0},
		{reply{"id-1 0/99999999999999999999/1", []int{1}}, -1, 0},
	} {
		admitted, ms, err := redislimit.TakeRuns(c.text, "id-1", c.runs...)
		if err != nil {
			admitted = -1
		}
		if admitted != c.admitted || ms != c.ms {
			t.Errorf("%q: %d admitted, %d ms; want %d, %d", c.text, admitted, ms, c.admitted, c.ms)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "reply")
		if _, _, err := redislimit.TakeRuns(text, "id-1", 1, 2); err == nil && !strings.HasPrefix(text, "id-1 ") {
			t.Fatalf("%q is taken for a reply", text)
		}
	})
}
