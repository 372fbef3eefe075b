package limittest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// OnlyAgent returns limits whose one budget, an agent's, bounds alpha.
func OnlyAgent(b ratelimit.Budget) *ratelimit.Limits {
	return &ratelimit.Limits{Agents: map[string]ratelimit.Agent{"Analyst": {Allowance: ratelimit.Allowance{Budget: &b}}}}
}

// OnlyDefault returns limits whose one budget, of agents without an entry, bounds alpha.
func OnlyDefault(b ratelimit.Budget) *ratelimit.Limits {
	return &ratelimit.Limits{Default: ratelimit.Allowance{Budget: &b}}
}

// OnlyAgentTool returns limits whose one budget, an agent's for a tool, bounds alpha.
func OnlyAgentTool(b ratelimit.Budget) *ratelimit.Limits {
	return &ratelimit.Limits{Agents: map[string]ratelimit.Agent{"Analyst": {Tools: map[string]ratelimit.Budget{"web.search": b}}}}
}

// OnlyTool returns limits whose one budget, a tool's, bounds alpha.
func OnlyTool(b ratelimit.Budget) *ratelimit.Limits {
	return &ratelimit.Limits{Tools: map[string]ratelimit.Budget{"web.search": b}}
}

// OnlyProject returns limits whose one budget, a project's, bounds alpha.
func OnlyProject(b ratelimit.Budget) *ratelimit.Limits {
	return &ratelimit.Limits{Projects: map[ratelimit.Project]ratelimit.Budget{Acme("alpha"): b}}
}

// Combined has every budget of a call.
func Combined(agent, agentTool, tool, project ratelimit.Budget) *ratelimit.Limits {
	l := OnlyAgent(agent)
	l.Agents["Analyst"] = ratelimit.Agent{Allowance: l.Agents["Analyst"].Allowance, Tools: OnlyAgentTool(agentTool).Agents["Analyst"].Tools}
	l.Tools, l.Projects = OnlyTool(tool).Tools, OnlyProject(project).Projects
	return l
}

// The burst passes, one more does not, and retry_after_ms is exact: so many
// milliseconds later it passes, and one earlier it does not.
func (bs Backends) retryAfterIsExact(t *testing.T) {
	wide := Budget("1000/s", 1000)
	cases := map[string]struct {
		limits *ratelimit.Limits
		burst  int
		wantMS int64 // of the first refusal
	}{
		"agent 2/s":         {OnlyAgent(Budget("2/s", 5)), 5, 500},
		"agent 3/s":         {OnlyAgent(Budget("3/s", 2)), 2, 334},
		"default 7/m":       {OnlyDefault(Budget("7/m", 1)), 1, 8572},
		"agent's tool 30/m": {OnlyAgentTool(Budget("30/m", 5)), 5, 2000},
		"tool 1000000/s":    {OnlyTool(Budget("1000000/s", 3)), 3, 1},
		"tool 999/s":        {OnlyTool(Budget("999/s", 3)), 3, 2},
		"project 1/h":       {OnlyProject(Budget("1/h", 1)), 1, 3_600_000},
		"project 3601/h":    {OnlyProject(Budget("3601/h", 10)), 10, 1000},
		"agent of four":     {Combined(Budget("2/s", 3), wide, wide, wide), 3, 500},
		"tool of four":      {Combined(wide, wide, Budget("30/m", 3), wide), 3, 2000},
		// All four are spent by the third call: the longest wait counts.
		"four at once": {Combined(Budget("2/s", 3), Budget("30/m", 3), Budget("100/s", 3), Budget("100/h", 3)), 3, 36_000},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bs.each(t, func(t *testing.T, l ratelimit.Limiter, clk *Clock) {
				if n := Drain(l, c.limits, Alpha, c.burst+5); n != c.burst {
					t.Fatalf("%d admitted, want the burst of %d", n, c.burst)
				}
				want := c.wantMS
				for round := range 20 {
					// Refusals at odd moments must not shift what comes back.
					clk.Move(time.Duration(round*137) * time.Microsecond % time.Millisecond)
					_, err := l.Take(context.Background(), c.limits, Alpha)
					if err == nil && round > 0 {
						continue // a fast rate may have brought a token meanwhile
					}
					ms := Refused(t, err, refusal.RateLimited).RetryAfterMS
					if round == 0 && ms != want {
						t.Fatalf("wait %d ms, want %d", ms, want)
					}
					clk.MoveMS(ms - 1)
					if _, err := l.Take(context.Background(), c.limits, Alpha); ms > 1 {
						if left := Refused(t, err, refusal.RateLimited).RetryAfterMS; left != 1 {
							t.Fatalf("round %d: a millisecond before the end, wait %d ms", round, left)
						}
					}
					clk.MoveMS(1)
					Admitted(t, l, c.limits, Alpha)
				}
			})
		})
	}
}

// The time to wait is exact where the clock stands a nanosecond beside the
// millisecond, and the division could round either way.
func (bs Backends) retryAfterIsExactToTheNanosecond(t *testing.T) {
	bs.each(t, func(t *testing.T, l ratelimit.Limiter, clk *Clock) {
		for n := range 60 {
			for _, unit := range []string{"s", "m", "h"} {
				limits := OnlyDefault(Budget(strconv.Itoa(n+1)+"/"+unit, 1))
				for i, offset := range []time.Duration{0, 1, 2, 999_999, 999_998, 500_000} {
					key := KeyOf(unit+strconv.Itoa(100*n+i), "t", "")
					Admitted(t, l, limits, key)
					clk.Move(time.Millisecond + offset)
					_, err := l.Take(context.Background(), limits, key)
					ms := Refused(t, err, refusal.RateLimited).RetryAfterMS
					clk.MoveMS(ms - 1)
					if _, err = l.Take(context.Background(), limits, key); err == nil {
						t.Fatalf("%d/%s: admitted before %d ms were over", n+1, unit, ms)
					}
					clk.MoveMS(1)
					Admitted(t, l, limits, key)
				}
			}
		}
	})
}

func (bs Backends) callerRetryAfterIsExact(t *testing.T) {
	bs.each(t, func(t *testing.T, l ratelimit.Limiter, clk *Clock) {
		b := Budget("3/s", 2)
		limits := &ratelimit.Limits{Caller: &b}
		send := func(caller string) error { return l.Caller(context.Background(), limits, caller) }
		for range 2 {
			if err := send("192.0.2.1"); err != nil {
				t.Fatal(err)
			}
		}
		e := Refused(t, send("192.0.2.1"), refusal.CallerRateLimited)
		if e.RetryAfterMS != 334 || e.Stage != refusal.Identity || e.Status() != 429 || !strings.Contains(e.Message, "wait 334 ms") {
			t.Fatalf("got %v, %d ms", e, e.RetryAfterMS)
		}
		if err := send("192.0.2.2"); err != nil {
			t.Fatalf("another caller: %v", err)
		}
		clk.MoveMS(333)
		Refused(t, send("192.0.2.1"), refusal.CallerRateLimited)
		clk.MoveMS(1)
		if err := send("192.0.2.1"); err != nil {
			t.Fatal(err)
		}
		// Callers and agents of one name have nothing to do with each other.
		both := OnlyDefault(b)
		both.Caller = &b
		if n := Drain(l, both, KeyOf("192.0.2.1", "t", "alpha"), 5); n != 2 {
			t.Fatalf("%d calls admitted, want 2", n)
		}
	})
}

func (bs Backends) whatIsNotStatedDoesNotApply(t *testing.T) {
	bs.each(t, func(t *testing.T, l ratelimit.Limiter, _ *Clock) {
		limits := &ratelimit.Limits{}
		for range 5000 {
			Admitted(t, l, limits, Alpha) // never released
			if err := l.Caller(context.Background(), limits, "192.0.2.1"); err != nil {
				t.Fatal(err)
			}
		}
		elsewhere := Combined(Budget("1/h", 1), Budget("1/h", 1), Budget("1/h", 1), Budget("1/h", 1))
		for range 5000 {
			Admitted(t, l, elsewhere, KeyOf("Intern", "files.read", "beta"))
		}
		// A call of no project has no project budget.
		for range 2 {
			Admitted(t, l, OnlyProject(Budget("1/h", 1)), ratelimit.Key{Agent: "Analyst", Tool: "web.search"})
		}
	})
}

func (bs Backends) whoSharesABucket(t *testing.T) {
	b := Budget("1/h", 3)
	named := OnlyDefault(Budget("1/h", 2))
	named.Agents = OnlyAgent(b).Agents
	cases := map[string]struct {
		limits *ratelimit.Limits
		keys   []ratelimit.Key
		want   []int // admitted, one key after the other
	}{
		"default: a bucket for each agent": {OnlyDefault(b),
			[]ratelimit.Key{Alpha, KeyOf("Intern", "web.search", "alpha"), KeyOf("analyst", "x", "y"), Alpha}, []int{3, 3, 3, 0}},
		"a named agent has its own figures": {named, []ratelimit.Key{Alpha, KeyOf("Intern", "web.search", "alpha")}, []int{3, 2}},
		"an agent's tools share its budget": {OnlyAgent(b), []ratelimit.Key{Alpha, KeyOf("Analyst", "files.read", "beta")}, []int{3, 0}},
		"agent and tool together": {OnlyAgentTool(b),
			[]ratelimit.Key{Alpha, KeyOf("Analyst", "web.search", "beta"), KeyOf("Analyst", "files.read", "alpha"),
				KeyOf("Intern", "web.search", "alpha")}, []int{3, 0, 10, 10}},
		"a tool is shared by agents": {OnlyTool(b),
			[]ratelimit.Key{Alpha, KeyOf("Intern", "web.search", "beta"), KeyOf("Intern", "files.read", "alpha")}, []int{3, 0, 10}},
		"a project is shared by agents": {OnlyProject(b),
			[]ratelimit.Key{Alpha, KeyOf("Intern", "files.read", "alpha"), KeyOf("Intern", "files.read", "beta")}, []int{3, 0, 10}},
		"a project of another workspace": {OnlyProject(b),
			[]ratelimit.Key{Alpha, {Agent: "A", Tool: "t", Workspace: "other", Project: "alpha"}}, []int{3, 10}},
		"long names are distinguished": {OnlyDefault(b),
			[]ratelimit.Key{KeyOf(strings.Repeat("x", 500)+"1", "t", ""), KeyOf(strings.Repeat("x", 500)+"2", "t", ""),
				KeyOf(strings.Repeat("x", 500)+"1", "t", "")}, []int{3, 3, 0}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bs.each(t, func(t *testing.T, l ratelimit.Limiter, _ *Clock) {
				for i, key := range c.keys {
					if n := Drain(l, c.limits, key, 10); n != c.want[i] {
						t.Errorf("%d %+v: %d admitted, want %d", i, key, n, c.want[i])
					}
				}
			})
		})
	}
}

// Naming an agent to add one limit lifts none of the default's.
func (bs Backends) aNamedAgentHasTheDefaultsOfWhatItDoesNotState(t *testing.T) {
	fallback := Budget("1/h", 4)
	generous := Budget("1/h", 100)
	tests := map[string]struct {
		agent ratelimit.Agent
		calls int // admitted, each released at once
		slots int // at the same time
	}{
		"nothing stated":   {ratelimit.Agent{}, 4, 2},
		"only a tool":      {ratelimit.Agent{Tools: map[string]ratelimit.Budget{"web.search": Budget("1/h", 50)}}, 4, 2},
		"only concurrency": {ratelimit.Agent{Allowance: ratelimit.Allowance{Concurrency: new(3)}}, 4, 3},
		"only a rate":      {ratelimit.Agent{Allowance: ratelimit.Allowance{Budget: &generous}}, 100, 2},
		"both, and more":   {ratelimit.Agent{Allowance: ratelimit.Allowance{Budget: &generous, Concurrency: new(50)}}, 100, 50},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			bs.each(t, func(t *testing.T, l ratelimit.Limiter, clk *Clock) {
				limits := &ratelimit.Limits{
					Default: ratelimit.Allowance{Budget: &fallback, Concurrency: new(2)},
					Agents:  map[string]ratelimit.Agent{"Analyst": c.agent},
				}
				if n := Drain(l, limits, Alpha, 200); n != c.calls {
					t.Errorf("%d admitted, want %d", n, c.calls)
				}
				clk.Move(100 * time.Hour)
				inUse := 0
				for range 60 {
					if _, err := l.Take(context.Background(), limits, Alpha); err != nil {
						break
					}
					inUse++
				}
				if inUse != c.slots {
					t.Errorf("%d at the same time, want %d", inUse, c.slots)
				}
			})
		})
	}
}

// Whatever refuses, nothing else is taken.
func (bs Backends) allOrNone(t *testing.T) {
	const wide = 20
	spent := Budget("1/h", 2)
	full := Budget("1/h", wide)
	cases := map[string]*ratelimit.Limits{
		"agent":        Combined(spent, full, full, full),
		"agent's tool": Combined(full, spent, full, full),
		"tool":         Combined(full, full, spent, full),
		"project":      Combined(full, full, full, spent),
	}
	slots := Combined(full, full, full, full)
	slots.Default.Concurrency = new(2)
	cases["slots"] = slots
	probes := map[string]*ratelimit.Limits{
		"agent": OnlyAgent(full), "agent's tool": OnlyAgentTool(full), "tool": OnlyTool(full), "project": OnlyProject(full),
	}
	for name, limits := range cases {
		t.Run(name, func(t *testing.T) {
			bs.each(t, func(t *testing.T, l ratelimit.Limiter, _ *Clock) {
				var leases []ratelimit.Lease
				for range 2 {
					leases = append(leases, Admitted(t, l, limits, Alpha))
				}
				for range 50 {
					if _, err := l.Take(context.Background(), limits, Alpha); err == nil {
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
					if n := Drain(l, probe, Alpha, wide+1); n != wide-2 {
						t.Errorf("%s refused 50 calls; of %s, %d tokens are left, want %d", name, other, n, wide-2)
					}
				}
			})
		})
	}
}

func (bs Backends) concurrency(t *testing.T) {
	bs.each(t, func(t *testing.T, l ratelimit.Limiter, _ *Clock) {
		limits := &ratelimit.Limits{Default: ratelimit.Allowance{Concurrency: new(2)}}
		first, second := Admitted(t, l, limits, Alpha), Admitted(t, l, limits, Alpha)
		_, err := l.Take(context.Background(), limits, Alpha)
		e := Refused(t, err, refusal.ConcurrencyLimited)
		if e.RetryAfterMS != 1000 || e.Status() != 429 || e.Stage != refusal.Rate || !strings.Contains(e.Message, "1000 ms") {
			t.Errorf("got %v, %d ms", e, e.RetryAfterMS)
		}
		Admitted(t, l, limits, KeyOf("Intern", "web.search", "alpha"))

		first.Release()
		third := Admitted(t, l, limits, Alpha)
		// A second release, also of a copy, must not free the slot of another.
		duplicate := first
		first.Release()
		duplicate.Release()
		_, err = l.Take(context.Background(), limits, Alpha)
		Refused(t, err, refusal.ConcurrencyLimited)

		// Lowered below what is in use: nothing until enough has come back.
		lower := &ratelimit.Limits{Default: ratelimit.Allowance{Concurrency: new(1)}}
		second.Release()
		_, err = l.Take(context.Background(), lower, Alpha)
		Refused(t, err, refusal.ConcurrencyLimited)
		third.Release()
		Admitted(t, l, lower, Alpha).Release()

		var zero ratelimit.Lease
		zero.Release()
		zero.Release()
	})
}

// Release gives no token back, and a spent budget is reported before a full limit,
// since its time is known.
func (bs Backends) releaseGivesNoTokenBack(t *testing.T) {
	bs.each(t, func(t *testing.T, l ratelimit.Limiter, clk *Clock) {
		limits := OnlyDefault(Budget("1/s", 1))
		limits.Default.Concurrency = new(1)
		lease := Admitted(t, l, limits, Alpha)
		_, err := l.Take(context.Background(), limits, Alpha)
		Refused(t, err, refusal.RateLimited)
		lease.Release()
		_, err = l.Take(context.Background(), limits, Alpha)
		if e := Refused(t, err, refusal.RateLimited); e.RetryAfterMS != 1000 {
			t.Errorf("wait %d ms, want 1000", e.RetryAfterMS)
		}
		clk.MoveMS(1000)
		Admitted(t, l, limits, Alpha)
		clk.MoveMS(1000)
		_, err = l.Take(context.Background(), limits, Alpha)
		Refused(t, err, refusal.ConcurrencyLimited)
	})
}

func (bs Backends) messagesTellTheModelToWaitAndNothingElse(t *testing.T) {
	bs.each(t, func(t *testing.T, l ratelimit.Limiter, _ *Clock) {
		for name, limits := range map[string]*ratelimit.Limits{
			"agents.Analyst (": OnlyAgent(Budget("2/s", 1)), "default (": OnlyDefault(Budget("2/s", 1)),
			"tools.web.search (":                OnlyTool(Budget("2/s", 1)),
			"agents.Analyst.tools.web.search (": OnlyAgentTool(Budget("2/s", 1)), "projects.acme/alpha (": OnlyProject(Budget("2/s", 1)),
		} {
			Drain(l, limits, Alpha, 5)
			_, err := l.Take(context.Background(), limits, Alpha)
			e := Refused(t, err, refusal.RateLimited)
			want := "Too many calls for the moment: wait " + strconv.FormatInt(e.RetryAfterMS, 10) + " ms, then send the same call again."
			if e.Message != want || e.Status() != 429 || e.Stage != refusal.Rate || !e.Retryable() {
				t.Errorf("%s: got %v, want %q", name, e, want)
			}
			if e.Cause == nil || !strings.Contains(e.Cause.Error(), name+"2/s, burst 1)") {
				t.Errorf("the cause %v does not tell the operator of %s", e.Cause, name)
			}
		}
		// A name that the limits do not hold came from outside.
		limits := OnlyDefault(Budget("1/h", 1))
		Drain(l, limits, KeyOf("hunter2", "hunter3", "hunter4"), 1)
		_, err := l.Take(context.Background(), limits, KeyOf("hunter2", "hunter3", "hunter4"))
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("the error %q tells a name that was made up", err)
		}
	})
}

// A call that has paid passes where every budget is spent, takes no token where it is not,
// and needs a slot as any other.
func (bs Backends) aPaidCallTakesItsSlotAlone(t *testing.T) {
	bs.each(t, func(t *testing.T, l ratelimit.Limiter, _ *Clock) {
		few := Budget("1/h", 2)
		limits := Combined(few, few, few, few)
		limits.Default.Concurrency = new(1)
		paid := Alpha
		paid.Paid = true
		if n := Drain(l, limits, paid, 10); n != 10 {
			t.Fatalf("%d paid calls were admitted, want all 10", n)
		}
		if n := Drain(l, limits, Alpha, 10); n != 2 {
			t.Fatalf("%d calls were admitted beside paid ones, want the burst of 2", n)
		}
		lease := Admitted(t, l, limits, paid)
		_, err := l.Take(context.Background(), limits, paid)
		Refused(t, err, refusal.ConcurrencyLimited)
		lease.Release()
		Admitted(t, l, limits, paid).Release()
	})
}
