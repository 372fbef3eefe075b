package compare

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/policy"
)

// TestVerdicts is about single edits. Open is that the conditions cannot be compared.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		old, now string
		want     Verdict
		open     bool
	}{
		{"p, a1, w1/p1, v, , allow", "p, a1, w1/p1, v, , deny", Narrower, false},
		{"p, a1, w1/p1, v, , allow", "p, a1, w1/p1, v, , ask:one", Narrower, false},
		{"p, a1, w1/p1, v, , ask:one", "p, a1, w1/p1, v, , ask:two", Incomparable, false},
		{"p, a1, w1/*, t.*, , allow", "p, a1, w1/p1, t.*, , allow\np, a1, w1/p2, t.*, , allow", Narrower, false}, // w1/(other)
		{"p, a1, w1/p1, *, , allow", "p, a1, w1/p1, t.*, , allow\np, a1, w1/p1, v, , allow", Narrower, false},    // (other)
		{"p, role:r1, w1/p1, v, , allow\ng, a1, role:r1, *", "p, a1, w1/p1, v, , allow", Equivalent, false},
		{"p, role:r1, w1/p1, v, , allow", "p, role:r1, w1/p1, v, , allow\ng, a1, role:r1, w2/*", Equivalent, false},
		{"p, role:r1, *, v, , allow", "p, role:r1, *, v, , allow\ng, a1, role:r1, w2/*", Wider, false},
		{"p, role:r2, *, v, , deny\np, a1, *, v, , allow", "p, role:r2, *, v, , deny\np, a1, *, v, , allow\ng, a1, role:r1, *\ng, role:r1, role:r2, w2/*", Narrower, false},
		{"p, a1, w1/p1, v, args.n <= 100, allow", "p, a1, w1/p1, v, args.n <= 200, allow", Wider, false},
		{"p, a1, w1/p1, v, args.o.amount <= 100, allow", "p, a1, w1/p1, v, args.o.amount <= 1000, allow", Wider, false},
		{"p, a1, w1/p1, v, args.o.amount <= 100, deny\np, a1, w1/p1, v, , allow", "p, a1, w1/p1, v, args.o.amount <= 1000, deny\np, a1, w1/p1, v, , allow", Narrower, false},
		{"p, a1, w1/p1, v, args.o.amount <= 100, allow", "p, a1, w1/p1, v, has(args.o) && 100.0 >= args.o.amount, allow", Equivalent, false},
		{"p, a1, w1/p1, v, args.o.amount <= 100, allow", "p, a1, w1/p1, v, args.o.total <= 1000, allow", Incomparable, true},
		{"p, a1, w1/p1, v, args.o.amount <= 100, allow", "p, a1, w1/p1, v, args.o.amount <= 1000 && args.c == 'EUR', allow", Incomparable, true},
		{"p, a1, w1/p1, v, args.n <= 100, allow", "p, a1, w1/p1, v, args.n <= 100 && size(args.s) <= 3, allow", Narrower, false},
		// A deny row with the guard leaves the calls alone that do not have the member.
		{"p, a1, w1/p1, v, args.k > 3, deny\np, a1, w1/p1, v, , allow", "p, a1, w1/p1, v, has(args.k) && args.k > 3, deny\np, a1, w1/p1, v, , allow", Wider, false},
		{"p, a1, w1/p1, v, args.n <= 100, allow", "p, a1, w1/p1, v, !(args.n > 100), allow", Incomparable, true},
		{"p, a1, w1/p1, v, args.n <= 100, allow", "p, a1, w1/p1, v, args.n <= 200, deny\np, a1, w1/p1, v, , allow", Incomparable, true},
		{"p, a1, w1/p1, v, args.n <= 1000, allow", "p, a1, w1/p1, v, , allow", Wider, false},
		{"p, a1, w1/p1, v, args.k >= 3, allow", "p, a1, w1/p1, v, args.k > 2, allow", Wider, false}, // no type is looked at
		{"p, a1, w1/p1, v, \"args.c in ['EUR', 'USD']\", allow", "p, a1, w1/p1, v, has(args.c), allow", Wider, false},
		{"p, a1, w1/p1, v, args.c != 'EUR', ask:one\np, a1, w1/p1, v, , allow", "p, a1, w1/p1, v, , allow", Wider, false},
		{"p, a1, w1/p1, v, args.n <= 5, ask:one\np, a1, w1/p1, v, , allow", "p, a1, w1/p1, v, args.n <= 7, ask:one\np, a1, w1/p1, v, , allow", Narrower, false},
		{"p, a1, w1/p1, v, args.n <= 5, ask:one\np, a1, w1/p1, v, , allow", "p, a1, w1/p1, v, args.n <= 7, ask:two\np, a1, w1/p1, v, , allow", Incomparable, true},
		{"p, a1, w1/p1, v, size(args.l) <= 3, allow", "p, a1, w1/p1, v, size(args.l) <= 4, allow", Incomparable, true},
		{"p, a1, w1/p1, v, args.s.matches('^ab+c$'), allow", "", Narrower, false},
		// What was done before is compared as a text.
		{"p, a1, w1/p1, v, thread.calls('v') <= 3, allow", "p, a1, w1/p1, v, thread.calls('v') <= 4, allow", Incomparable, true},
		{"p, a1, w1/p1, v, thread.calls('v') <= 3, allow", "p, a1, w1/p1, v, 3 >= thread.calls('v'), allow", Incomparable, true},
		{"p, a1, w1/p1, v, thread.calls('v') <= 3, allow", "p, a1, w1/p1, v, , allow", Wider, false},
		{"p, a1, w1/p1, v, thread.calls('v') <= 3, allow", "p, a1, w1/p1, v, thread.calls('v') <= 3 && args.n <= 100, allow", Narrower, false},
		{"p, a1, w1/p1, v, , allow\np, a1, w1/p1, v, size(thread.labels) > 0, deny", "p, a1, w1/p1, v, , allow", Wider, false},
		// The term cannot be known where args.n can, and the row denies then.
		{"p, a1, w1/p1, v, , allow\np, a1, w1/p1, v, args.n > 5 && thread.calls('v') > 3, deny", "p, a1, w1/p1, v, , allow\np, a1, w1/p1, v, args.n > 5, deny", Narrower, false},
		{"p, a1, w1/p1, v, , allow\np, a1, w1/p1, v, thread.calls('v') > 3 && args.n > 5, deny", "p, a1, w1/p1, v, , allow\np, a1, w1/p1, v, args.n > 5, deny", Incomparable, true},
	} {
		t.Run(strings.ReplaceAll(c.old+" → "+c.now, "\n", "; "), func(t *testing.T) {
			split := func(text string) []string { return strings.Split(text, "\n") }
			old, now := load(t, "old.csv", split(c.old)), load(t, "new.csv", split(c.now))
			mirrored := map[Verdict]Verdict{Wider: Narrower, Narrower: Wider, Equivalent: Equivalent, Incomparable: Incomparable}
			for _, side := range []struct {
				from, to *policy.Policy
				want     Verdict
			}{{old, now, c.want}, {now, old, mirrored[c.want]}} {
				r, err := Compare(t.Context(), side.from, side.to, World{})
				open := slices.ContainsFunc(r.Groups, func(g Group) bool { return g.Open })
				if err != nil || r.Verdict != side.want || open != c.open {
					t.Errorf("%v: found %s, open %v: %+v", err, r.Verdict, open, r.Groups)
				}
			}
		})
	}
}

func TestGroups(t *testing.T) {
	old := load(t, "old.csv", []string{"p, role:r1, w1/*, t.*, , allow", "p, a1, w1/p1, v, , allow", "g, a1, role:r1, *", "g, a2, role:r1, w1/p1"})
	now := load(t, "new.csv", []string{"p, role:r1, w1/*, t.x, , allow", "p, a1, w1/p1, v, args.n < 5, ask:one", "g, a1, role:r1, *", "g, a2, role:r1, w1/p1"})
	r, err := Compare(t.Context(), old, now, World{Tools: []string{"t.y"}, Agents: []string{"a9"}})
	if err != nil {
		t.Fatal(err)
	}
	// a1, a2, a9 and another; w1/p1, w1/(other), (other)/(other); t.x, t.y, t.(other), v, (other).
	if r.Calls != 4*3*5 || r.Differ != 7 || len(r.Groups) != 2 || r.Verdict != Narrower {
		t.Fatalf("%+v", r)
	}
	want := []Group{{
		Change: Narrower, Agents: []string{"a1", "a2"}, Projects: []string{"w1/p1", "w1/(other)"}, Tools: []string{"t.y", "t.(other)"}, Calls: 6,
		OldReach: "always", NewReach: "never", OldRows: []string{"old.csv:1"}, NewRows: []string{},
	}, {
		Change: Narrower, Agents: []string{"a1"}, Projects: []string{"w1/p1"}, Tools: []string{"v"}, Calls: 1,
		OldReach: "always", NewReach: "on conditions, may ask one", OldRows: []string{"old.csv:2"}, NewRows: []string{"new.csv:2"},
	}}
	for i, g := range r.Groups {
		if fmt.Sprintf("%+v", g) != fmt.Sprintf("%+v", want[i]) {
			t.Errorf("found\n%+v\nexpected\n%+v", g, want[i])
		}
	}
}

// A stranger has a name that nobody has.
func TestStrangers(t *testing.T) {
	n := newNames(World{Agents: []string{other}, Projects: []string{"w/" + other}, Tools: []string{"t." + other, other}},
		fileOf(load(t, "p.csv", []string{"p, a, w/*, t.*, , allow"})))
	if !slices.Contains(n.agents, "((other))") || !slices.Contains(n.places["w/*"], place{"w", "((other))"}) ||
		!slices.Equal(n.tools["t.*"], []string{"t.((other))", "t.(other)"}) || !slices.Contains(n.tools["*"], "((other))") {
		t.Errorf("%+v", n)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	old, now := load(t, "old.csv", []string{"p, a, w/*, t.*, , allow"}), load(t, "new.csv", []string{"p, a, w/*, t.*, args.n == 1, allow"})
	if r, err := Compare(ctx, old, now, World{}); err == nil {
		t.Errorf("an interrupted comparison says %+v", r)
	}
}
