package condition

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/policy/internal/lexical"
)

// earlier is a call of the thread that was let through before.
type earlier struct {
	tool, arguments string
	ended           bool // with a result
	elsewhere       bool // in another thread of the caller
}

// pastView is the view of a call, in a thread with labels, after others.
func pastView(t testing.TB, terms []history.Term, tool string, arguments map[string]any, labels []string, before ...earlier) *history.View {
	t.Helper()
	asked, err := history.NewTerms(terms, func(pattern, tool string) bool { return lexical.Matches(tool, pattern) })
	if err != nil {
		t.Fatal(err)
	}
	asked.Labels = true
	secret, err := history.NewSecret([]byte(strings.Repeat("s", history.MinSecret)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_700_000_000, 0)
	past := history.Past{Thread: history.Begin(now), Caller: history.Begin(now), Keeping: (*history.Keeping)(nil).With("g", asked, now), Now: now}
	add := func(adds history.Adds, err error, elsewhere bool) history.Adds {
		if err != nil {
			t.Fatal(err)
		}
		past.Caller = past.Caller.Apply(adds, true)
		if !elsewhere {
			past.Thread = past.Thread.Apply(adds, false)
		}
		return adds
	}
	add(history.Adds{At: now, Labels: labels, Call: "call_1"}, nil, false)
	for _, e := range before {
		adds, err := asked.Adds(e.tool, decodeArguments(t, e.arguments), secret, now)
		add(adds, err, e.elsewhere)
		if e.ended {
			adds, err := asked.ResultAdds(e.tool, decodeArguments(t, e.arguments), secret, now)
			add(adds, err, e.elsewhere)
		}
	}
	own, err := asked.Adds(tool, arguments, secret, now)
	if err != nil {
		t.Fatal(err)
	}
	return history.NewView(asked, secret, past, nil, own)
}

func TestPastOfACall(t *testing.T) {
	paid := []earlier{{tool: "pay.out", arguments: `{"amount":10.5,"currency":"EUR","to":"a","fine":5}`, ended: true},
		{tool: "pay.out", arguments: `{"amount":1e2,"currency":"USD","to":"b","fine":5.0}`}, {tool: "pay.out", arguments: `{"amount":400,"currency":"EUR","to":"a","fine":6}`, elsewhere: true}}
	huge := []earlier{{tool: "pay.out", arguments: `{"amount":1000000000.000001,"fine":1}`}}
	for _, c := range []struct {
		expression, arguments string
		before                []earlier
		met                   bool
		failed                error
		saw                   string
	}{
		{"'untrusted' in thread.labels && !('customer' in thread.labels)", `{}`, nil, true, nil, "thread.labels=untrusted"},
		{"thread.labels == ['untrusted'] && size(thread.labels) == 1", `{}`, nil, true, nil, "thread.labels=untrusted"},
		{"args.list.exists(x, x in thread.labels)", `{"list":["a","untrusted"]}`, nil, true, nil, "thread.labels=untrusted"},
		{"thread.labels.exists(l, l.startsWith('cust'))", `{}`, nil, false, nil, "thread.labels=untrusted"},

		// The call counts itself, and those that have not ended.
		{"thread.calls('pay.out') == 1", `{}`, nil, true, nil, "thread.calls('pay.out')=1"},
		{"thread.calls('pay.out') == 3 && thread.calls('pay.*') == 3 && thread.calls('*') == 3", `{}`, paid, true, nil, "thread.calls('*')=3 thread.calls('pay.*')=3 thread.calls('pay.out')=3"},
		{"thread.calls('files.read') == 0", `{}`, paid, true, nil, "thread.calls('files.read')=0"},
		{"thread.calls('pay.out') > 2.5", `{}`, paid, true, nil, "thread.calls('pay.out')=3"},
		{"thread.calls('pay.out', '1h') + 1 == 4", `{}`, paid, true, nil, "thread.calls('pay.out','1h')=3"},
		{"thread.results('pay.out') == 1 && thread.results('pay.out', '5m') == 1", `{}`, paid, true, nil, "thread.results('pay.out')=1 thread.results('pay.out','5m')=1"},
		{"caller.calls('pay.out', '7d') == 4", `{}`, paid, true, nil, "caller.calls('pay.out','7d')=4"},

		// Values of keys are those of arguments, however they are written.
		{"thread.calls('pay.out', {'currency': 'EUR'}) == 1", `{"currency":"USD"}`, paid, true, nil, "thread.calls('pay.out',{'currency'})#=1"},
		{"thread.calls('pay.out', {'currency': args.currency, 'to': args.to}) == 2", `{"currency":"EUR","to":"a"}`, paid, true, nil, "thread.calls('pay.out',{'currency','to'})#=2"},
		{"thread.calls('pay.out', {'fine': args.fine}) == 3 && thread.calls('pay.out', {'fine': 5u}) == 3", `{"fine":50e-1}`, paid, true, nil, "thread.calls('pay.out',{'fine'})#=3"},
		{"thread.calls('pay.out', {'amount': args.amount}) == 2", `{"amount":1.05e1}`, paid, true, nil, "thread.calls('pay.out',{'amount'})#=2"},
		{"thread.calls('pay.out', {'urgent': args.urgent}) == 1 && thread.calls('pay.out', {'urgent': !args.urgent}) == 0", `{"urgent":true}`, paid, true, nil, "thread.calls('pay.out',{'urgent'})#=0 thread.calls('pay.out',{'urgent'})#=1"},

		// A sum is a number like those of arguments.
		{"thread.sum('pay.out', 'amount') <= 500", `{"amount":389.5}`, paid, true, nil, "thread.sum('pay.out','amount')=500"},
		{"thread.sum('pay.out', 'amount') == 500 && type(thread.sum('pay.out', 'amount')) == int", `{"amount":389.5}`, paid, true, nil, "thread.sum('pay.out','amount')=500"},
		{"thread.sum('pay.out', 'amount') == 500.000001", `{"amount":389.500001}`, paid, true, nil, "thread.sum('pay.out','amount')=500.000001"},
		{"thread.sum('pay.out', 'amount') <= 500", `{"amount":389.500001}`, paid, false, nil, "thread.sum('pay.out','amount')=500.000001"},
		{"thread.sum('pay.out', 'amount') in [1, 110.75]", `{"amount":0.25}`, paid, true, nil, "thread.sum('pay.out','amount')=110.75"},
		{"caller.sum('pay.out', 'amount', {'currency': args.currency}, '1d') > 415.0", `{"amount":5,"currency":"EUR"}`, paid, true, nil, "caller.sum('pay.out','amount',{'currency'},'24h')#=415.5"},
		{"thread.sum('pay.out', 'amount') > 1.5", `{"amount":1000000000.000001}`, nil, false, errUnrepresentable, "thread.sum('pay.out','amount')=1000000000.000001"},
		{"thread.sum('pay.out', 'amount') <= 2000000001", `{"amount":0.999999}`, huge, true, nil, "thread.sum('pay.out','amount')=1000000001"},

		// What cannot be known fails, and no operator hides that it was read.
		{"thread.sum('pay.out', 'amount') <= 500", `{"amount":5e-7}`, nil, false, history.ErrUnknown, "thread.sum('pay.out','amount')=?"},
		{"thread.sum('pay.out', 'amount') <= 500 || true", `{"amount":5e-7}`, nil, false, history.ErrUnknown, "thread.sum('pay.out','amount')=?"},
		{"!(thread.sum('pay.out', 'amount') <= 500 && false)", `{"amount":5e-7}`, nil, false, history.ErrUnknown, "thread.sum('pay.out','amount')=?"},
		{"true || thread.sum('pay.out', 'amount') <= 500", `{"amount":5e-7}`, nil, true, nil, ""},
		{"thread.calls('pay.out', {'to': args.to}) > 0 || true", `{"to":["a"]}`, nil, false, errKey, ""},
		{"thread.calls('pay.out', {'to': args.to}) > 0 || true", `{}`, nil, true, nil, ""}, // nothing of the past was read
		{"thread.calls('pay.out', {'to': args.to}) > 0", `{}`, nil, false, errAbsent, ""},
		{"thread.calls('pay.out', {'amount': args.amount}) > 0 || true", `{"amount":12345678901234567890}`, nil, false, errUnrepresentable, ""},
		{"thread.calls('pay.out', {'amount': args.amount / 0.0}) > 0 || true", `{"amount":1.5}`, nil, false, errKey, ""},
		{"thread.calls('pay.out', {'to': args.to}) > 0 || true", `{"to":"` + strings.Repeat("x", 5_000) + `"}`, nil, false, history.ErrUnknown, ""},
	} {
		condition, issue := pastCompiler(t).Compile(c.expression, "pay.*")
		if issue != nil {
			t.Errorf("%s: %s", c.expression, issue.Found)
			continue
		}
		v := &Variables{Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "pay.out", Arguments: decodeArguments(t, c.arguments)}
		v.Past = pastView(t, condition.Reads().Terms, v.Tool, v.Arguments, []string{"untrusted"}, c.before...)
		met, err := condition.Evaluate(t.Context(), v)
		if met != c.met || !errors.Is(err, c.failed) || (err == nil) != (c.failed == nil) {
			t.Errorf("%s with %s: %v, %v; want %v, %v", c.expression, c.arguments, met, err, c.met, c.failed)
		}
		if saw := withoutDigests(v.Past.Saw()); saw != c.saw {
			t.Errorf("%s with %s: saw %s; want %s", c.expression, c.arguments, saw, c.saw)
		}
		// Without a past only what is not read can be decided.
		v.Past = nil
		if alone, err := condition.Evaluate(t.Context(), v); c.saw != "" && !errors.Is(err, history.ErrUnknown) || c.saw == "" && c.failed == nil && alone != c.met {
			t.Errorf("%s without a past: %v, %v", c.expression, alone, err)
		}
	}
}

// withoutDigests joins what a view saw, without the digests of keys.
func withoutDigests(saw []string) string {
	texts := slices.Clone(saw)
	for i, text := range texts {
		if term, rest, found := strings.Cut(text, "#"); found {
			texts[i] = term + "#" + rest[16:]
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// Whether the past decides is asked without it.
func TestTurnsOnPast(t *testing.T) {
	for expression, want := range map[string]bool{
		"thread.calls('pay.out') <= 3":                              true,
		"args.amount <= 100 && thread.calls('pay.out') <= 3":        false,
		"thread.calls('pay.out') <= 3 && args.amount <= 100":        false,
		"thread.calls('pay.out') <= 3 && args.amount <= 1000":       true,
		"args.amount > 100 || 'untrusted' in thread.labels":         false,
		"'untrusted' in thread.labels || args.amount > 1000":        true,
		"thread.sum('pay.out', 'amount', {'to': args.to}) <= 3":     true,
		"thread.sum('pay.out', 'amount', {'to': args.absent}) <= 3": false, // it fails whatever was before
		"thread.calls('pay.out') <= 3 && args.absent == 1":          true,  // it is false or fails
		"args.absent == 1 && thread.calls('pay.out') <= 3":          true,
		"args.huge > 5 || thread.calls('pay.out') <= 3":             false,
		"thread.labels.all(l, l != 'x') && agent == 'Analyst'":      true,
		"thread.labels.all(l, l != 'x') && agent == 'Intern'":       false,
		"args.amount == 500": false,
	} {
		condition, issue := pastCompiler(t).Compile(expression, "pay.*")
		if issue != nil {
			t.Errorf("%s: %s", expression, issue.Found)
			continue
		}
		v := &Variables{Agent: "Analyst", Tool: "pay.out", Arguments: decodeArguments(t, `{"amount":500,"to":"a","huge":12345678901234567890}`)}
		if got := condition.TurnsOnPast(t.Context(), v); got != want {
			t.Errorf("%s: found %v", expression, got)
		}
		if _, known, err := condition.Hidden(t.Context(), v); !condition.Reads().None() && want && known && err == nil {
			t.Errorf("%s: foreseen", expression)
		}
	}
}

// Any text compiles or is refused at a place of it, and what it reads of the past is what its evaluation reads.
func FuzzPast(f *testing.F) {
	for _, seed := range []string{
		"thread.calls('pay.out', {'to': args.to}, '1h') <= 3", "'untrusted' in thread.labels", "args.list.all(thread, thread.calls('x') > 1)",
		"caller.sum('pay.out', 'amount', {'currency': args.currency}, '1d') <= 5000", "[thread.labels, caller]", "thread.results('files.*')",
		"has(thread.labels)", "thread.thread.caller", "{'a': thread.labels}.a", "@labels", "é && thread.calls('é')", "thread.calls('*') in [1, 2]", "\n thread.x",
		"thread.labels.exists(caller, caller == 'x' && thread.calls('*') > 1)", "args.`thread`.labels", "thread.calls('pay.out', {'to': thread.labels[0]}) > 1",
	} {
		f.Add(seed)
	}
	compiler := pastCompiler(f)
	f.Fuzz(func(t *testing.T, expression string) {
		v := &Variables{Agent: "Analyst", Tool: "pay.out", Arguments: decodeArguments(t, `{"amount":5,"to":"a","currency":"EUR","list":["a"]}`)}
		for _, tool := range []string{"pay.*", "pay.out"} {
			condition, issue := compiler.Compile(expression, tool)
			if issue != nil {
				if issue.Offset < 0 || issue.Offset > len(expression) || strings.Contains(issue.Found, varLabels) && !strings.Contains(expression, varLabels) {
					t.Fatalf("at %d of %d: %s", issue.Offset, len(expression), issue.Found)
				}
				continue
			}
			reads := condition.Reads()
			if _, err := history.NewTerms(reads.Terms, func(string, string) bool { return true }); err != nil {
				t.Fatal(err)
			}
			if a, err := Analyze(expression); err != nil || a.Past.None() != reads.None() {
				t.Fatalf("%+v reads %+v, %v", a, reads, err)
			}
			v.Past = nil
			_, err := condition.Evaluate(t.Context(), v)
			if errors.Is(err, history.ErrUnknown) && reads.None() || condition.TurnsOnPast(t.Context(), v) && reads.None() {
				t.Fatalf("it reads nothing, and fails without: %v", err)
			}
			v.Past = pastView(t, reads.Terms, v.Tool, v.Arguments, nil)
			if _, err = condition.Evaluate(t.Context(), v); errors.Is(err, history.ErrUnknown) {
				t.Fatalf("of a thread that did nothing, something is not known: %v", v.Past.Saw())
			}
			saw := v.Past.Saw()
			for _, text := range saw {
				known := reads.Labels && strings.HasPrefix(text, "thread.labels=") || slices.ContainsFunc(reads.Terms, func(term history.Term) bool { return strings.HasPrefix(text, term.String()) })
				if !known {
					t.Fatalf("it saw %s and reads %+v", text, reads)
				}
			}
		}
	})
}
