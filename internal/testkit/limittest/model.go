package limittest

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// figures are a budget in the model: n tokens each per.
type figures struct {
	n     int64
	per   time.Duration
	burst int64
}

func (f figures) budget() ratelimit.Budget {
	unit := map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h"}[f.per]
	return Budget(fmt.Sprintf("%d/%s", f.n, unit), int(f.burst))
}

// modelBucket counts in fractions, exactly.
type modelBucket struct {
	figures
	tokens *big.Rat
	at     time.Time
	// passed are the times of admission, and seen all figures it ever had.
	passed []time.Time
	seen   []figures
}

func (b *modelBucket) holds(t time.Time) *big.Rat {
	back := new(big.Rat).SetFrac64(int64(t.Sub(b.at))*b.n, int64(b.per))
	back.Add(back, b.tokens)
	if limit := big.NewRat(b.burst, 1); back.Cmp(limit) > 0 {
		return limit
	}
	return back
}

// waits is the exact time until the bucket holds a token, in milliseconds.
func (b *modelBucket) waits(t time.Time) *big.Rat {
	missing := new(big.Rat).Sub(big.NewRat(1, 1), b.holds(t))
	return missing.Mul(missing, big.NewRat(int64(b.per/time.Millisecond), b.n))
}

// adapt changes the figures: tokens that the old ones brought are kept, up to
// the new burst.
func (b *modelBucket) adapt(to figures, now time.Time) {
	b.tokens, b.at = b.holds(now), now
	b.figures = to
	b.tokens = b.holds(now)
	b.seen = append(b.seen, to)
}

func (b *modelBucket) take(now time.Time) {
	b.tokens, b.at = new(big.Rat).Sub(b.holds(now), big.NewRat(1, 1)), now
	b.passed = append(b.passed, now)
}

// modelLimits are limits in the model: figures by the key of the budget, slots
// by agent or "default".
type modelLimits struct {
	figures map[string]figures
	slots   map[string]int
	real    *ratelimit.Limits
}

// slotsOf is how many calls an agent may have in flight; ok is false where
// they are not limited.
func (l modelLimits) slotsOf(agent string) (n int, ok bool) {
	if n, ok = l.slots[agent]; !ok {
		n, ok = l.slots["default"]
	}
	return n, ok
}

// model is the oracle: what a limiter must answer.
type model struct {
	buckets map[string]*modelBucket
	leased  map[string]int
}

// charged returns the buckets that a key takes from, with the figures in force.
func (m *model) charged(l modelLimits, k ratelimit.Key, now time.Time) []*modelBucket {
	agent := "agent " + k.Agent
	from := map[string]string{
		agent:                     agent,
		agent + " tool " + k.Tool: agent + " tool " + k.Tool,
		"tool " + k.Tool:          "tool " + k.Tool,
		"project " + k.Project:    "project " + k.Project,
	}
	if _, own := l.figures[agent]; !own {
		from[agent] = "default"
	}
	var out []*modelBucket
	for name, key := range from {
		f, applies := l.figures[key]
		if !applies {
			continue
		}
		b := m.buckets[name]
		if b == nil {
			b = &modelBucket{figures: f, tokens: big.NewRat(f.burst, 1), at: now, seen: []figures{f}}
			m.buckets[name] = b
		}
		if b.figures != f {
			b.adapt(f, now)
		}
		out = append(out, b)
	}
	return out
}

// wait is how many milliseconds the buckets are short of a token, rounded up.
// Where the exact time is within two nanoseconds of a whole millisecond, but
// not on it, doubt is true: rounding decides.
func wait(charged []*modelBucket, now time.Time) (ms int64, doubt bool) {
	for _, b := range charged {
		exact := b.waits(now)
		n := ceil(exact)
		for _, whole := range []int64{n - 1, n} {
			off := new(big.Rat).Sub(exact, big.NewRat(whole, 1))
			doubt = doubt || off.Sign() != 0 && off.Abs(off).Cmp(big.NewRat(2, 1_000_000)) < 0
		}
		ms = max(ms, n)
	}
	return ms, doubt
}

func ceil(r *big.Rat) int64 {
	if r.Sign() <= 0 {
		return 0
	}
	q, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}

var (
	modelAgents   = []string{"Analyst", "Intern", "Clerk"}
	modelTools    = []string{"web.search", "files.read"}
	modelProjects = []string{"alpha", "beta"}
)

func drawFigures() *rapid.Generator[figures] {
	return rapid.Custom(func(t *rapid.T) figures {
		return figures{
			n:     rapid.Int64Range(1, 20).Draw(t, "n"),
			per:   rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(t, "per"),
			burst: rapid.Int64Range(1, 6).Draw(t, "burst"),
		}
	})
}

// often is true three times out of four.
func often(t *rapid.T, label string) bool { return rapid.IntRange(0, 3).Draw(t, label) > 0 }

func drawLimits(t *rapid.T) modelLimits {
	l := modelLimits{figures: map[string]figures{}, slots: map[string]int{}, real: &ratelimit.Limits{
		Agents: map[string]ratelimit.Agent{}, Tools: map[string]ratelimit.Budget{}, Projects: map[ratelimit.Project]ratelimit.Budget{},
		Replicas: 1,
	}}
	maybe := func(name string, put func(ratelimit.Budget)) {
		if often(t, name) {
			f := drawFigures().Draw(t, name)
			l.figures[name] = f
			put(f.budget())
		}
	}
	slots := func(agent string) *int {
		if !often(t, agent+" slots") {
			return nil
		}
		n := rapid.IntRange(1, 4).Draw(t, agent+" slots")
		l.slots[agent] = n
		return &n
	}
	maybe("default", func(b ratelimit.Budget) { l.real.Default.Budget = &b })
	l.real.Default.Concurrency = slots("default")
	for _, agent := range modelAgents[:2] {
		if !often(t, agent) {
			continue
		}
		a := ratelimit.Agent{Tools: map[string]ratelimit.Budget{}}
		maybe("agent "+agent, func(b ratelimit.Budget) { a.Budget = &b })
		a.Concurrency = slots(agent)
		maybe("agent "+agent+" tool web.search", func(b ratelimit.Budget) { a.Tools["web.search"] = b })
		l.real.Agents[agent] = a
	}
	maybe("tool web.search", func(b ratelimit.Budget) { l.real.Tools["web.search"] = b })
	maybe("project alpha", func(b ratelimit.Budget) { l.real.Projects[Acme("alpha")] = b })
	if faults := l.real.Validate(); faults != nil {
		t.Fatalf("the limits drawn are not valid: %v", faults)
	}
	return l
}

// Over any sequence of takes, releases, waits and changes of limits, a
// limiter answers as the model does: the same refusals with the same time to
// wait, and never more admitted than the rate and a burst.
func (bs Backends) agreesWithTheModel(t *testing.T) {
	for name, open := range bs {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				runModel(rt, func(clock func() time.Time) ratelimit.Limiter { return open(t, clock) })
			})
		})
	}
}

func runModel(t *rapid.T, open func(func() time.Time) ratelimit.Limiter) {
	clk := NewClock(Epoch)
	l := open(clk.Now)
	m := &model{buckets: map[string]*modelBucket{}, leased: map[string]int{}}
	limits := drawLimits(t)
	var leases []modelLease
	take := func(t *rapid.T, key ratelimit.Key) {
		charged := m.charged(limits, key, clk.Now())
		slots, counted := limits.slotsOf(key.Agent)
		lease, err := l.Take(context.Background(), limits.real, key)
		if ms, doubt := wait(charged, clk.Now()); !doubt {
			compare(t, err, ms, counted && m.leased[key.Agent] >= slots)
		}
		if err != nil {
			return
		}
		for _, b := range charged {
			b.take(clk.Now())
		}
		if counted {
			m.leased[key.Agent]++
		}
		leases = append(leases, modelLease{lease, key.Agent, counted})
	}
	t.Repeat(map[string]func(*rapid.T){
		"take": func(t *rapid.T) {
			key := KeyOf(rapid.SampledFrom(modelAgents).Draw(t, "agent"), rapid.SampledFrom(modelTools).Draw(t, "tool"),
				rapid.SampledFrom(modelProjects).Draw(t, "project"))
			for range rapid.IntRange(1, 6).Draw(t, "times") {
				take(t, key)
			}
		},
		"release": func(t *rapid.T) {
			if len(leases) == 0 {
				t.Skip("nothing held")
			}
			i := rapid.IntRange(0, len(leases)-1).Draw(t, "lease")
			lease := leases[i]
			leases = slices.Delete(leases, i, i+1)
			lease.Release()
			lease.Release()
			if lease.counted {
				m.leased[lease.agent]--
			}
		},
		"wait": func(t *rapid.T) {
			clk.MoveMS(rapid.OneOf(rapid.Int64Range(0, 50), rapid.Int64Range(0, 5000), rapid.Int64Range(0, 4_000_000)).Draw(t, "ms"))
		},
		"change": func(t *rapid.T) { limits = drawLimits(t) },
	})
	for _, b := range m.buckets {
		var perSecond float64
		var burst int
		for _, f := range b.seen {
			perSecond = max(perSecond, float64(f.n)/f.per.Seconds())
			burst = max(burst, int(f.burst))
		}
		OverAdmission(t, b.passed, perSecond, burst)
	}
}

// modelLease is a lease, and whether the limits of its time counted it.
type modelLease struct {
	ratelimit.Lease
	agent   string
	counted bool
}

// compare fails where an answer is not the model's.
func compare(t *rapid.T, err error, ms int64, crowded bool) {
	var e *refusal.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("got %v, want a refusal", err)
	}
	switch {
	case ms > 0:
		if e == nil || e.Code != refusal.RateLimited || e.RetryAfterMS != ms {
			t.Fatalf("got %v, want rate_limited for %d ms", err, ms)
		}
	case crowded:
		if e == nil || e.Code != refusal.ConcurrencyLimited {
			t.Fatalf("got %v, want concurrency_limited", err)
		}
	case e != nil:
		t.Fatalf("got %v, want it admitted", err)
	}
}
