package limittest

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/callgate/callgate/ratelimit"
)

// levelsOf returns all levels, in pages of a size, by kind, name and what is behind it.
func levelsOf(t *testing.T, l ratelimit.Limiter, limits *ratelimit.Limits, count int) map[string]ratelimit.Level {
	t.Helper()
	found := map[string]ratelimit.Level{}
	last := ""
	for q := (ratelimit.LevelQuery{Count: count, Agents: []string{"Idle"}, Callers: []string{"bob"}}); ; {
		page, err := l.(ratelimit.Meter).Levels(context.Background(), limits, q)
		if err != nil || len(page.Levels) > count {
			t.Fatalf("%+v: %d levels, %v", q, len(page.Levels), err)
		}
		for _, level := range page.Levels {
			key := string(level.Kind) + " " + level.Name + " " + level.Of
			if _, twice := found[key]; twice {
				t.Errorf("%s is listed behind %s again", key, last)
			}
			found[key], last = level, key
		}
		if q.After = page.Next; q.After == "" {
			return found
		}
	}
}

// levels: what is left of each limit is what the next calls get, reading takes nothing, and pages
// of any size list the same.
func (bs Backends) levels(t *testing.T) {
	bs.each(t, func(t *testing.T, l ratelimit.Limiter, clk *Clock) {
		two, one := 2, 1
		daily, callers := Budget("60/m", 10), Budget("1/s", 4)
		limits := &ratelimit.Limits{
			Caller: &callers, Default: ratelimit.Allowance{Budget: &daily, Concurrency: &two},
			Agents: map[string]ratelimit.Agent{"Analyst": {Allowance: ratelimit.Allowance{Concurrency: &one},
				Tools: map[string]ratelimit.Budget{"web.search": Budget("1/h", 5)}}},
			Tools:    map[string]ratelimit.Budget{"web.search": Budget("5/s", 20)},
			Projects: map[ratelimit.Project]ratelimit.Budget{Acme("alpha"): Budget("2/s", 8)},
		}
		for range 3 {
			Admitted(t, l, limits, Alpha).Release()
		}
		lease := Admitted(t, l, limits, Alpha)
		if err := l.Caller(context.Background(), limits, "bob"); err != nil {
			t.Fatal(err)
		}
		check := func(want map[string][2]int) {
			t.Helper()
			for _, count := range []int{1, 3, 100} {
				found := levelsOf(t, l, limits, count)
				if len(found) != len(want) {
					t.Errorf("pages of %d: found %v", count, found)
				}
				for key, w := range want {
					if got := found[key]; got.Left != w[0] || got.Size != w[1] || got.Limit == "" {
						t.Errorf("pages of %d: %s has %+v, expected %d of %d", count, key, got, w[0], w[1])
					}
				}
			}
		}
		want := map[string][2]int{
			"agent Analyst ": {6, 10}, "agent Idle ": {10, 10}, "agent_tool Analyst web.search": {1, 5}, "tool web.search ": {16, 20},
			"project acme alpha": {4, 8},
			"caller bob ":        {3, 4}, "slots Analyst ": {0, 1}, "slots Idle ": {2, 2},
		}
		check(want)
		if full := levelsOf(t, l, limits, 9)["agent Analyst "].Full; full != 4*time.Second {
			t.Errorf("4 tokens of 1/s are back after %v", full)
		}
		lease.Release()
		// A slot is given back without waiting for Redis.
		for deadline := time.Now().Add(time.Minute); levelsOf(t, l, limits, 100)["slots Analyst "].Left == 0 &&
			time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		clk.Move(1500 * time.Millisecond)
		maps.Copy(want, map[string][2]int{"agent Analyst ": {7, 10}, "tool web.search ": {20, 20}, "project acme alpha": {7, 8},
			"caller bob ": {4, 4}, "slots Analyst ": {1, 1}})
		check(want)
		if n := Drain(l, limits, KeyOf("Analyst", "web.fetch", "beta"), 100); n != 7 {
			t.Errorf("%d calls are admitted where 7 tokens are left", n)
		}
		page, err := l.(ratelimit.Meter).Levels(context.Background(), limits, ratelimit.LevelQuery{Count: 9, Kind: ratelimit.LevelSlots})
		if err != nil || len(page.Levels) != 1 || page.Levels[0].Limit != "agents.Analyst.concurrency" {
			t.Errorf("the slots alone: %+v, %v", page, err)
		}
		for _, cursor := range []string{"x", "a.%.", "a.b", "z.."} {
			if _, err := l.(ratelimit.Meter).Levels(context.Background(), limits,
				ratelimit.LevelQuery{Count: 9, After: cursor}); !errors.Is(err, ratelimit.ErrCursor) {
				t.Errorf("behind %q: %v", cursor, err)
			}
		}
	})
}
