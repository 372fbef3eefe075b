package compare

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// rowsOfBench writes n rows over n/100 agents, ten projects and a hundred tools; other says
// which of them are another's.
func rowsOfBench(n int, other func(i int) bool) []string {
	lines := []string{"g, agent0, role:all, *", "p, role:all, w/*, shared.*, , allow"}
	for i := range n {
		effect, when := "allow", ""
		if i%50 == 49 {
			effect = "deny"
		}
		if i%20 == 0 {
			when = fmt.Sprintf("\"args.n <= %d\"", 100+i%7)
			if other(i) {
				when = fmt.Sprintf("\"args.n <= %d\"", 200+i%7)
			}
		} else if other(i) {
			effect = "ask:rule"
		}
		lines = append(lines, fmt.Sprintf("p, agent%d, w/p%d, t%d.call, %s, %s", i/100, i%10, i%100, when, effect))
	}
	return lines
}

// BenchmarkCompare compares policies of which one row differs, or all do. ms/comparison does not
// have the time to load them; MiB is what a comparison allocates.
func BenchmarkCompare(b *testing.B) {
	for _, c := range []struct {
		name  string
		rows  int
		other func(int) bool
	}{
		{"rows=10000/changed=1", 10_000, func(i int) bool { return i == 5_000 }},
		{"rows=10000/changed=all", 10_000, func(int) bool { return true }},
		{"rows=100000/changed=1", 100_000, func(i int) bool { return i == 50_000 }},
		{"rows=100000/changed=role", 100_000, func(i int) bool { return false }},
	} {
		b.Run(c.name, func(b *testing.B) {
			lines := rowsOfBench(c.rows, c.other)
			if strings.HasSuffix(c.name, "role") {
				lines[1] = "p, role:all, w/*, t1.*, , allow"
			}
			old, now := load(b, "old.csv", rowsOfBench(c.rows, func(int) bool { return false })), load(b, "new.csv", lines)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			differ := 0
			for b.Loop() {
				r, err := Compare(b.Context(), old, now, World{})
				if err != nil {
					b.Fatal(err)
				}
				differ = r.Differ
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/comparison")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/(1<<20), "MiB")
			b.ReportMetric(float64(differ), "differ")
		})
	}
}

// Only the calls are looked at that a changed row can reach.
func TestFewCallsAreLookedAt(t *testing.T) {
	const rows = 2_000
	old := fileOf(load(t, "old.csv", rowsOfBench(rows, func(int) bool { return false })))
	one := fileOf(load(t, "one.csv", rowsOfBench(rows, func(i int) bool { return i == 1_000 })))
	n, looked := newNames(World{}, old, one), 0
	for _, agent := range n.agents {
		newChanges(old, one).each(n, agent, func(place, string) { looked++ })
	}
	if looked != 1 || n.triples() != 21*12*102 {
		t.Errorf("looked at %d of %d, expected 1 of %d", looked, n.triples(), 21*12*102)
	}
}
