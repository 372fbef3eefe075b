package ratelimit_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// onlyAgent, and so on: limits with one budget, under which alpha falls.
func onlyAgent(b ratelimit.Budget) *ratelimit.Limits {
	return &ratelimit.Limits{Agents: map[string]ratelimit.Agent{"Analyst": {Allowance: ratelimit.Allowance{Budget: &b}}}}
}

func onlyDefault(b ratelimit.Budget) *ratelimit.Limits {
	return &ratelimit.Limits{Default: ratelimit.Allowance{Budget: &b}}
}

func onlyAgentTool(b ratelimit.Budget) *ratelimit.Limits {
	return &ratelimit.Limits{Agents: map[string]ratelimit.Agent{"Analyst": {Tools: map[string]ratelimit.Budget{"web.search": b}}}}
}

func onlyTool(b ratelimit.Budget) *ratelimit.Limits {
	return &ratelimit.Limits{Tools: map[string]ratelimit.Budget{"web.search": b}}
}

func onlyProject(b ratelimit.Budget) *ratelimit.Limits {
	return &ratelimit.Limits{Projects: map[ratelimit.Project]ratelimit.Budget{acme("alpha"): b}}
}

// combined has every budget of a call.
func combined(agent, agentTool, tool, project ratelimit.Budget) *ratelimit.Limits {
	l := onlyAgent(agent)
	l.Agents["Analyst"] = ratelimit.Agent{Allowance: l.Agents["Analyst"].Allowance, Tools: onlyAgentTool(agentTool).Agents["Analyst"].Tools}
	l.Tools, l.Projects = onlyTool(tool).Tools, onlyProject(project).Projects
	return l
}

// The burst passes, one more does not, and retry_after_ms is exact: so many
// milliseconds later it passes, and one earlier it does not.
func TestRetryAfterIsExact(t *testing.T) {
	wide := budget("1000/s", 1000)
	cases := map[string]struct {
		limits *ratelimit.Limits
		burst  int
		wantMS int64 // of the first refusal
	}{
		"agent 2/s":         {onlyAgent(budget("2/s", 5)), 5, 500},
		"agent 3/s":         {onlyAgent(budget("3/s", 2)), 2, 334},
		"default 7/m":       {onlyDefault(budget("7/m", 1)), 1, 8572},
		"agent's tool 30/m": {onlyAgentTool(budget("30/m", 5)), 5, 2000},
		"tool 1000000/s":    {onlyTool(budget("1000000/s", 3)), 3, 1},
		"tool 999/s":        {onlyTool(budget("999/s", 3)), 3, 2},
		"project 1/h":       {onlyProject(budget("1/h", 1)), 1, 3_600_000},
		"project 3601/h":    {onlyProject(budget("3601/h", 10)), 10, 1000},
		"agent of four":     {combined(budget("2/s", 3), wide, wide, wide), 3, 500},
		"tool of four":      {combined(wide, wide, budget("30/m", 3), wide), 3, 2000},
		// All four are spent by the third call: the longest wait counts.
		"four at once": {combined(budget("2/s", 3), budget("30/m", 3), budget("100/s", 3), budget("100/h", 3)), 3, 36_000},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, l ratelimit.Limiter, clk *clock) {
				if n := drain(l, c.limits, alpha, c.burst+5); n != c.burst {
					t.Fatalf("%d admitted, want the burst of %d", n, c.burst)
				}
				want := c.wantMS
				for round := range 20 {
					// Refusals at odd moments must not shift what comes back.
					clk.move(time.Duration(round*137) * time.Microsecond % time.Millisecond)
					_, err := l.Take(context.Background(), c.limits, alpha)
					if err == nil && round > 0 {
						continue // of a fast rate, the odd moment brings a token
					}
					ms := refused(t, err, refusal.RateLimited).RetryAfterMS
					if round == 0 && ms != want {
						t.Fatalf("wait %d ms, want %d", ms, want)
					}
					clk.moveMS(ms - 1)
					if _, err := l.Take(context.Background(), c.limits, alpha); ms > 1 {
						if left := refused(t, err, refusal.RateLimited).RetryAfterMS; left != 1 {
							t.Fatalf("round %d: a millisecond before the end, wait %d ms", round, left)
						}
					}
					clk.moveMS(1)
					admitted(t, l, c.limits, alpha)
				}
			})
		})
	}
}

// The time to wait is exact where the clock stands a nanosecond beside the
// millisecond, and the division could round either way.
func TestRetryAfterIsExactToTheNanosecond(t *testing.T) {
	each(t, func(t *testing.T, l ratelimit.Limiter, clk *clock) {
		for n := range 60 {
			for _, unit := range []string{"s", "m", "h"} {
				limits := onlyDefault(budget(strconv.Itoa(n+1)+"/"+unit, 1))
				for i, offset := range []time.Duration{0, 1, 2, 999_999, 999_998, 500_000} {
					key := keyOf(unit+strconv.Itoa(100*n+i), "t", "")
					admitted(t, l, limits, key)
					clk.move(time.Millisecond + offset)
					_, err := l.Take(context.Background(), limits, key)
					ms := refused(t, err, refusal.RateLimited).RetryAfterMS
					clk.moveMS(ms - 1)
					if _, err = l.Take(context.Background(), limits, key); err == nil {
						t.Fatalf("%d/%s: admitted before %d ms were over", n+1, unit, ms)
					}
					clk.moveMS(1)
					admitted(t, l, limits, key)
				}
			}
		}
	})
}

func TestCallerRetryAfterIsExact(t *testing.T) {
	each(t, func(t *testing.T, l ratelimit.Limiter, clk *clock) {
		b := budget("3/s", 2)
		limits := &ratelimit.Limits{Caller: &b}
		send := func(caller string) error { return l.Caller(context.Background(), limits, caller) }
		for range 2 {
			if err := send("192.0.2.1"); err != nil {
				t.Fatal(err)
			}
		}
		e := refused(t, send("192.0.2.1"), refusal.CallerRateLimited)
		if e.RetryAfterMS != 334 || e.Stage != refusal.Identity || e.Status() != 429 || !strings.Contains(e.Message, "wait 334 ms") {
			t.Fatalf("got %v, %d ms", e, e.RetryAfterMS)
		}
		if err := send("192.0.2.2"); err != nil {
			t.Fatalf("another caller: %v", err)
		}
		clk.moveMS(333)
		refused(t, send("192.0.2.1"), refusal.CallerRateLimited)
		clk.moveMS(1)
		if err := send("192.0.2.1"); err != nil {
			t.Fatal(err)
		}
		// Callers and agents of one name have nothing to do with each other.
		both := onlyDefault(b)
		both.Caller = &b
		if n := drain(l, both, keyOf("192.0.2.1", "t", "alpha"), 5); n != 2 {
			t.Fatalf("%d calls admitted, want 2", n)
		}
	})
}

func TestWhatIsNotStatedDoesNotApply(t *testing.T) {
	each(t, func(t *testing.T, l ratelimit.Limiter, _ *clock) {
		limits := &ratelimit.Limits{}
		for range 5000 {
			admitted(t, l, limits, alpha) // never released
			if err := l.Caller(context.Background(), limits, "192.0.2.1"); err != nil {
				t.Fatal(err)
			}
		}
		elsewhere := combined(budget("1/h", 1), budget("1/h", 1), budget("1/h", 1), budget("1/h", 1))
		for range 5000 {
			admitted(t, l, elsewhere, keyOf("Intern", "files.read", "beta"))
		}
		// A call of no project has no project budget.
		for range 2 {
			admitted(t, l, onlyProject(budget("1/h", 1)), ratelimit.Key{Agent: "Analyst", Tool: "web.search"})
		}
	})
}

func TestWhoSharesABucket(t *testing.T) {
	b := budget("1/h", 3)
	named := onlyDefault(budget("1/h", 2))
	named.Agents = onlyAgent(b).Agents
	cases := map[string]struct {
		limits *ratelimit.Limits
		keys   []ratelimit.Key
		want   []int // admitted, one key after the other
	}{
		"default: a bucket for each agent":  {onlyDefault(b), []ratelimit.Key{alpha, keyOf("Intern", "web.search", "alpha"), keyOf("analyst", "x", "y"), alpha}, []int{3, 3, 3, 0}},
		"a named agent has its own figures": {named, []ratelimit.Key{alpha, keyOf("Intern", "web.search", "alpha")}, []int{3, 2}},
		"an agent's tools share its budget": {onlyAgent(b), []ratelimit.Key{alpha, keyOf("Analyst", "files.read", "beta")}, []int{3, 0}},
		"agent and tool together":           {onlyAgentTool(b), []ratelimit.Key{alpha, keyOf("Analyst", "web.search", "beta"), keyOf("Analyst", "files.read", "alpha"), keyOf("Intern", "web.search", "alpha")}, []int{3, 0, 10, 10}},
		"a tool is shared by agents":        {onlyTool(b), []ratelimit.Key{alpha, keyOf("Intern", "web.search", "beta"), keyOf("Intern", "files.read", "alpha")}, []int{3, 0, 10}},
		"a project is shared by agents":     {onlyProject(b), []ratelimit.Key{alpha, keyOf("Intern", "files.read", "alpha"), keyOf("Intern", "files.read", "beta")}, []int{3, 0, 10}},
		"a project of another workspace":    {onlyProject(b), []ratelimit.Key{alpha, {Agent: "A", Tool: "t", Workspace: "other", Project: "alpha"}}, []int{3, 10}},
		"long names are told apart":         {onlyDefault(b), []ratelimit.Key{keyOf(strings.Repeat("x", 500)+"1", "t", ""), keyOf(strings.Repeat("x", 500)+"2", "t", ""), keyOf(strings.Repeat("x", 500)+"1", "t", "")}, []int{3, 3, 0}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, l ratelimit.Limiter, _ *clock) {
				for i, key := range c.keys {
					if n := drain(l, c.limits, key, 10); n != c.want[i] {
						t.Errorf("%d %+v: %d admitted, want %d", i, key, n, c.want[i])
					}
				}
			})
		})
	}
}

// Naming an agent to add one limit lifts none of the default's.
func TestANamedAgentHasTheDefaultsOfWhatItDoesNotState(t *testing.T) {
	fallback := budget("1/h", 4)
	generous := budget("1/h", 100)
	tests := map[string]struct {
		agent ratelimit.Agent
		calls int // admitted, each released at once
		slots int // at the same time
	}{
		"nothing stated":   {ratelimit.Agent{}, 4, 2},
		"only a tool":      {ratelimit.Agent{Tools: map[string]ratelimit.Budget{"web.search": budget("1/h", 50)}}, 4, 2},
		"only concurrency": {ratelimit.Agent{Allowance: ratelimit.Allowance{Concurrency: new(3)}}, 4, 3},
		"only a rate":      {ratelimit.Agent{Allowance: ratelimit.Allowance{Budget: &generous}}, 100, 2},
		"both, and more":   {ratelimit.Agent{Allowance: ratelimit.Allowance{Budget: &generous, Concurrency: new(50)}}, 100, 50},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, l ratelimit.Limiter, clk *clock) {
				limits := &ratelimit.Limits{
					Default: ratelimit.Allowance{Budget: &fallback, Concurrency: new(2)},
					Agents:  map[string]ratelimit.Agent{"Analyst": c.agent},
				}
				if n := drain(l, limits, alpha, 200); n != c.calls {
					t.Errorf("%d admitted, want %d", n, c.calls)
				}
				clk.move(100 * time.Hour)
				held := 0
				for range 60 {
					if _, err := l.Take(context.Background(), limits, alpha); err != nil {
						break
					}
					held++
				}
				if held != c.slots {
					t.Errorf("%d at the same time, want %d", held, c.slots)
				}
			})
		})
	}
}

// Whatever refuses, nothing else is taken.
func TestAllOrNone(t *testing.T) {
	const wide = 20
	spent := budget("1/h", 2)
	full := budget("1/h", wide)
	cases := map[string]*ratelimit.Limits{
		"agent":        combined(spent, full, full, full),
		"agent's tool": combined(full, spent, full, full),
		"tool":         combined(full, full, spent, full),
		"project":      combined(full, full, full, spent),
	}
	slots := combined(full, full, full, full)
	slots.Default.Concurrency = new(2)
	cases["slots"] = slots
	probes := map[string]*ratelimit.Limits{
		"agent": onlyAgent(full), "agent's tool": onlyAgentTool(full), "tool": onlyTool(full), "project": onlyProject(full),
	}
	for name, limits := range cases {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, l ratelimit.Limiter, _ *clock) {
				var leases []ratelimit.Lease
				for range 2 {
					leases = append(leases, admitted(t, l, limits, alpha))
				}
				for range 50 {
					if _, err := l.Take(context.Background(), limits, alpha); err == nil {
						t.Fatal("admitted")
					}
				}
				for _, lease := range leases {
					lease.Release()
				}
				for other, probe := range probes {
					if other == name {
						continue
					}
					// The budget alone, as it is in the limits above.
					if n := drain(l, probe, alpha, wide+1); n != wide-2 {
						t.Errorf("%s refused 50 calls; of %s, %d tokens are left, want %d", name, other, n, wide-2)
					}
				}
			})
		})
	}
}

func TestConcurrency(t *testing.T) {
	each(t, func(t *testing.T, l ratelimit.Limiter, _ *clock) {
		limits := &ratelimit.Limits{Default: ratelimit.Allowance{Concurrency: new(2)}}
		first, second := admitted(t, l, limits, alpha), admitted(t, l, limits, alpha)
		_, err := l.Take(context.Background(), limits, alpha)
		e := refused(t, err, refusal.ConcurrencyLimited)
		if e.RetryAfterMS != 1000 || e.Status() != 429 || e.Stage != refusal.Rate || !strings.Contains(e.Message, "1000 ms") {
			t.Errorf("got %v, %d ms", e, e.RetryAfterMS)
		}
		admitted(t, l, limits, keyOf("Intern", "web.search", "alpha"))

		first.Release()
		third := admitted(t, l, limits, alpha)
		// A second release, also of a copy, must not free the slot of another.
		duplicate := first
		first.Release()
		duplicate.Release()
		_, err = l.Take(context.Background(), limits, alpha)
		refused(t, err, refusal.ConcurrencyLimited)

		// Lowered below what is in use: nothing until enough has come back.
		lower := &ratelimit.Limits{Default: ratelimit.Allowance{Concurrency: new(1)}}
		second.Release()
		_, err = l.Take(context.Background(), lower, alpha)
		refused(t, err, refusal.ConcurrencyLimited)
		third.Release()
		admitted(t, l, lower, alpha).Release()

		var zero ratelimit.Lease
		zero.Release()
		zero.Release()
	})
}

// Release gives no token back, and a spent budget is told before a full limit,
// since its time is known.
func TestReleaseGivesNoTokenBack(t *testing.T) {
	each(t, func(t *testing.T, l ratelimit.Limiter, clk *clock) {
		limits := onlyDefault(budget("1/s", 1))
		limits.Default.Concurrency = new(1)
		lease := admitted(t, l, limits, alpha)
		_, err := l.Take(context.Background(), limits, alpha)
		refused(t, err, refusal.RateLimited)
		lease.Release()
		_, err = l.Take(context.Background(), limits, alpha)
		if e := refused(t, err, refusal.RateLimited); e.RetryAfterMS != 1000 {
			t.Errorf("wait %d ms, want 1000", e.RetryAfterMS)
		}
		clk.moveMS(1000)
		admitted(t, l, limits, alpha)
		clk.moveMS(1000)
		_, err = l.Take(context.Background(), limits, alpha)
		refused(t, err, refusal.ConcurrencyLimited)
	})
}

func TestMessagesTellTheModelToWaitAndNothingElse(t *testing.T) {
	each(t, func(t *testing.T, l ratelimit.Limiter, _ *clock) {
		for name, limits := range map[string]*ratelimit.Limits{
			"agents.Analyst (": onlyAgent(budget("2/s", 1)), "default (": onlyDefault(budget("2/s", 1)), "tools.web.search (": onlyTool(budget("2/s", 1)),
			"agents.Analyst.tools.web.search (": onlyAgentTool(budget("2/s", 1)), "projects.acme/alpha (": onlyProject(budget("2/s", 1)),
		} {
			drain(l, limits, alpha, 5)
			_, err := l.Take(context.Background(), limits, alpha)
			e := refused(t, err, refusal.RateLimited)
			want := "Too many calls for the moment: wait " + strconv.FormatInt(e.RetryAfterMS, 10) + " ms, then send the same call again."
			if e.Message != want || e.Status() != 429 || e.Stage != refusal.Rate || !e.Retryable() {
				t.Errorf("%s: got %v, want %q", name, e, want)
			}
			if e.Cause == nil || !strings.Contains(e.Cause.Error(), name+"2/s, burst 1)") {
				t.Errorf("the cause %v does not tell the operator of %s", e.Cause, name)
			}
		}
		// A name that the limits do not hold came from outside.
		limits := onlyDefault(budget("1/h", 1))
		drain(l, limits, keyOf("hunter2", "hunter3", "hunter4"), 1)
		_, err := l.Take(context.Background(), limits, keyOf("hunter2", "hunter3", "hunter4"))
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("the error %q tells a name that was made up", err)
		}
	})
}
