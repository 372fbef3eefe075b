package policy

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/testkit/detector"
	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"
)

// The oracle states the rules for rows, roles, patterns and conditions anew, and
// shares no code with the package. It works on the fields as written.
type oracle struct {
	p, g [][]string
	past *poolPast // of the request that is decided
}

// poolPast is what was done before a call of a tool; nil is not known.
type poolPast struct {
	known  bool
	labels []string
	calls  []poolCall // that were let through, the call itself last
}

type poolCall struct {
	tool  string
	args  map[string]any
	ended bool // with a result
}

// count counts calls that a pattern covers, of which those have ended with a result that must have.
func (p *poolPast) count(pattern string, ended bool) (n int, failed bool) {
	if p == nil || !p.known {
		return 0, true
	}
	for _, c := range p.calls {
		if (oracle{}).covers(pattern, c.tool, ".") && (c.ended || !ended) {
			n++
		}
	}
	return n, false
}

// sum adds args.n of the calls of a tool. One that is absent, negative, finer than millionths or above nine billions makes
// the sum unknown.
func (p *poolPast) sum(tool string) (*big.Rat, bool) {
	total := new(big.Rat)
	if p == nil || !p.known {
		return total, true
	}
	for _, c := range p.calls {
		if c.tool != tool {
			continue
		}
		text, _ := c.args["n"].(json.Number)
		n, ok := new(big.Rat).SetString(string(text))
		if !ok || n.Sign() < 0 || !new(big.Rat).Mul(n, big.NewRat(1_000_000, 1)).IsInt() || total.Add(total, n).Cmp(big.NewRat(9_000_000_000, 1)) > 0 {
			return total, true
		}
	}
	return total, false
}

func (o oracle) covers(pattern, name, separator string) bool {
	if pattern == "*" {
		return true
	}
	if strings.HasSuffix(pattern, separator+"*") {
		above := pattern[:len(pattern)-1]
		return strings.HasPrefix(name, above) && name != above
	}
	return pattern == name
}

// hasRole reports whether who is, or has through any number of grants, the subject.
func (o oracle) hasRole(caller, subject, domain string, steps int) bool {
	if caller == subject {
		return true
	}
	return steps > 0 && slices.ContainsFunc(o.g, func(g []string) bool {
		return g[1] == caller && o.covers(g[3], domain, "/") && o.hasRole(g[2], subject, domain, steps-1)
	})
}

func (o oracle) permits(agent, workspace, project, tool string, args map[string]any) bool {
	allowed, _ := o.decide(agent, workspace, project, tool, args)
	return allowed
}

// decide also says which rules are asked.
func (o oracle) decide(agent, workspace, project, tool string, args map[string]any) (bool, []string) {
	domain := workspace + "/" + project
	if agent == "" || workspace == "" || project == "" || tool == "" || strings.HasPrefix(agent, "role:") ||
		strings.ContainsAny(workspace+project, "/") || strings.Contains(agent+domain+tool, "*") {
		return false, nil
	}
	allowed := false
	var asks []string
	for _, p := range o.p {
		if !o.hasRole(agent, p[1], domain, 10) || !o.covers(p[2], domain, "/") || !o.covers(p[3], tool, ".") {
			continue
		}
		met, failed := true, false
		if p[4] != "" {
			met, failed = conditionPool[p[4]](agent, args, o.past)
		}
		if p[5] == "deny" && (met || failed) {
			return false, nil
		}
		if p[5] != "deny" && met && !failed {
			allowed = true
		}
		if rule, ask := strings.CutPrefix(p[5], "ask:"); ask && (met || failed) {
			asks = append(asks, rule)
		}
	}
	if !allowed {
		return false, nil
	}
	slices.Sort(asks)
	return true, slices.Compact(asks)
}

// mayAsk reports whether a row that asks matches, whatever its condition says.
func (o oracle) mayAsk(agent, workspace, project, tool string) bool {
	plain := oracle{g: o.g}
	for _, p := range o.p {
		if strings.HasPrefix(p[5], "ask:") {
			plain.p = append(plain.p, []string{"p", p[1], p[2], p[3], "", "allow"})
		}
	}
	return plain.permits(agent, workspace, project, tool, nil)
}

// reach is "could this ever be permitted", from the same rows.
func (o oracle) reach(agent, workspace, project, tool string) Reach {
	plain := oracle{g: o.g}
	var conditions bool
	for _, p := range o.p {
		if p[4] == "" {
			plain.p = append(plain.p, p)
		}
	}
	hopeful := oracle{g: o.g, p: slices.Clone(plain.p)}
	gloomy := oracle{g: o.g, p: slices.Clone(plain.p)}
	for _, p := range o.p {
		if p[4] != "" {
			conditions = true
			unconditional := []string{"p", p[1], p[2], p[3], "", p[5]}
			if p[5] != "deny" {
				hopeful.p = append(hopeful.p, unconditional)
			} else {
				gloomy.p = append(gloomy.p, unconditional)
			}
		}
	}
	switch {
	case !hopeful.permits(agent, workspace, project, tool, nil):
		return Never
	case conditions && !gloomy.permits(agent, workspace, project, tool, nil):
		return OnConditions
	case o.mayAsk(agent, workspace, project, tool):
		return Asks
	}
	return Always
}

// conditionPool holds conditions and, in Go, what they mean: met, failed.
var conditionPool = map[string]func(agent string, args map[string]any, past *poolPast) (met, failed bool){
	"args.n <= 100": func(_ string, args map[string]any, _ *poolPast) (bool, bool) {
		n, ok := poolNumber(args)
		return ok && n.Cmp(big.NewRat(100, 1)) <= 0, !ok
	},
	"args.n == 5 || args.n in [7, 8.5]": func(_ string, args map[string]any, _ *poolPast) (bool, bool) {
		n, ok := poolNumber(args)
		return ok && (n.Cmp(big.NewRat(5, 1)) == 0 || n.Cmp(big.NewRat(7, 1)) == 0 || n.Cmp(big.NewRat(17, 2)) == 0), !ok
	},
	"has(args.c) && args.c == 'EUR'": func(_ string, args map[string]any, _ *poolPast) (bool, bool) { return args["c"] == "EUR", false },
	"args.c != 'USD'": func(_ string, args map[string]any, _ *poolPast) (bool, bool) {
		_, there := args["c"]
		return there && args["c"] != "USD", !there
	},
	"agent == 'a1' && args.n <= 100": func(agent string, args map[string]any, _ *poolPast) (bool, bool) {
		n, ok := poolNumber(args)
		return agent == "a1" && ok && n.Cmp(big.NewRat(100, 1)) <= 0, agent == "a1" && !ok
	},
	"agent == 'a1'": func(agent string, _ map[string]any, _ *poolPast) (bool, bool) { return agent == "a1", false },
	"true":          func(string, map[string]any, *poolPast) (bool, bool) { return true, false },
	"1 / 0 == 1":    func(string, map[string]any, *poolPast) (bool, bool) { return false, true },
	"'untrusted' in thread.labels": func(_ string, _ map[string]any, past *poolPast) (bool, bool) {
		_, failed := past.count("*", false)
		return !failed && slices.Contains(past.labels, "untrusted"), failed
	},
	"thread.calls('x.y') <= 2": func(_ string, _ map[string]any, past *poolPast) (bool, bool) {
		n, failed := past.count("x.y", false)
		return !failed && n <= 2, failed
	},
	"args.n <= 100 && thread.results('x.*') > 0": func(_ string, args map[string]any, past *poolPast) (bool, bool) {
		n, ok := poolNumber(args)
		results, failed := past.count("x.*", true)
		if _, there := args["n"]; !there { // in CEL an error and false are false
			return false, failed || results > 0
		}
		return ok && n.Cmp(big.NewRat(100, 1)) <= 0 && !failed && results > 0, !ok || n.Cmp(big.NewRat(100, 1)) <= 0 && failed
	},
	"thread.sum('k', 'n') <= 100.5": func(_ string, _ map[string]any, past *poolPast) (bool, bool) {
		n, failed := past.sum("k")
		return !failed && n.Cmp(big.NewRat(201, 2)) <= 0, failed
	},
	// What was read and is not known is not hidden by what stands behind it.
	"caller.calls('*', '1h') > 3 || agent == 'a1'": func(agent string, _ map[string]any, past *poolPast) (bool, bool) {
		n, failed := past.count("*", false)
		return !failed && (n > 3 || agent == "a1"), failed
	},
	"agent == 'a1' || thread.calls('*') <= 2": func(agent string, _ map[string]any, past *poolPast) (bool, bool) {
		n, failed := past.count("*", false)
		return agent == "a1" || !failed && n <= 2, agent != "a1" && failed
	},
}

// poolNumber is args.n as an exact number; not ok where a condition that reads
// and compares it fails.
func poolNumber(args map[string]any) (*big.Rat, bool) {
	n, ok := args["n"].(json.Number)
	if !ok || strings.Contains(string(n), "123456789012345678") {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}

// wholeCasbin is one plain enforcer over every row, with casbin's own roles,
// domains and patterns.
func wholeCasbin(t *testing.T, o oracle) *casbin.Enforcer {
	t.Helper()
	m, err := model.NewModelFromString(`
[request_definition]
r = sub, dom, obj, args
[policy_definition]
p = n, sub, dom, obj, when, eft
[role_definition]
g = _, _, _
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = g(r.sub, p.sub, r.dom) && match(r.dom, p.dom) && match(r.obj, p.obj) && met(r.sub, r.args, p.when, p.eft)
`)
	if err != nil {
		t.Fatal(err)
	}
	e, err := casbin.NewEnforcer(m)
	if err != nil {
		t.Fatal(err)
	}
	match := func(name, pattern string) bool {
		return pattern == "*" || pattern == name || len(pattern) > 1 && strings.HasSuffix(pattern, "*") && strings.HasPrefix(name, pattern[:len(pattern)-1])
	}
	e.AddFunction("match", func(a ...any) (any, error) { return match(a[0].(string), a[1].(string)), nil })
	e.AddFunction("met", func(a ...any) (any, error) {
		if a[2] == "" {
			return true, nil
		}
		met, failed := conditionPool[a[2].(string)](a[0].(string), a[1].(map[string]any), o.past)
		return met && !failed || failed && a[3] == "deny", nil
	})
	e.AddNamedDomainMatchingFunc("g", "match", match)
	for i, p := range o.p {
		row := append([]string{fmt.Sprint(i)}, p[1:]...)
		if strings.HasPrefix(p[5], "ask:") {
			row[5] = "allow"
		}
		if _, err := e.AddPolicy(row); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range o.g {
		if _, err := e.AddGroupingPolicy(g[1:]); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// render writes rows as a file.
func (o oracle) render() string {
	var b strings.Builder
	for _, row := range append(slices.Clone(o.p), o.g...) {
		for i, f := range row {
			if i > 0 {
				b.WriteString(", ")
			}
			if strings.ContainsAny(f, ",\"") {
				f = `"` + strings.ReplaceAll(f, `"`, `""`) + `"`
			}
			b.WriteString(f)
		}
		b.WriteByte('\n')
	}
	return b.String() + "# end\n"
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

// randomPolicy draws rows that meet often: few names, many patterns.
func randomPolicy(r *rand.Rand) oracle {
	var o oracle
	conditions := make([]string, 0, len(conditionPool))
	for c := range conditionPool {
		conditions = append(conditions, c)
	}
	slices.Sort(conditions)
	domain := func() string { return pick(r, "*", "w1/*", "w1/*", "*", "w2/*", "w1/p1", "w1/p2", "w2/p1") }
	for range 4 + r.IntN(22) {
		effect, when := "allow", ""
		switch r.IntN(8) {
		case 0, 1:
			effect = "deny"
		case 2, 3, 4:
			effect = pick(r, "ask:one", "ask:two", "ask:three")
		}
		if r.IntN(3) == 0 {
			when = pick(r, conditions...)
		}
		o.p = append(o.p, []string{"p", pick(r, "a1", "a2", "a3", "role:r1", "role:r2", "role:r3", "role:r4"), domain(),
			pick(r, "*", "x.*", "x.y.*", "x.y", "x.z", "x.y.z", "k"), when, effect})
	}
	for range r.IntN(8) {
		if r.IntN(2) == 0 {
			o.g = append(o.g, []string{"g", pick(r, "a1", "a2", "a3"), pick(r, "role:r1", "role:r2", "role:r3", "role:r4"), domain()})
			continue
		}
		// Upwards only, so that there is no cycle.
		from := 1 + r.IntN(3)
		to := from + 1 + r.IntN(4-from)
		o.g = append(o.g, []string{"g", fmt.Sprintf("role:r%d", from), fmt.Sprintf("role:r%d", to), domain()})
	}
	return o
}

// randomPast draws what was done before a call.
func randomPast(r *rand.Rand, tool string, args map[string]any) poolPast {
	p := poolPast{known: r.IntN(4) > 0}
	if r.IntN(2) == 0 {
		p.labels = []string{"untrusted"}
	}
	for range r.IntN(4) {
		p.calls = append(p.calls, poolCall{pick(r, "x.y", "x.z", "k"), map[string]any{"n": json.Number(pick(r, "5", "50e-1", "8.5", "90", "0.000001"))}, r.IntN(2) == 0})
	}
	p.calls = append(p.calls, poolCall{tool: tool, args: args})
	return p
}

// view is the past as a policy asks it.
func (p *poolPast) view(t *testing.T, by *Policy) *history.View {
	r := Request{Tool: p.calls[len(p.calls)-1].tool, Arguments: p.calls[len(p.calls)-1].args}
	return pastOf(t, by, r, p.labels, p.calls[:len(p.calls)-1]...)
}

func randomArguments(r *rand.Rand) map[string]any {
	args := map[string]any{}
	if r.IntN(5) > 0 {
		args["n"] = json.Number(pick(r, "5", "5.0", "50e-1", "7", "8.5", "85e-1", "100", "1e2", "100.0", "100.01", "100.5", "-3", "123456789012345678901", "0.123456789012345678", "9223372036854775807"))
	}
	if r.IntN(3) > 0 {
		args["c"] = pick(r, "EUR", "USD", "eur")
	}
	return args
}

// More than 100,000 random requests: the package, casbin over all rows and the
// oracle give one answer, and Reach never contradicts it.
func TestDifferential(t *testing.T) {
	detector.OneGoroutine(t)
	policies, requests := 520, 200
	if testing.Short() {
		policies = 60
	}
	r := rand.New(rand.NewPCG(1, 2))
	counts := map[string]int{}
	for range policies {
		o := randomPolicy(r)
		o.past = &poolPast{}
		p, _, err := Load(Source{File: "random.csv", Data: []byte(o.render())}, nil, nil, "untrusted")
		if err != nil {
			t.Fatalf("%v\n%s", err, o.render())
		}
		whole := wholeCasbin(t, o)
		for range requests {
			agent, workspace, project := pick(r, "a1", "a2", "a3", "a1", "a2", "a4"), pick(r, "w1", "w1", "w1", "w2", "w3"), pick(r, "p1", "p1", "p2", "p3")
			tool := pick(r, "x", "x.y", "x.z", "x.y.z", "x.y.q", "xx.y", "k", "k.k", "x.y.z.q")
			args := randomArguments(r)
			request := Request{agent, workspace, project, tool, args, nil}
			*o.past = randomPast(r, tool, args)
			if o.past.known {
				request.Past = o.past.view(t, p)
			}
			d, err := p.Permit(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if reads, err := p.Reads(agent, workspace, project, tool); err != nil || reads.None() && request.Past != nil && len(request.Past.Saw()) > 0 {
				t.Fatalf("%s %s/%s %s is said to read nothing, and saw %v: %v\n%s", agent, workspace, project, tool, request.Past.Saw(), err, o.render())
			}
			byCasbin, err := whole.Enforce(agent, workspace+"/"+project, tool, args)
			if err != nil {
				t.Fatal(err)
			}
			byOracle, asks := o.decide(agent, workspace, project, tool, args)
			if d.Allowed != byCasbin || d.Allowed != byOracle || !slices.Equal(d.Asks, asks) {
				t.Fatalf("%s %s/%s %s %v: Permit %v %v (%v), casbin %v, oracle %v %v\n%s",
					agent, workspace, project, tool, args, d.Allowed, d.Asks, d.Row, byCasbin, byOracle, asks, o.render())
			}
			if err := o.checkRows(d); err != nil {
				t.Fatalf("%s %s/%s %s %v: %v\n%s", agent, workspace, project, tool, args, err, o.render())
			}
			reach, err := p.Reach(agent, workspace, project, tool)
			if want := o.reach(agent, workspace, project, tool); err != nil || reach != want {
				t.Fatalf("%s %s/%s %s: reach %v (%v), oracle %v\n%s", agent, workspace, project, tool, reach, err, want, o.render())
			}
			if reach == Never && d.Allowed || reach >= Asks && !d.Allowed || reach == Always && d.Asks != nil {
				t.Fatalf("reach %v, allowed %v, asks %v", reach, d.Allowed, d.Asks)
			}
			counts[fmt.Sprint(reach, " ", d.Allowed, " ", min(len(d.Asks), 2))]++
			foreseen, rows, err := p.Foresee(t.Context(), Request{Agent: agent, Workspace: workspace, Project: project, Tool: tool})
			if err != nil || foreseen != Depends && (foreseen != outlookOf(d) || foreseen == WillAsk && !containsAll(d.Rows, rows)) {
				t.Fatalf("%s %s/%s %s %v: foreseen %v by %q (%v), Permit %v %v by %q\n%s",
					agent, workspace, project, tool, args, foreseen, rows, err, d.Allowed, d.Asks, d.Rows, o.render())
			}
			if foreseen == Depends && reach != OnConditions && reach != Asks {
				t.Fatalf("%s %s/%s %s: nothing is foreseen, and the reach is %v\n%s", agent, workspace, project, tool, reach, o.render())
			}
			counts[fmt.Sprint("foreseen ", foreseen)]++
		}
	}
	for _, outcome := range []string{
		"never false 0", "on conditions false 0", "on conditions true 0", "on conditions true 1", "on conditions true 2",
		"asks true 0", "asks true 1", "asks true 2", "always true 0", "foreseen 0", "foreseen 1", "foreseen 2", "foreseen 3",
	} {
		if counts[outcome] < policies/20 {
			t.Errorf("only %d requests came out as %q: %v", counts[outcome], outcome, counts)
		}
	}
	t.Log(counts)
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// outlookOf is the outlook that has this decision for all arguments.
func outlookOf(d Decision) Outlook {
	switch {
	case !d.Allowed:
		return WillDeny
	case len(d.Asks) > 0:
		return WillAsk
	}
	return WillAllow
}

// checkRows checks that the rows of a decision are those of its answer.
func (o oracle) checkRows(d Decision) error {
	if (d.Row == nil) != (len(d.Rows) == 0) || d.Allowed && d.Row == nil {
		return fmt.Errorf("row %v, rows %v", d.Row, d.Rows)
	}
	if d.Row != nil && d.Rows[0] != d.Row.Place() {
		return fmt.Errorf("the rows are %v, the first of them should be %s", d.Rows, d.Row.Place())
	}
	want := map[bool]string{false: "deny", true: "allow"}[d.Allowed]
	if len(d.Asks) > 0 {
		want = "ask"
	} else if len(d.Rows) > 1 {
		return fmt.Errorf("the rows %v, though none of them asks", d.Rows)
	}
	rules := map[string]bool{}
	for _, place := range d.Rows {
		var line int
		if _, err := fmt.Sscanf(place, "random.csv:%d", &line); err != nil {
			return err
		}
		effect, rule, _ := strings.Cut(o.p[line-1][5], ":") // rendered first, a line each
		if effect != want {
			return fmt.Errorf("the row %s is %s, want %s", place, o.p[line-1][5], want)
		}
		rules[rule] = true
	}
	if len(d.Asks) > 0 && len(rules) != len(d.Asks) {
		return fmt.Errorf("rules %v, rows %v", d.Asks, d.Rows)
	}
	return nil
}

// The whole matrix of the example: names that exist, names that do not, empty
// ones, stars, slashes, and agents named like roles.
func TestMatrix(t *testing.T) {
	data := string(exampleCSV(t))
	var o oracle
	for _, line := range strings.Split(data, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		var row []string
		for i, f := range strings.SplitN(line, ",", 6) {
			if i == 4 && strings.Contains(line, `"`) {
				f = line[strings.Index(line, `"`)+1 : strings.LastIndex(line, `"`)]
			} else if i == 5 {
				f = line[strings.LastIndex(line, ",")+1:]
			}
			row = append(row, strings.TrimSpace(f))
		}
		if row[0] == "p" {
			o.p = append(o.p, row)
		} else {
			o.g = append(o.g, row)
		}
	}
	if len(o.p) != 9 || len(o.g) != 3 {
		t.Fatalf("read %d and %d rows", len(o.p), len(o.g))
	}
	p := load(t)
	args := map[string]any{"currency": "EUR", "amount": json.Number("1"), "url": "https:"}
	cells, allowed := 0, 0
	for _, agent := range []string{"Analyst", "Intern", "Ghost", "", "role:researcher", "role:senior", "role:", "*", "analyst", "Analyst "} {
		for _, workspace := range []string{"acme", "globex", "nowhere", "", "*", "acme/alpha", "Acme", "acme "} {
			for _, project := range []string{"alpha", "beta", "gamma", "", "*", "alpha/x", "ALPHA"} {
				for _, tool := range []string{"web.search", "web.fetch", "web", "web.", "web.a.b", "data.vector_search", "files.read", "files.delete", "notes.label",
					"payments.refund", "payments.list", "payments", "time.now", "", "*", "web.*", "made.up", "Web.search", "role:researcher"} {
					cells++
					d, err := p.Permit(t.Context(), Request{agent, workspace, project, tool, args, nil})
					if want := o.permitsExample(agent, workspace, project, tool); err != nil || d.Allowed != want {
						t.Errorf("%q %q %q %q: %v (%v), want %v", agent, workspace, project, tool, d, err, want)
					}
					if d.Allowed {
						allowed++
					}
				}
			}
		}
	}
	if cells < 10_000 || allowed < 100 {
		t.Errorf("%d cells, %d allowed", cells, allowed)
	}
	t.Log(cells, "cells,", allowed, "allowed")
}

// permitsExample is permits where the conditions of the example are known: the
// allow row's is met, the deny row's is not.
func (o oracle) permitsExample(agent, workspace, project, tool string) bool {
	known := oracle{g: o.g}
	for _, p := range o.p {
		if p[4] != "" && p[5] == "deny" {
			continue
		}
		known.p = append(known.p, []string{"p", p[1], p[2], p[3], "", p[5]})
	}
	return known.permits(agent, workspace, project, tool, nil)
}
