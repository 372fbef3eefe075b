package compare

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/condition"
	"github.com/callgate/callgate/registry"
	toolapi "github.com/callgate/callgate/tool"
)

// schemaOf is the schema of every tool of these tests.
const schemaOf = `{"type":"object","properties":{
	"n":{"type":"number","minimum":0,"maximum":1000},"k":{"type":"integer"},
	"c":{"type":"string","enum":["EUR","USD","GBP"]},"s":{"type":"string","maxLength":12},
	"b":{"type":"boolean"},"o":{"type":"object","properties":{"amount":{"type":"number"},"total":{"type":"number"}}},"l":{"type":"array","items":{"type":"string"}}
},"required":["n"]}`

// conditionsOfTests are bounds, and others.
var conditionsOfTests = []string{
	"args.n <= 100", "args.n < 100", "args.n <= 100.5", "args.n > 50 && args.n <= 100", "!(args.n > 100)", "args.n in [7, 8.5]",
	"args.c == 'EUR'", "has(args.c) && args.c == 'EUR'", "args.c != 'USD'", "args.c in ['EUR', 'USD']", "args.b", "!args.b", "has(args.b)",
	"args.k == 3", "has(args.k) && args.k >= 3 || args.n == 1", "agent == 'a1'", "agent != 'a1' && args.n <= 10", "true", "false",
	"args.o.amount <= 100", "args.o.amount <= 1000", "has(args.o.amount) && args.o.amount <= 100", "args.o.amount == 100 && args.c == 'EUR'", "args.c == 'EUR' && args.o.amount >= 100",
	"args.c == 'EUR' && args.n <= 100", "args.c in ['EUR', 'GBP'] && args.n < 100.5", "args.n <= 100 && args.s.startsWith('x')",
	"args.s.startsWith('x')", "args.s == 'x'", "size(args.s) <= 3", "has(args.l) && size(args.l) > 2", "'red' in args.l",
	"args.l.exists(e, e == 'red')", "args.n + 1.0 <= 100.0", "args.s.matches('^ab+c$')",
}

// draw makes a policy of a few rows, and from it another by some edits.
func draw(r *rand.Rand) (lines, edited []string) {
	row := func() string {
		when := ""
		if r.IntN(2) == 0 {
			when = `"` + conditionsOfTests[r.IntN(len(conditionsOfTests))] + `"`
		}
		return fmt.Sprintf("p, %s, %s, %s, %s, %s", pick(r, "a1", "a2", "role:r1", "role:r2"), pick(r, "w1/p1", "w1/p2", "w1/*", "w2/p1", "*"),
			pick(r, "t.x", "t.y", "t.*", "t.u.*", "v", "*"), when, pick(r, "allow", "allow", "allow", "deny", "ask:one", "ask:two"))
	}
	grant := func() string {
		return fmt.Sprintf("g, %s, %s, %s", pick(r, "a1", "a2", "a3"), pick(r, "role:r1", "role:r2"), pick(r, "w1/p1", "w1/*", "*"))
	}
	for range 1 + r.IntN(5) {
		lines = append(lines, row())
	}
	for range r.IntN(3) {
		lines = append(lines, grant())
	}
	if r.IntN(3) == 0 {
		lines = append(lines, "g, role:r1, role:r2, "+pick(r, "w1/*", "*"))
	}
	edited = slices.Clone(lines)
	for range r.IntN(4) {
		at := r.IntN(len(edited) + 1)
		switch r.IntN(4) {
		case 0:
			edited = slices.Insert(edited, at, row())
		case 1:
			edited = slices.Insert(edited, at, grant())
		case 2:
			if at < len(edited) {
				edited = slices.Delete(edited, at, at+1)
			}
		default:
			if at < len(edited) && strings.HasPrefix(edited[at], "p") {
				edited[at] = row()
			}
		}
	}
	r.Shuffle(len(edited), func(i, j int) { edited[i], edited[j] = edited[j], edited[i] })
	return lines, edited
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

// drawArguments makes arguments that the schema accepts, mostly.
func drawArguments(r *rand.Rand) map[string]any {
	args := map[string]any{"n": json.Number(pick(r, "0", "1", "7", "8.5", "10", "50", "50.5", "99", "99.0", "99.5", "100", "100.25", "100.5", "101", "500", "1000"))}
	maybe := func(name string, value any) {
		if r.IntN(2) == 0 {
			args[name] = value
		}
	}
	maybe("k", json.Number(pick(r, "2", "3", "4", "3.0", "-1")))
	maybe("c", pick(r, "EUR", "USD", "GBP"))
	maybe("s", pick(r, "", "x", "xy", "abc", "abbbc", "long text"))
	maybe("o", map[string]any{"amount": json.Number(pick(r, "50", "100", "100.0", "500", "1e3", "2000", "12345678901234567890123"))})
	maybe("b", r.IntN(2) == 0)
	list := []any{}
	for range r.IntN(5) {
		list = append(list, pick(r, "red", "blue"))
	}
	maybe("l", list)
	return args
}

func load(t testing.TB, name string, lines []string) *policy.Policy {
	t.Helper()
	data := strings.Join(append(slices.Clone(lines), "# end\n"), "\n")
	p, _, err := policy.Load(policy.Source{File: name, Data: []byte(data)}, toolsOfTests(), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return p
}

func toolsOfTests() []condition.Tool {
	var tools []condition.Tool
	for _, name := range []string{"t.x", "t.y", "t.u.z", "v"} {
		tools = append(tools, condition.Tool{Name: name, InputSchema: json.RawMessage(schemaOf)})
	}
	return tools
}

func registryOfTests(t testing.TB) *registry.Registry {
	var tools []registry.Tool
	for _, tool := range toolsOfTests() {
		tools = append(tools, registry.Tool{Name: tool.Name, Description: "A tool.", InputSchema: tool.InputSchema, Run: toolapi.Run{Type: "client"}})
	}
	r, err := registry.New(tools)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func side(p *policy.Policy, tools *registry.Registry) Side {
	return Side{
		Policy: p,
		Accepts: func(tool string, args map[string]any) bool {
			e, known := tools.Lookup(tool)
			return !known || len(e.Evaluate(args)) == 0
		},
		Schemas: func(tool string) []json.RawMessage {
			if e, known := tools.Lookup(tool); known {
				return []json.RawMessage{e.InputSchema()}
			}
			return nil
		},
	}
}

// TestOracle compares pairs of random policies with all that they decide: every agent,
// project and tool, and 200 sets of arguments each. CALLGATE_DIFF_PAIRS is how many pairs.
func TestOracle(t *testing.T) {
	pairs := 60
	if n, err := strconv.Atoi(os.Getenv("CALLGATE_DIFF_PAIRS")); err == nil {
		pairs = n
	}
	tools := registryOfTests(t)
	var stats struct{ same, wider, narrower, incomparable, open, seen int }
	for seed := range pairs {
		r := rand.New(rand.NewPCG(uint64(seed), 17))
		lines, edited := draw(r)
		a, b := load(t, "a.csv", lines), load(t, "b.csv", edited)
		there, back := compared(t, side(a, tools), side(b, tools)), compared(t, side(b, tools), side(a, tools))
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d: %s\n%s\n--\n%s", seed, fmt.Sprintf(format, args...), strings.Join(lines, "\n"), strings.Join(edited, "\n"))
		}
		checkMirror(fail, there, back)
		checkReach(fail, a, b, there)
		var drawn []map[string]any
		for len(drawn) < 200 {
			if args := drawArguments(r); side(a, tools).accepts("v", args) {
				drawn = append(drawn, args)
			}
		}
		all := Equivalent
		for _, c := range callsOfTests() {
			seen, o := Equivalent, there.outcomes[c]
			for i, args := range drawn {
				if i > 0 && settled(a, c) && settled(b, c) {
					break // whatever the arguments are
				}
				before, after := decide(t, a, c, args), decide(t, b, c, args)
				if !Within(after, before) {
					seen = seen.Join(Wider)
				}
				if !Within(before, after) {
					seen = seen.Join(Narrower)
				}
			}
			got := Equivalent
			if o != nil {
				got = o.change()
				stats.open += btoi(o.wider == unknown || o.narrower == unknown)
				checkExamples(t, fail, a, b, tools, o)
			}
			if got.Join(seen) != got {
				fail("%v: %s, but the oracle saw %s", c, got, seen)
			}
			if seen != Equivalent {
				stats.seen++
			}
			all = all.Join(got)
		}
		if there.result.Verdict.Join(all) != there.result.Verdict {
			fail("the whole is %s, but its calls are %s", there.result.Verdict, all)
		}
		switch there.result.Verdict {
		case Equivalent:
			stats.same++
		case Wider:
			stats.wider++
		case Narrower:
			stats.narrower++
		default:
			stats.incomparable++
		}
	}
	t.Logf("%+v", stats)
	if pairs >= 60 && (stats.same == 0 || stats.wider == 0 || stats.narrower == 0 || stats.seen < 100) {
		t.Errorf("the pairs are too much alike: %+v", stats)
	}
}

// settled reports that a policy decides a call by no condition.
func settled(p *policy.Policy, c call) bool {
	reach, err := p.Reach(c.agent, c.at.workspace, c.at.project, c.tool)
	return err == nil && (reach == policy.Never || reach == policy.Always)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// comparedPair is a result, and the outcome of each call that differs.
type comparedPair struct {
	result   Result
	outcomes map[call]*outcome
}

func compared(t *testing.T, old, now Side) comparedPair {
	t.Helper()
	w := World{Agents: []string{"a1", "a4"}, Projects: []string{"w1/p1", "w3/p1"}, Tools: []string{"t.x", "t.y", "t.u.z", "v"}}
	result, err := Compare(t.Context(), old, now, w)
	if err != nil {
		t.Fatal(err)
	}
	p := comparedPair{result: result, outcomes: map[call]*outcome{}}
	s := newSearcher(t.Context(), old, now)
	for _, c := range callsOfTests() {
		before := newTerms(old.Policy.Matching(c.agent, c.at.workspace, c.at.project, c.tool))
		after := newTerms(now.Policy.Matching(c.agent, c.at.workspace, c.at.project, c.tool))
		if before.key == after.key {
			continue
		}
		o, err := s.compare(c, before, after)
		if err != nil {
			t.Fatal(err)
		}
		p.outcomes[c] = o
	}
	return p
}

// callsOfTests has names that the policies have, and names that they do not have.
func callsOfTests() []call {
	var calls []call
	for _, agent := range []string{"a1", "a2", "a3", "a4"} {
		for _, at := range []place{{"w1", "p1"}, {"w1", "p2"}, {"w1", "p9"}, {"w2", "p1"}, {"w9", "p9"}} {
			for _, tool := range []string{"t.x", "t.y", "t.w", "t.u.z", "t.u", "t", "v", "zz"} {
				calls = append(calls, call{agent, at, tool})
			}
		}
	}
	return calls
}

func decide(t *testing.T, p *policy.Policy, c call, args map[string]any) policy.Decision {
	t.Helper()
	d, err := p.Permit(t.Context(), policy.Request{Agent: c.agent, Workspace: c.at.workspace, Project: c.at.project, Tool: c.tool, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// checkReach compares the reach of both sides with the policies' own, and a result with the
// calls that it is of.
func checkReach(fail func(string, ...any), a, b *policy.Policy, p comparedPair) {
	for _, c := range callsOfTests() {
		for _, of := range []*policy.Policy{a, b} {
			reach, err := of.Reach(c.agent, c.at.workspace, c.at.project, c.tool)
			got := newTerms(of.Matching(c.agent, c.at.workspace, c.at.project, c.tool)).String()
			want := map[policy.Reach]string{policy.Never: "never", policy.Always: "always", policy.OnConditions: "on conditions"}[reach]
			switch {
			case err != nil:
				fail("%v", err)
			case reach == policy.Asks && (strings.Contains(got, "on conditions") || !strings.Contains(got, "ask")):
				fail("%v: the reach is %q, expected that it asks", c, got)
			case reach != policy.Asks && strings.Split(got, ",")[0] != want:
				fail("%v: the reach is %q, expected %q", c, got, want)
			}
		}
		// Unlike outcomes of a call are a difference of the whole.
		if o := p.outcomes[c]; o != nil && o.change() != Equivalent && p.result.Differ == 0 {
			fail("%v differs, and nothing is counted", c)
		}
	}
}

func checkMirror(fail func(string, ...any), there, back comparedPair) {
	mirrored := map[Verdict]Verdict{Wider: Narrower, Narrower: Wider, Equivalent: Equivalent, Incomparable: Incomparable}
	if there.result.Verdict != mirrored[back.result.Verdict] || there.result.Differ != back.result.Differ ||
		there.result.Calls != back.result.Calls || len(there.result.Groups) != len(back.result.Groups) {
		fail("there %+v\nback %+v", there.result, back.result)
	}
	for c, o := range there.outcomes {
		other := back.outcomes[c]
		if other == nil || o.wider != other.narrower || o.narrower != other.wider || len(o.examples) != len(other.examples) {
			fail("%v: there %+v, back %+v", c, o, other)
		}
	}
}

func checkExamples(t *testing.T, fail func(string, ...any), a, b *policy.Policy, tools *registry.Registry, o *outcome) {
	for _, e := range o.examples {
		decoder := json.NewDecoder(strings.NewReader(string(e.Arguments)))
		decoder.UseNumber()
		var args map[string]any
		if err := decoder.Decode(&args); err != nil {
			fail("%v", err)
		}
		workspace, project, _ := strings.Cut(e.Project, "/")
		c := call{e.Agent, place{workspace, project}, e.Tool}
		before, after := verdictOf(decide(t, a, c, args)), verdictOf(decide(t, b, c, args))
		if before == after || before != e.Old || after != e.New || !side(a, tools).accepts(e.Tool, args) {
			fail("the example %+v is decided %s and %s", e, before, after)
		}
	}
}

func TestSamePolicyIsEquivalent(t *testing.T) {
	tools := registryOfTests(t)
	for seed := range 50 {
		lines, _ := draw(rand.New(rand.NewPCG(uint64(seed), 1)))
		a := load(t, "a.csv", lines)
		slices.Reverse(lines)
		result, err := Compare(t.Context(), side(a, tools), side(load(t, "b.csv", lines), tools), World{})
		if err != nil || result.Verdict != Equivalent || result.Differ != 0 || len(result.Groups) != 0 {
			t.Fatalf("%v %+v\n%s", err, result, strings.Join(lines, "\n"))
		}
	}
}
