package compare

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/condition"
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
	"args.k == 3", "args.k > 3", "has(args.k) && args.k > 3", "has(args.k) && args.k >= 3 || args.n == 1", "agent == 'a1'", "agent != 'a1' && args.n <= 10", "true", "false",
	"args.o.amount <= 100", "args.o.amount <= 1000", "has(args.o.amount) && args.o.amount <= 100", "args.o.amount == 100 && args.c == 'EUR'", "args.c == 'EUR' && args.o.amount >= 100",
	"args.c == 'EUR' && args.n <= 100", "args.c in ['EUR', 'GBP'] && args.n < 100.5", "args.n <= 100 && args.s.startsWith('x')",
	"args.s.startsWith('x')", "args.s == 'x'", "size(args.s) <= 3", "has(args.l) && size(args.l) > 2", "'red' in args.l",
	"args.l.exists(e, e == 'red')", "args.n + 1.0 <= 100.0", "args.s.matches('^ab+c$')",
}

var (
	quoted = regexp.MustCompile(`"[^"]*"`)
	member = regexp.MustCompile(`args\.\w`)
)

// draw makes a policy of a few rows, and from it another by some edits.
func draw(r *rand.Rand) (lines, edited []string) {
	row := func() string {
		when := ""
		if r.IntN(2) == 0 {
			when = `"` + pick(r, conditionsOfTests...) + `"`
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
		switch r.IntN(7) {
		case 0:
			edited = slices.Insert(edited, at, row())
		case 1:
			edited = slices.Insert(edited, at, grant())
		case 2:
			if at < len(edited) {
				edited = slices.Delete(edited, at, at+1)
			}
		case 3, 4, 5: // another condition on the same member
			at := slices.IndexFunc(edited, quoted.MatchString)
			if at < 0 {
				break
			}
			read := member.FindString(quoted.FindString(edited[at]))
			alike := slices.DeleteFunc(slices.Clone(conditionsOfTests), func(c string) bool { return !strings.Contains(c, read) })
			edited[at] = quoted.ReplaceAllLiteralString(edited[at], `"`+pick(r, alike...)+`"`)
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

// drawArguments makes arguments that the schema accepts.
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

// TestOracle compares pairs of random policies with all that they decide: every agent,
// project and tool, and 200 sets of arguments each. No verdict may be wrong but incomparable, which
// claims nothing. CALLGATE_DIFF_PAIRS is how many pairs.
func TestOracle(t *testing.T) {
	pairs := 60
	if n, err := strconv.Atoi(os.Getenv("CALLGATE_DIFF_PAIRS")); err == nil {
		pairs = n
	}
	seen := map[Verdict]int{}
	differ := 0
	for seed := range pairs {
		r := rand.New(rand.NewPCG(uint64(seed), 17))
		lines, edited := draw(r)
		a, b := load(t, "a.csv", lines), load(t, "b.csv", edited)
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d: %s\n%s\n--\n%s", seed, fmt.Sprintf(format, args...), strings.Join(lines, "\n"), strings.Join(edited, "\n"))
		}
		w := World{Agents: []string{"a1", "a4"}, Projects: []string{"w1/p1", "w3/p1"}, Tools: []string{"t.x", "t.y", "t.u.z", "v"}}
		there, err := Compare(t.Context(), a, b, w)
		back, errBack := Compare(t.Context(), b, a, w)
		if err != nil || errBack != nil {
			fail("%v, %v", err, errBack)
		}
		mirrored := map[Verdict]Verdict{Wider: Narrower, Narrower: Wider, Equivalent: Equivalent, Incomparable: Incomparable}
		if there.Verdict != mirrored[back.Verdict] || there.Differ != back.Differ || there.Calls != back.Calls || len(there.Groups) != len(back.Groups) {
			fail("there %+v\nback %+v", there, back)
		}
		checkReach(fail, a, b)
		var drawn []map[string]any
		for len(drawn) < 200 {
			drawn = append(drawn, drawArguments(r))
		}
		known := conditions{}
		for _, c := range callsOfTests() {
			got := known.compare(matchingTerms(a, c), matchingTerms(b, c))
			if there.Verdict.Join(got) != there.Verdict || got != Equivalent && there.Differ == 0 {
				fail("the whole is %s, and %v is %s", there.Verdict, c, got)
			}
			found := Equivalent
			for i, args := range drawn {
				if i > 0 && settled(a, c) && settled(b, c) {
					break // whatever the arguments are
				}
				before, after := decide(t, a, c, args), decide(t, b, c, args)
				if !within(after, before) {
					found = found.Join(Wider)
				}
				if !within(before, after) {
					found = found.Join(Narrower)
				}
			}
			if got.Join(found) != got {
				fail("%v: %s, but the oracle saw %s", c, got, found)
			}
			if found != Equivalent {
				differ++
			}
		}
		seen[there.Verdict]++
	}
	t.Logf("%v, calls that differ: %d", seen, differ)
	if pairs >= 60 && (seen[Equivalent] == 0 || seen[Wider] == 0 || seen[Narrower] == 0 || differ < 100) {
		t.Errorf("the pairs are too much alike: %v, calls that differ: %d", seen, differ)
	}
}

func matchingTerms(p *policy.Policy, c call) terms {
	return newTerms(p.Matching(c.agent, c.at.workspace, c.at.project, c.tool))
}

// within reports that a decision grants no more than another: it denies, or asks by at least
// the same rules.
func within(a, b policy.Decision) bool {
	if !a.Allowed {
		return true
	}
	return b.Allowed && !slices.ContainsFunc(b.Asks, func(rule string) bool { return !slices.Contains(a.Asks, rule) })
}

// settled reports that a policy decides a call by no condition.
func settled(p *policy.Policy, c call) bool {
	reach, err := p.Reach(c.agent, c.at.workspace, c.at.project, c.tool)
	return err == nil && (reach == policy.Never || reach == policy.Always)
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

// checkReach compares the reach of both sides with the policies' own.
func checkReach(fail func(string, ...any), policies ...*policy.Policy) {
	for _, c := range callsOfTests() {
		for _, of := range policies {
			reach, err := of.Reach(c.agent, c.at.workspace, c.at.project, c.tool)
			got := matchingTerms(of, c).String()
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
	}
}

func TestSamePolicyIsEquivalent(t *testing.T) {
	for seed := range 50 {
		lines, _ := draw(rand.New(rand.NewPCG(uint64(seed), 1)))
		a := load(t, "a.csv", lines)
		slices.Reverse(lines)
		result, err := Compare(t.Context(), a, load(t, "b.csv", lines), World{})
		if err != nil || result.Verdict != Equivalent || result.Differ != 0 || len(result.Groups) != 0 {
			t.Fatalf("%v %+v\n%s", err, result, strings.Join(lines, "\n"))
		}
	}
}
