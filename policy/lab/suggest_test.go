package lab

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/detector"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/compare"
)

func load(t *testing.T, data string) *policy.Policy {
	t.Helper()
	p, _, err := policy.Load(policy.Source{File: "policy.csv", Data: []byte(data)}, nil, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return p
}

// suggestRecorded is a call of a log, with or without its arguments.
type suggestRecorded struct {
	policy.Request
	known bool
}

func suggest(t *testing.T, data string, calls []suggestRecorded, o SuggestOptions) (string, SuggestCounts) {
	t.Helper()
	u := NewUses(load(t, data))
	for _, c := range calls {
		if err := u.Add(t.Context(), c.Request, c.known); err != nil {
			t.Fatal(err)
		}
	}
	out, counts := u.Suggest([]byte(data), o)
	return string(out), counts
}

func suggestCall(agent, project, tool string, n string) suggestRecorded {
	workspace, name, _ := strings.Cut(project, "/")
	r := suggestRecorded{Request: policy.Request{Agent: agent, Workspace: workspace, Project: name, Tool: tool}, known: n != ""}
	if n != "" {
		r.Arguments = map[string]any{"n": json.Number(n)}
	}
	return r
}

func TestSuggest(t *testing.T) {
	const data = `# Ours.
p, role:r, w/*, t.*, , allow

p, A, w/p, u, "args.n in [1, 2]", allow
p, A, w/p, v, args.n <= 10, allow
p, B, *, *, , deny
p, A, *, x, , ask:one
p, A, w/p, never.used, , allow
p, A, w/p, t.a, , allow
g, A, role:r, *
g, C, role:r, *
# end
`
	got, counts := suggest(t, data, []suggestRecorded{
		suggestCall("A", "w/p", "t.b", "1"), suggestCall("C", "w/q", "t.b", ""), suggestCall("A", "w/p", "t.a", ""), // by the role, and a row of its own
		suggestCall("A", "w/p", "u", "3"), // denied
		suggestCall("A", "w/p", "v", ""),  // may have passed
		suggestCall("B", "w/p", "t.a", ""), suggestCall("A", "w/p", "x", ""), suggestCall("Z", "w/p", "t.a", "1"),
	}, SuggestOptions{Head: []string{"two", "lines"}, Since: "2026-11-10"})
	want := `# policy suggest: two
# policy suggest: lines
# Ours.
# wider than its use since 2026-11-10: p, role:r, w/*, t.*, , allow
p, A, w/p, t.b, , allow
p, C, w/q, t.b, , allow

# unused since 2026-11-10: p, A, w/p, u, "args.n in [1, 2]", allow
p, A, w/p, v, args.n <= 10, allow
p, B, *, *, , deny
p, A, *, x, , ask:one
# unused since 2026-11-10: p, A, w/p, never.used, , allow
p, A, w/p, t.a, , allow
g, A, role:r, *
g, C, role:r, *
# end
`
	if got != want || counts != (SuggestCounts{Rows: 5, Unused: 2, Narrowed: 1}) {
		t.Errorf("%+v\n%s", counts, got)
	}
	if windows, _ := suggest(t, strings.ReplaceAll("p, B, *, *, , allow\n# x\n# end\n", "\n", "\r\n"), nil, SuggestOptions{Since: "2026-11-10"}); windows != "# unused since 2026-11-10: p, B, *, *, , allow\n# x\n# end\n" {
		t.Errorf("with line ends of Windows: %q", windows)
	}
	of, _ := suggest(t, data, []suggestRecorded{suggestCall("A", "w/p", "v", "")}, SuggestOptions{Since: "2026-11-10", Agent: "A"})
	if !strings.Contains(of, "\np, role:r, w/*, t.*, , allow\n") || !strings.Contains(of, ": p, A, w/p, t.a, ") {
		t.Errorf("for A alone, who shares a role:\n%s", of)
	}
}

// More calls than a row may become rows: the narrowest patterns that cover them.
func TestManyCalls(t *testing.T) {
	for _, c := range []struct {
		name, domain, tool, want string
		project, called          func(i int) string
	}{
		{"one project", "*", "*", "p, role:r, w/p, t.u.*, , allow", func(int) string { return "w/p" }, func(i int) string { return fmt.Sprintf("t.u.x%d", i) }},
		{"one workspace", "*", "t.*", "p, role:r, w/*, t.u, , allow", func(i int) string { return fmt.Sprintf("w/p%d", i) }, func(int) string { return "t.u" }},
		{"everywhere", "*", "*", "p, role:r, *, *, , allow", func(i int) string { return fmt.Sprintf("w%d/p", i) }, func(i int) string { return fmt.Sprintf("t%d", i) }},
		{"a tool and tools below it", "w/p", "*", "p, role:r, w/p, a.*, , allow", func(int) string { return "w/p" }, func(i int) string { return "a.b" + strings.Repeat(".c", i) }},
	} {
		var calls []suggestRecorded
		for i := range maxExact + 1 {
			calls = append(calls, suggestCall("A", c.project(i), c.called(i), ""))
		}
		data := fmt.Sprintf("p, role:r, %s, %s, , allow\ng, A, role:r, *\n# end\n", c.domain, c.tool)
		got, _ := suggest(t, data, calls, SuggestOptions{})
		lines := strings.Split(got, "\n")
		if at := slices.Index(lines, c.want); at < 0 {
			t.Errorf("%s: there is no %s:\n%s", c.name, c.want, got)
		}
		few, _ := suggest(t, data, calls[1:], SuggestOptions{})
		if n := strings.Count(few, "\np, A,"); n != maxExact {
			t.Errorf("%s: %d rows of %d calls:\n%s", c.name, n, maxExact, few)
		}
	}
}

// TestRandom narrows random policies by random calls: the result loads, is never wider, decides
// every one of the calls as before, and is its own suggestion.
func TestRandom(t *testing.T) {
	detector.OneGoroutine(t)
	narrower, changed := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		pick := func(from ...string) string { return from[r.IntN(len(from))] }
		var rows []string
		for range 1 + r.IntN(8) {
			rows = append(rows, fmt.Sprintf("p, %s, %s, %s, %s, %s", pick("A", "B", "role:r", "role:s"), pick("w/p", "w/q", "w/*", "x/p", "*"),
				pick("t.a", "t.b", "t.*", "t.u.*", "v", "*"), pick("", "", "args.n <= 5", "args.n != 3", "agent == 'A'"),
				pick("allow", "allow", "allow", "allow", "deny", "ask:one")))
		}
		for range r.IntN(3) {
			rows = append(rows, fmt.Sprintf("g, %s, %s, %s", pick("A", "B", "C"), pick("role:r", "role:s"), pick("w/*", "*")))
		}
		rows = append(rows, "# end\n")
		data := strings.Join(rows, "\n")
		var calls []suggestRecorded
		for range r.IntN(60) {
			calls = append(calls, suggestCall(pick("A", "B", "C"), pick("w/p", "w/q", "w/z", "x/p"), pick("t.a", "t.b", "t.u.c", "t.u.d.e", "v", "y"), pick("", "1", "3", "7")))
		}
		o := SuggestOptions{Head: []string{"seen"}, Since: "2026-11-10"}
		if r.IntN(3) == 0 {
			o.Agent = "A"
		}
		got, _ := suggest(t, data, calls, o)
		before, after := load(t, data), load(t, got)
		result, err := compare.Compare(t.Context(), before, after, compare.World{})
		if err != nil || result.Verdict != compare.Equivalent && result.Verdict != compare.Narrower {
			t.Fatalf("seed %d: %v, %s\n%s--\n%s%+v", seed, err, result.Verdict, data, got, result.Groups)
		}
		if result.Verdict == compare.Narrower {
			narrower++
		}
		for _, c := range calls {
			all := []map[string]any{c.Arguments}
			for n := 0; n < 9 && !c.known; n++ {
				all = append(all, map[string]any{"n": json.Number(fmt.Sprint(n))})
			}
			for _, args := range all {
				c.Arguments = args
				was, err := before.Permit(t.Context(), c.Request)
				if err != nil {
					t.Fatal(err)
				}
				is, err := after.Permit(t.Context(), c.Request)
				if err != nil || was.Allowed != is.Allowed || !slices.Equal(was.Asks, is.Asks) {
					t.Fatalf("seed %d: %+v was %v, is %v (%v)\n%s--\n%s", seed, c, was, is, err, data, got)
				}
			}
		}
		again, counts := suggest(t, got, calls, o)
		if again != got || counts.Unused+counts.Narrowed > 0 {
			t.Fatalf("seed %d: not its own suggestion\n%s--\n%s--\n%s", seed, data, got, again)
		}
		if got != data {
			changed++
		}
	}
	if narrower < 100 {
		t.Errorf("only %d of %d became narrower", narrower, changed)
	}
}

func TestWritten(t *testing.T) {
	for _, written := range []string{
		`p, A, w/p, t.a, , allow`,
		`p, "a, b", w/*, *, "args.s == 'x, ""y""' && args.n <= 100", ask:one`,
		`p, role:r, *, t.*, args.n == 1, deny`,
	} {
		row, err := policy.ParseRow(written)
		if err != nil || row.CSV() != written {
			t.Errorf("%s: %v, %s", written, err, row.CSV())
		}
	}
}
