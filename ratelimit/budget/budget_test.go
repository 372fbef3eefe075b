package budget_test

import (
	"errors"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/internal/testkit/budgettest"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/refusal"
)

// TestWindowsPartition: each time is in exactly one window, in every zone, whatever its clocks do.
func TestWindowsPartition(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Beirut", "Asia/Kathmandu", "Pacific/Apia", "America/Havana"}
	rapid.Check(t, func(t *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Skip(err)
		}
		w := rapid.SampledFrom([]budget.Window{budget.Hour, budget.Day, budget.Week, budget.Month}).Draw(t, "window")
		at := time.Unix(rapid.Int64Range(0, 2_000_000_000).Draw(t, "at"), 0)
		start, end := w.Bounds(at, zone)
		if at.Before(start) || !at.Before(end) {
			t.Fatalf("%s in %s: found %s to %s", at.In(zone), zone, start, end)
		}
		for _, inside := range []time.Time{start, end.Add(-time.Second)} {
			if s, e := w.Bounds(inside, zone); !s.Equal(start) || !e.Equal(end) {
				t.Fatalf("%s and %s of one window of %s: %s to %s and %s to %s", at, inside, zone, start, end, s, e)
			}
		}
		for _, outside := range []time.Time{start.Add(-time.Second), end} {
			if s, _ := w.Bounds(outside, zone); s.Equal(start) {
				t.Fatalf("%s is in the window that begins %s, and %s too", at, start, outside)
			}
		}
	})
}

func TestWindows(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	at := time.Date(2026, 3, 29, 12, 30, 0, 0, berlin) // a Sunday of 23 hours
	for w, want := range map[budget.Window]string{
		budget.Hour:  "2026-03-29T12:00:00+02:00 1h0m0s",
		budget.Day:   "2026-03-29T00:00:00+01:00 23h0m0s",
		budget.Week:  "2026-03-23T00:00:00+01:00 167h0m0s",
		budget.Month: "2026-03-01T00:00:00+01:00 743h0m0s",
	} {
		start, end := w.Bounds(at, berlin)
		if got := start.In(berlin).Format(time.RFC3339) + " " + end.Sub(start).String(); got != want {
			t.Errorf("%s: found %s, expected %s", w, got, want)
		}
	}
}

func TestMoney(t *testing.T) {
	for text, want := range map[string]int64{
		"12.50": 12_500_000, "0.000001": 1, "1": 1_000_000, "0": 0, "0.10": 100_000, "1000000000": budget.Most, "100": 100_000_000,
		"": -1, "-1": -1, "1e3": -1, "0.0000001": -1, "1.": -1, ".5": -1, "01": -1, "1000000000.000001": -1, "1,5": -1, " 1": -1, "99999999999999999999": -1,
	} {
		got, err := budget.ParseMoney(text)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v; expected %d", text, got, err, want)
		}
	}
	for micros, want := range map[int64]string{12_500_000: "12.50", 1: "0.000001", 0: "0.00", 1_234_500: "1.2345"} {
		if got := budget.FormatMoney(micros); got != want {
			t.Errorf("%d: %q", micros, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(0, budget.Most).Draw(t, "micros")
		if got, err := budget.ParseMoney(budget.FormatMoney(micros)); err != nil || got != micros {
			t.Fatalf("%d is read as %d, %v", micros, got, err)
		}
	})
}

// TestCostIsExact: a cost is the exact sum, rounded up to a millionth, once.
func TestCostIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string) int64 { return rapid.Int64Range(0, budget.Most).Draw(t, name) }
		u := budget.Usage{Input: n("input"), CachedInput: n("cached"), CacheWrite: n("write"), Output: n("output")}
		p := budget.Price{Input: n("p1"), CachedInput: n("p2"), CacheWrite: n("p3"), Output: n("p4")}
		if rapid.Bool().Draw(t, "small") {
			p = budget.Price{Input: p.Input % 50_000_000, CachedInput: p.CachedInput % 50_000_000, CacheWrite: p.CacheWrite % 50_000_000, Output: p.Output % 50_000_000}
			u = budget.Usage{Input: u.Input % 5_000_000, CachedInput: u.CachedInput % 5_000_000, CacheWrite: u.CacheWrite % 5_000_000, Output: u.Output % 5_000_000}
		}
		sum := new(big.Int)
		for _, part := range [][2]int64{{u.Input, p.Input}, {u.CachedInput, p.CachedInput}, {u.CacheWrite, p.CacheWrite}, {u.Output, p.Output}} {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(part[0]), big.NewInt(part[1])))
		}
		sum.Add(sum, big.NewInt(999_999)).Quo(sum, big.NewInt(1_000_000))
		want := int64(budget.Most)
		if sum.IsInt64() {
			want = min(want, sum.Int64())
		}
		if got := p.Cost(u); got != want {
			t.Fatalf("found %d, expected %d", got, want)
		}
		input := budget.Usage{Input: u.Input, CachedInput: u.CachedInput, CacheWrite: u.CacheWrite}.Tokens()
		if input == budget.Most { // the sum is capped, and says nothing
			return
		}
		if bound := p.Bound(input, u.Output); bound < p.Cost(u) {
			t.Fatalf("the bound %d is below the cost %d", bound, p.Cost(u))
		}
	})
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"*", "a/b", true}, {"acme/*", "acme/alpha", true}, {"acme/*", "acme", false},
		{"*-mini", "gpt-5-mini", true}, {"*-mini", "gpt-5-mini-2", false}, {"a*b*c", "aXbYbZc", true}, {"a*b*c", "acb", false}, {"a*a", "a", false}, {"**", "x", true}, {"", "", true}, {"", "a", false},
	} {
		if got := budget.Matches(c.pattern, c.name); got != c.want {
			t.Errorf("%q and %q: %v", c.pattern, c.name, got)
		}
	}
}

// TestCovers: a request that names no agent counts for the budgets of every agent, and one without a
// project for those of every project, so that leaving a name out escapes no budget.
func TestCovers(t *testing.T) {
	set := &budget.Set{Budgets: []budget.Budget{{Name: "b", Agents: []string{"A*"}, Principals: []string{"p"}, Projects: []string{"acme/*"}, Models: []string{"gpt-*"}, Per: budget.PerProject}}}
	whole := budget.Scope{Agent: "Analyst", Principal: "p", Workspace: "acme", Project: "alpha", Model: "gpt-5"}
	if got := set.Charges(whole); len(got) != 1 || got[0].Subject != "acme/alpha" {
		t.Errorf("found %+v", got)
	}
	for name, c := range map[string]struct {
		change func(*budget.Scope)
		want   bool
	}{
		"no agent":        {func(s *budget.Scope) { s.Agent = "" }, true},
		"no project":      {func(s *budget.Scope) { s.Workspace, s.Project = "", "" }, true},
		"another agent":   {func(s *budget.Scope) { s.Agent = "Intern" }, false},
		"another caller":  {func(s *budget.Scope) { s.Principal = "q" }, false},
		"another project": {func(s *budget.Scope) { s.Workspace = "other" }, false},
		"another model":   {func(s *budget.Scope) { s.Model = "claude" }, false},
	} {
		s := whole
		if c.change(&s); set.Covers(s) != c.want {
			t.Errorf("%s: covered %v", name, !c.want)
		}
	}
}

func TestPriceOfAModel(t *testing.T) {
	set := &budget.Set{Prices: []budget.ModelPrice{{"*", budget.Price{Input: 1}}, {"gpt-*", budget.Price{Input: 2}}, {"gpt-5", budget.Price{Input: 3}}}}
	for model, want := range map[string]int64{"gpt-5": 3, "gpt-5-mini": 2, "claude": 1} {
		if got, ok := set.Price(model); !ok || got.Input != want {
			t.Errorf("%s: %+v", model, got)
		}
	}
	if _, ok := (&budget.Set{}).Price("x"); ok {
		t.Error("a model has a price that nobody stated")
	}
}

// TestMoneyWithoutPrice: a budget of money refuses a model without a price.
func TestMoneyWithoutPrice(t *testing.T) {
	set := budgettest.One(0)
	set.Budgets[0].Limit = budget.Amount{Micros: 1_000_000}
	ledger, _ := budgettest.Open(t, set)
	_, err := ledger.Reserve(t.Context(), set, budget.Scope{Model: "m"}, 1, 1)
	var refused *refusal.Error
	if !errors.As(err, &refused) || refused.Code != refusal.LimiterUnavailable {
		t.Errorf("found %v", err)
	}
}

// TestManyAtOnce: however many reserve at once, what is settled and what is reserved never exceed the
// budget.
func TestManyAtOnce(t *testing.T) {
	const limit, amount, requests = 10_000, 70, 2_000
	set := budgettest.One(limit)
	ledger, book := budgettest.Open(t, set)
	var group sync.WaitGroup
	var spent, granted atomic.Int64
	for i := range requests {
		group.Go(func() {
			h, err := ledger.Reserve(t.Context(), set, budget.Scope{}, amount-10, 10)
			if err != nil {
				return
			}
			granted.Add(1)
			switch i % 3 {
			case 0:
				h.Keep()
				spent.Add(amount)
			case 1:
				h.Settle(budget.Usage{Input: 30, Output: 1})
				spent.Add(31)
			default:
				h.GiveBack()
			}
		})
	}
	group.Wait()
	states, err := book.Read(t.Context(), set.Charges(budget.Scope{}))
	if err != nil || states[0].Spent.Tokens != spent.Load() || spent.Load() > limit || granted.Load() == 0 {
		t.Errorf("counted %+v, spent %d of %d by %d requests, %v", states, spent.Load(), limit, granted.Load(), err)
	}
}

// BenchmarkNoBudgets: a gateway without budgets pays one look for each request.
func BenchmarkNoBudgets(b *testing.B) {
	ledger := &budget.Ledger{Current: func() *budget.Set { return nil }}
	b.ReportAllocs()
	for b.Loop() {
		if ledger.Set() != nil {
			b.Fatal("there is a budget")
		}
	}
}
