package policy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Each call counts once for the rows that it matched, and for those that decided it, whether the
// arguments matter or not. A question about a call that is not made counts nothing.
func TestCounts(t *testing.T) {
	p := mustLoad(t, strings.Join([]string{
		`p, Analyst, *, *, , allow`,
		`p, Analyst, acme/*, payments.refund, args.amount > 100, deny`,
		`p, Analyst, acme/alpha, payments.refund, args.amount > 50, ask:refunds`,
		`p, Analyst, *, files.*, , ask:files`,
		`p, Intern, *, files.delete, , allow`,
		`p, Intern, *, files.delete, , deny`,
		`p, Intern, *, web.fetch, "args.url == 'x'", allow`,
	}, "\n"))
	amount := func(n int) map[string]any { return map[string]any{"amount": json.Number(fmt.Sprint(n))} }
	for _, c := range []struct {
		times        int
		agent, tool  string
		arguments    map[string]any
		project      string
		wantMatching []int // rows, by their place
		wantDeciding []int
	}{
		{3, "Analyst", "web.search", nil, "alpha", []int{0}, []int{0}},
		{5, "Analyst", "payments.refund", amount(7), "alpha", []int{0}, []int{0}},
		{7, "Analyst", "payments.refund", amount(70), "alpha", []int{0, 2}, []int{2}},
		{11, "Analyst", "payments.refund", amount(700), "alpha", []int{0, 1}, []int{1}},
		{13, "Analyst", "payments.refund", amount(70), "beta", []int{0}, []int{0}},
		{17, "Analyst", "payments.refund", map[string]any{"amount": "many"}, "beta", []int{0, 1}, []int{1}}, // its condition fails
		{19, "Analyst", "files.read", nil, "alpha", []int{0, 3}, []int{3}},
		{23, "Intern", "files.delete", nil, "alpha", []int{4, 5}, []int{5}},
		{29, "Intern", "web.fetch", map[string]any{"url": "y"}, "alpha", nil, nil},
		{31, "Intern", "time.now", nil, "alpha", nil, nil},
		{37, "Nobody", "time.now", nil, "alpha", nil, nil},
	} {
		before := p.Counts()
		r := Request{c.agent, "acme", c.project, c.tool, c.arguments, nil}
		for range c.times {
			if _, err := p.Permit(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if _, err := p.PermitCounted(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Explain(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		for i, after := range p.Counts() {
			var want Count
			if slices.Contains(c.wantMatching, i) {
				want.Matched = uint64(c.times)
			}
			if slices.Contains(c.wantDeciding, i) {
				want.Decided = uint64(c.times)
			}
			if got := (Count{after.Matched - before[i].Matched, after.Decided - before[i].Decided}); got != want {
				t.Errorf("%s with %s and %v: row %d counted %+v, expected %+v", c.agent, c.tool, c.arguments, i, got, want)
			}
		}
	}
}

// Nothing is lost or counted twice where the tables are too small for the classes, and where the
// counts are read while calls are decided.
func TestCountsOfMoreClassesThanAreKept(t *testing.T) {
	var rows []string
	for i := range 50 {
		rows = append(rows, fmt.Sprintf(`p, Agent%d, *, *, , allow`, i))
	}
	p := mustLoad(t, strings.Join(rows, "\n"))
	p.settled.limit = 7
	const callers, each = 4, 2_000
	made := make([][50]uint64, callers)
	var running sync.WaitGroup
	for w := range callers {
		running.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range each {
				agent := random.IntN(50)
				if _, err := p.PermitCounted(t.Context(), Request{fmt.Sprint("Agent", agent), "acme", "alpha", "web.search", nil, nil}); err != nil {
					t.Error(err)
				}
				made[w][agent]++
				if i%100 == 0 {
					p.Counts()
				}
			}
		})
	}
	running.Wait()
	for i, c := range p.Counts() {
		want := uint64(0)
		for w := range made {
			want += made[w][i]
		}
		// A call that holds a verdict while it is evicted may not count.
		if c.Decided > want || c.Matched != c.Decided || c.Decided+callers*each/100 < want {
			t.Errorf("row %d counted %+v of %d calls", i, c, want)
		}
	}
}

// Counting costs no allocation.
func TestCountingAllocatesNothing(t *testing.T) {
	settled := mustLoad(t, `p, Analyst, *, *, , allow`)
	conditional, refund := refund(t)
	for name, c := range map[string]struct {
		p *Policy
		r Request
	}{"settled": {settled, Request{"Analyst", "acme", "alpha", "web.search", nil, nil}}, "on a condition": {conditional, refund}} {
		measure := func(permit func() (Decision, error)) float64 {
			return testing.AllocsPerRun(200, func() {
				if d, err := permit(); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
			})
		}
		uncounted := measure(func() (Decision, error) { return c.p.Permit(t.Context(), c.r) })
		counted := measure(func() (Decision, error) { return c.p.PermitCounted(t.Context(), c.r) })
		if counted > uncounted+1 { // the race detector empties pools
			t.Errorf("%s: %v allocations, %v without counting", name, counted, uncounted)
		}
	}
}

// BenchmarkCounted sets a counted decision beside one that is not.
func BenchmarkCounted(b *testing.B) {
	p, _, err := Load(Source{File: "bench.csv", Data: benchRows(1_000, 10, "")}, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	r := requestOf(0)
	for name, permit := range map[string]func() (Decision, error){
		"no":  func() (Decision, error) { return p.Permit(b.Context(), r) },
		"yes": func() (Decision, error) { return p.PermitCounted(b.Context(), r) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := permit(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
