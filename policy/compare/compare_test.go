package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestVerdicts is about single edits, each of which is known in full unless it says open.
func TestVerdicts(t *testing.T) {
	tools := registryOfTests(t)
	for _, c := range []struct {
		old, now string
		want     Verdict
		open     bool
		example  string // decisions
	}{
		{"p, a1, w1/p1, v, , allow", "p, a1, w1/p1, v, , deny", Narrower, false, ""},
		{"p, a1, w1/p1, v, , allow", "p, a1, w1/p1, v, , ask:one", Narrower, false, ""},
		{"p, a1, w1/p1, v, , ask:one", "p, a1, w1/p1, v, , ask:two", Incomparable, false, ""},
		{"p, a1, w1/*, t.*, , allow", "p, a1, w1/p1, t.*, , allow\np, a1, w1/p2, t.*, , allow", Narrower, false, ""}, // w1/(other)
		{"p, a1, w1/p1, *, , allow", "p, a1, w1/p1, t.*, , allow\np, a1, w1/p1, v, , allow", Narrower, false, ""},    // (other)
		{"p, role:r1, w1/p1, v, , allow\ng, a1, role:r1, *", "p, a1, w1/p1, v, , allow", Equivalent, false, ""},
		{"p, role:r1, w1/p1, v, , allow", "p, role:r1, w1/p1, v, , allow\ng, a1, role:r1, w2/*", Equivalent, false, ""},
		{"p, role:r1, *, v, , allow", "p, role:r1, *, v, , allow\ng, a1, role:r1, w2/*", Wider, false, ""},
		{"p, role:r2, *, v, , deny\np, a1, *, v, , allow", "p, role:r2, *, v, , deny\np, a1, *, v, , allow\ng, a1, role:r1, *\ng, role:r1, role:r2, w2/*", Narrower, false, ""},
		{"p, a1, w1/p1, v, args.n <= 100, allow", "p, a1, w1/p1, v, args.n <= 200, allow", Wider, false, "denied allowed"},
		{"p, a1, w1/p1, v, args.o.amount <= 100, allow", "p, a1, w1/p1, v, args.o.amount <= 1000, allow", Wider, false, ""},
		{"p, a1, w1/p1, v, args.o.amount <= 100, deny\np, a1, w1/p1, v, , allow", "p, a1, w1/p1, v, args.o.amount <= 1000, deny\np, a1, w1/p1, v, , allow", Narrower, false, ""},
		{"p, a1, w1/p1, v, args.o.amount <= 100, allow", "p, a1, w1/p1, v, has(args.o) && 100.0 >= args.o.amount, allow", Equivalent, false, ""},
		{"p, a1, w1/p1, v, args.o.amount <= 100, allow", "p, a1, w1/p1, v, args.o.total <= 1000, allow", Incomparable, false, ""},
		{"p, a1, w1/p1, v, args.n <= 100, allow", "p, a1, w1/p1, v, !(args.n > 100), allow", Equivalent, false, ""},
		{"p, a1, w1/p1, v, args.n <= 100, allow", "p, a1, w1/p1, v, args.n <= 200, deny\np, a1, w1/p1, v, , allow", Incomparable, false, "allowed denied"},
		{"p, a1, w1/p1, v, args.n <= 1000, allow", "p, a1, w1/p1, v, , allow", Wider, false, "denied allowed"}, // the schema's maximum, but no condition reads numbers of many digits
		{"p, a1, w1/p1, v, args.k >= 3, allow", "p, a1, w1/p1, v, args.k > 2, allow", Equivalent, false, ""},
		{"p, a1, w1/p1, v, \"args.c in ['EUR', 'USD', 'GBP']\", allow", "p, a1, w1/p1, v, has(args.c), allow", Equivalent, false, ""},
		{"p, a1, w1/p1, v, args.c != 'EUR', ask:one\np, a1, w1/p1, v, , allow", "p, a1, w1/p1, v, , allow", Wider, false, "asks one allowed"},
		// Only numbers between two literals, and only a member that is not there.
		{"p, a1, w1/p1, v, args.n > 50 && args.n < 60, allow", "p, a1, w1/p1, v, false, allow", Narrower, false, "allowed denied"},
		{"p, a1, w1/p1, v, !has(args.c), allow", "p, a1, w1/p1, v, false, allow", Narrower, false, "allowed denied"},
		{"p, a1, w1/p1, v, args.n <= 5, ask:one\np, a1, w1/p1, v, , allow", "p, a1, w1/p1, v, args.n <= 7, ask:two\np, a1, w1/p1, v, , allow", Incomparable, false, "asks one asks two"},
		{"p, a1, w1/p1, v, size(args.l) <= 3, allow", "p, a1, w1/p1, v, size(args.l) <= 4, allow", Incomparable, true, "denied allowed"},
		{"p, a1, w1/p1, v, args.s.matches('^ab+c$'), allow", "", Narrower, false, "allowed denied"},
		{"p, a1, w1/p1, v, args.n * 7.0 == 3001.0 + 17.0, allow", "", Narrower, true, ""},
		{"p, a1, w1/p1, v, args.n * 7.0 == 3001.0 + 17.0, allow", "p, a1, w1/p1, v, args.n * 7.0 == 3018.0, allow", Incomparable, true, ""},
	} {
		t.Run(strings.ReplaceAll(c.old+" → "+c.now, "\n", "; "), func(t *testing.T) {
			split := func(text string) []string { return strings.Split(text, "\n") }
			r, err := Compare(t.Context(), side(load(t, "old.csv", split(c.old)), tools), side(load(t, "new.csv", split(c.now)), tools), World{})
			if err != nil {
				t.Fatal(err)
			}
			open := slices.ContainsFunc(r.Groups, func(g Group) bool { return g.Open })
			example := ""
			for _, g := range r.Groups {
				for _, e := range g.Examples {
					if example == "" && c.example != "" {
						example = e.Old + " " + e.New
					}
				}
			}
			if r.Verdict != c.want || open != c.open || example != c.example {
				t.Errorf("found %s, open %v, example %q:\n%+v", r.Verdict, open, example, r.Groups)
			}
		})
	}
}

func TestGroups(t *testing.T) {
	tools := registryOfTests(t)
	old := load(t, "old.csv", []string{"p, role:r1, w1/*, t.*, , allow", "p, a1, w1/p1, v, , allow", "g, a1, role:r1, *", "g, a2, role:r1, w1/p1"})
	now := load(t, "new.csv", []string{"p, role:r1, w1/*, t.x, , allow", "p, a1, w1/p1, v, args.n < 5, ask:one", "g, a1, role:r1, *", "g, a2, role:r1, w1/p1"})
	r, err := Compare(t.Context(), side(old, tools), side(now, tools), World{Tools: []string{"t.y"}, Agents: []string{"a9"}})
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
		g.Examples, g.Tried = nil, 0
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
	if r, err := Compare(ctx, Side{Policy: old}, Side{Policy: now}, World{}); err == nil {
		t.Errorf("an interrupted comparison says %+v", r)
	}
}

// Examples of schemas of many forms are accepted by them, or there is none.
func TestSampler(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^pay_[a-z0-9]{6,}$"}}}`:         `{"a":"pay_aaaaaa"}`,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"integer","exclusiveMinimum":3}}}`:                  `{"a":4}`,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"number","maximum":-2.5}}}`:                         `{"a":-2.5}`,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"array","minItems":2,"items":{"type":"integer"}}}}`: `{"a":[0,1]}`,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string","minLength":7}}}`:                          `{"a":"otherxx"}`,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string","maxLength":2}}}`:                          `{"a":"ot"}`,
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string","format":"email"}}}`:                       `{"a":"a@example.com"}`,
		`{"type":"object","required":["a"],"properties":{"a":{"anyOf":[{"const":[1]},{"type":"null"}]}}}`:                `{"a":[1]}`,
		`{"type":"object","required":["a","b"],"properties":{"a":{"type":["boolean","null"]}}}`:                          `{"a":false,"b":null}`,
	} {
		got, err := json.Marshal((&sampler{}).value(readSchema(json.RawMessage(schema))))
		if err != nil || string(got) != want {
			t.Errorf("%s: made %s, expected %s", schema, got, want)
		}
	}
}
