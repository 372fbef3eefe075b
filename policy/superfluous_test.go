package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/detector"
)

// TestSuperfluousByOracle removes the rows that are said to be without effect from random
// policies, each by itself and all together: the oracle decides every call as before.
func TestSuperfluousByOracle(t *testing.T) {
	detector.OneGoroutine(t)
	policies := 400
	if testing.Short() {
		policies = 60
	}
	r := rand.New(rand.NewPCG(3, 4))
	counts := map[Reason]int{}
	for range policies {
		o := randomPolicy(r)
		p, _, err := Load(Source{File: "random.csv", Data: []byte(o.render())}, nil, nil, "untrusted")
		if err != nil {
			t.Fatal(err)
		}
		found := p.Superfluous()
		if len(found) == 0 {
			continue
		}
		arguments := []map[string]any{{}, randomArguments(r), randomArguments(r), randomArguments(r)}
		all := oracle{g: o.g}
		for i, row := range o.p {
			at := slices.IndexFunc(found, func(s Superfluous) bool { return s.Row.Line == i+1 })
			if at < 0 {
				all.p = append(all.p, row)
				continue
			}
			counts[found[at].Reason]++
			without := oracle{g: o.g, p: append(slices.Clone(o.p[:i]), o.p[i+1:]...)}
			if where := o.differs(without, arguments); where != "" {
				t.Fatalf("without line %d (%v by line %d) %s is decided otherwise\n%s", i+1, found[at].Reason, found[at].By.Line, where, o.render())
			}
		}
		if where := o.differs(all, arguments); where != "" {
			t.Fatalf("without %v %s is decided otherwise\n%s", found, where, o.render())
		}
	}
	for _, reason := range []Reason{Shadowed, Overridden, DeniesNothing} {
		if counts[reason] < policies/20 {
			t.Errorf("only %d rows have the reason %d: %v", counts[reason], reason, counts)
		}
	}
	t.Log(counts)
}

// differs returns a call that two policies do not decide alike.
func (o oracle) differs(other oracle, arguments []map[string]any) string {
	for _, agent := range []string{"a1", "a2", "a3", "a4"} {
		for _, at := range []string{"w1/p1", "w1/p2", "w1/p3", "w2/p1", "w2/p9", "w3/p1"} {
			workspace, project, _ := strings.Cut(at, "/")
			for _, tool := range []string{"x", "x.y", "x.z", "x.y.z", "x.y.q", "k", "k.k"} {
				for _, args := range arguments {
					allowed, asks := o.decide(agent, workspace, project, tool, args)
					otherAllowed, otherAsks := other.decide(agent, workspace, project, tool, args)
					if allowed != otherAllowed || !slices.Equal(asks, otherAsks) {
						return fmt.Sprint(agent, " ", at, " ", tool, " ", args)
					}
				}
			}
		}
	}
	return ""
}

func TestSuperfluous(t *testing.T) {
	for name, c := range map[string]struct {
		rows string
		want string // LINE REASON BY, joined
	}{
		"nothing":                       {"p, a, *, x, , allow\np, a, *, y, , deny\np, a, *, *, , allow", "1 1 3"},
		"itself is not another":         {"p, a, *, x, , allow", ""},
		"by a wider tool":               {"p, a, w/p, x.y.z, \"agent == 'a'\", allow\np, a, w/*, x.*, , allow", "1 1 2"},
		"not by one with a condition":   {"p, a, w/p, x.y, , allow\np, a, w/*, x.*, \"agent == 'b'\", allow", ""},
		"not by the tool itself":        {"p, a, *, x.*, , allow\np, a, *, x, , allow", ""},
		"not by a narrower domain":      {"p, a, w/*, x, , allow\np, a, w/p, x, , allow", "2 1 1"},
		"by a role":                     {"p, a, w/p, x, , allow\np, role:r, w/*, *, , allow\ng, a, role:r, w/p", "1 1 2"},
		"by a role of a role":           {"p, role:q, w/p, x, , allow\np, role:r, *, x, , allow\ng, role:q, role:r, w/*\ng, a, role:q, *", "1 1 2"},
		"not by a role elsewhere":       {"p, a, w/*, x, , allow\np, role:r, w/*, *, , allow\ng, a, role:r, w/p", ""},
		"an allow row by one that asks": {"p, a, *, x, , allow\np, a, *, *, , ask:one", "1 1 2"},
		"not asking by allowing":        {"p, a, *, x, , ask:one\np, a, *, *, , allow", ""},
		"not by another rule":           {"p, a, *, x, , ask:one\np, a, *, *, , ask:two", ""},
		"overridden":                    {"p, a, *, x.y, , allow\np, a, *, x.*, , deny\np, a, w/p, x.z, agent == 'a', ask:one", "1 2 2; 3 2 2"},
		"overridden before shadowed":    {"p, a, *, x, , allow\np, a, *, *, , allow\np, a, *, x, , deny", "1 2 3"},
		"a deny row by a wider one":     {"p, a, *, x.y, , deny\np, a, *, x.*, , deny\np, a, *, *, , allow", "1 1 2"},
		"denies nothing":                {"p, a, *, x.*, , deny\np, a, *, y.*, , allow", "1 3 0"},
		"denies below":                  {"p, a, *, x.*, agent == 'b', deny\np, a, w/p, x.y, agent == 'a', allow", ""},
		"denies another agent":          {"p, b, *, *, , deny\np, a, *, *, , allow", "1 3 0"},
		"denies a role's members":       {"p, role:r, *, *, agent == 'b', deny\np, a, w/p, x, , allow\ng, a, role:r, w/*", ""},
		"denies members elsewhere":      {"p, role:r, *, *, , deny\np, a, w/p, x, , allow\ng, a, role:r, v/*", "1 3 0"},
		"denies what asks":              {"p, a, *, x, agent == 'b', deny\np, a, *, *, , ask:one", ""},
		"denies by two roles":           {"p, role:q, *, x, , deny\np, role:r, *, x, , allow\ng, a, role:q, w/p\ng, a, role:r, w/*", ""},
		"denies by two roles apart":     {"p, role:q, *, x, , deny\np, role:r, *, x, , allow\ng, a, role:q, w/p\ng, a, role:r, w/q", "1 3 0"},
	} {
		var found []string
		for _, s := range mustLoad(t, c.rows).Superfluous() {
			found = append(found, fmt.Sprint(s.Row.Line, " ", int(s.Reason), " ", s.By.Line))
		}
		if got := strings.Join(found, "; "); got != c.want {
			t.Errorf("%s: found %q; expected %q", name, got, c.want)
		}
	}
	if found := (*Policy)(nil).Superfluous(); found != nil {
		t.Error(found)
	}
}

// BenchmarkSuperfluous looks for rows without effect in a file of which one row in fifty denies.
func BenchmarkSuperfluous(b *testing.B) {
	for _, rows := range []int{10_000, 100_000} {
		p, _, err := Load(Source{File: "bench.csv", Data: benchRows(rows, 100, "args.amount > 5")}, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%d rows", rows), func(b *testing.B) {
			for b.Loop() {
				p.Superfluous()
			}
		})
	}
}
