package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/history"
)

// pastOf is the view of a request in a thread with labels, in which some calls were made before.
func pastOf(t testing.TB, p *Policy, r Request, labels []string, before ...poolCall) *history.View {
	t.Helper()
	terms, err := history.NewTerms(p.Terms(), Covers)
	if err != nil {
		t.Fatal(err)
	}
	terms.Labels = true
	secret, err := history.NewSecret([]byte(strings.Repeat("s", history.MinSecret)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_700_000_000, 0)
	past := history.Past{Thread: history.Begin(now), Caller: history.Begin(now), Keeping: (*history.Keeping)(nil).With("g", terms, now), Now: now}
	past.Thread = past.Thread.Apply(history.Adds{At: now, Labels: labels, Call: "call_1"}, false)
	for _, c := range before {
		adds, err := terms.Adds(c.tool, c.args, secret, now)
		if err != nil {
			t.Fatal(err)
		}
		past.Thread, past.Caller = past.Thread.Apply(adds, false), past.Caller.Apply(adds, true)
		if !c.ended {
			continue
		}
		if adds, err = terms.ResultAdds(c.tool, c.args, secret, now); err != nil {
			t.Fatal(err)
		}
		past.Thread = past.Thread.Apply(adds, false)
	}
	own, err := terms.Adds(r.Tool, r.Arguments, secret, now)
	if err != nil {
		t.Fatal(err)
	}
	return history.NewView(terms, secret, past, nil, own)
}

// readTexts are what is read of the past, as texts.
func readTexts(labels bool, terms []history.Term) string {
	var all []string
	if labels {
		all = append(all, "labels")
	}
	for _, t := range terms {
		all = append(all, t.String())
	}
	return strings.Join(all, " ")
}

const pastRows = `p, Analyst, acme/alpha, payments.refund, "thread.calls('payments.refund') <= 2 && args.amount <= 100", allow
p, Analyst, acme/alpha, payments.refund, "thread.results('payments.list') > 0 && args.amount <= 1000", allow
p, Analyst, acme/alpha, payments.refund, "args.amount > 500 && 'untrusted' in thread.labels", deny
p, Analyst, acme/alpha, payments.refund, "'customer' in thread.labels", ask:refunds
p, Analyst, acme/alpha, web.search, , allow
p, Analyst, acme/alpha, web.search, "thread.calls('web.*') > 5", allow
p, Analyst, acme/alpha, web.fetch, , deny
p, Analyst, acme/alpha, web.fetch, "caller.calls('web.*', '1h') > 5", allow
p, Analyst, acme/alpha, time.now, "caller.calls('*', '1h') <= 3", allow
p, Analyst, acme/alpha, files.read, "thread.calls('*') <= 1", ask:refunds
`

// A decision says what was read of the past by the conditions for which the call is not allowed.
func TestDecisionsOnThePast(t *testing.T) {
	p := mustLoad(t, pastRows)
	for name, c := range map[string]struct {
		tool, arguments string
		labels, before  []string
		alone           bool // without a past
		want            string
	}{
		"the first":                    {tool: "payments.refund", arguments: `{"amount":50}`, want: "allowed by 1"},
		"the third":                    {tool: "payments.refund", arguments: `{"amount":50}`, before: []string{"payments.refund", "payments.refund"}, want: "denied by 0: thread.calls('payments.refund') thread.results('payments.list')"},
		"the third after a list":       {tool: "payments.refund", arguments: `{"amount":50}`, before: []string{"payments.refund", "payments.refund", "payments.list"}, want: "allowed by 2"},
		"too much for the first row":   {tool: "payments.refund", arguments: `{"amount":500}`, before: []string{"payments.refund", "payments.refund"}, want: "denied by 0: thread.results('payments.list')"},
		"too much for any":             {tool: "payments.refund", arguments: `{"amount":5000}`, before: []string{"payments.refund", "payments.refund"}, want: "denied by 0: "},
		"much, of a page":              {tool: "payments.refund", arguments: `{"amount":600}`, labels: []string{"untrusted"}, before: []string{"payments.list"}, want: "denied by 3: labels"},
		"little, of a page":            {tool: "payments.refund", arguments: `{"amount":50}`, labels: []string{"untrusted"}, want: "allowed by 1"},
		"of a customer":                {tool: "payments.refund", arguments: `{"amount":50}`, labels: []string{"customer"}, want: "asks by 4"},
		"without a past":               {tool: "payments.refund", arguments: `{"amount":50}`, alone: true, want: "unknown by 0: thread.calls('payments.refund') thread.results('payments.list')"},
		"much without a past":          {tool: "payments.refund", arguments: `{"amount":600}`, alone: true, want: "unknown by 3: labels"},
		"of a caller":                  {tool: "time.now", arguments: `{}`, before: []string{"time.now", "web.search", "web.fetch"}, want: "denied by 0: caller.calls('*','1h')"},
		"only asked":                   {tool: "files.read", arguments: `{}`, before: []string{"time.now"}, want: "denied by 0: thread.calls('*')"},
		"no condition matters, allows": {tool: "web.search", arguments: `{}`, alone: true, want: "allowed by 5"},
		"no condition matters, denies": {tool: "web.fetch", arguments: `{}`, alone: true, want: "denied by 7: "},
	} {
		r := Request{Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: c.tool, Arguments: decode(t, c.arguments)}
		if !c.alone {
			var before []poolCall
			for _, tool := range c.before {
				before = append(before, poolCall{tool, r.Arguments, true})
			}
			r.Past = pastOf(t, p, r, c.labels, before...)
		}
		d, err := p.Permit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		verdict := "denied"
		switch {
		case d.Unknown:
			verdict = "unknown"
		case d.Allowed && len(d.Asks) > 0:
			verdict = "asks"
		case d.Allowed:
			verdict = "allowed"
		}
		line := 0
		if d.Row != nil {
			line = d.Row.Line
		}
		got := fmt.Sprintf("%s by %d", verdict, line)
		if !d.Allowed {
			got += ": " + readTexts(d.Reads.Labels, d.Reads.Terms)
		} else if !d.Reads.None() {
			got += ", though allowed: " + readTexts(d.Reads.Labels, d.Reads.Terms)
		}
		if got != c.want {
			t.Errorf("%s: found %s; expected %s", name, got, c.want)
		}
		if o, _, err := p.Foresee(t.Context(), r); err != nil || (o == Depends) != (c.tool == "payments.refund" || c.tool == "time.now" || c.tool == "files.read") {
			t.Errorf("%s: foreseen %v, %v", name, o, err)
		}
	}
	for tool, want := range map[string]string{
		"payments.refund": "labels thread.calls('payments.refund') thread.results('payments.list')",
		"web.search":      "", "web.fetch": "", "time.now": "caller.calls('*','1h')", "made.up": "",
	} {
		reads, err := p.Reads("Analyst", "acme", "alpha", tool)
		if got := readTexts(reads.Labels, reads.Terms); err != nil || got != want {
			t.Errorf("%s reads %s, %v; expected %s", tool, got, err, want)
		}
	}
	if got, want := readTexts(p.ReadsLabels(), p.Terms()), "labels thread.calls('payments.refund') thread.results('payments.list') thread.calls('web.*') caller.calls('web.*','1h') caller.calls('*','1h') thread.calls('*')"; got != want {
		t.Errorf("the policy reads %s; expected %s", got, want)
	}
	var none *Policy
	if none.Terms() != nil || none.ReadsLabels() {
		t.Error("no policy reads something")
	}
	if _, err := none.Reads("a", "w", "p", "t"); !errors.Is(err, errNoPolicy) {
		t.Error(err)
	}
}

// An explanation shows what was done before, or says that it was not given.
func TestExplainThePast(t *testing.T) {
	p := mustLoad(t, pastRows)
	r := Request{Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "payments.refund", Arguments: decode(t, `{"amount":600}`)}
	for name, c := range map[string]struct {
		past *history.View
		want []string
	}{
		"given": {pastOf(t, p, r, []string{"untrusted"}, poolCall{"payments.list", r.Arguments, true}), []string{
			"Denied by policy.csv:3: deny Analyst in acme/alpha, tool payments.refund: its condition is met: args.amount > 500 && 'untrusted' in thread.labels, where args.amount is 600 and thread.labels=untrusted.",
			"condition false: thread.calls('payments.refund') <= 2 && args.amount <= 100, where args.amount is 600 and thread.calls('payments.refund')=1",
			"condition false: 'customer' in thread.labels, where thread.labels=untrusted",
			"matches, but line 3 denies",
		}},
		"not given": {nil, []string{
			"Denied by policy.csv:3: deny Analyst in acme/alpha, tool payments.refund: args.amount > 500 && 'untrusted' in thread.labels, where args.amount is 600 is not decided without the past of a thread, and a deny row then denies.",
			"condition not decided without the past of a thread: thread.calls('payments.refund') <= 2 && args.amount <= 100, where args.amount is 600",
			"condition not decided without the past of a thread: thread.results('payments.list') > 0 && args.amount <= 1000, where args.amount is 600",
			"condition not decided without the past of a thread: 'customer' in thread.labels",
		}},
	} {
		r.Past = c.past
		e, err := p.Explain(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{e.Why}
		for _, n := range e.NearMisses {
			got = append(got, n.Why)
		}
		got = got[:min(len(got), len(c.want))]
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\nfound\n%s\nexpected\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// The terms of a file are bounded, and the row that has one too many is said.
func TestTooManyTerms(t *testing.T) {
	rows := func(n int, window string) string {
		var b strings.Builder
		for i := range n {
			arguments := fmt.Sprintf("'t%d'", i)
			if window != "" {
				arguments = fmt.Sprintf("'time.now', '%dm'", i+1)
			}
			fmt.Fprintf(&b, "p, a, w/p, t, \"thread.calls(%s) > 1\", allow\n", arguments)
		}
		return b.String() + "p, a, w/p, u, \"thread.calls('t1') > 1 || thread.calls('time.now', '2m') > 1\", allow\n# end\n"
	}
	for _, c := range []struct {
		data, want string
	}{
		{rows(history.MaxTerms-1, ""), ""},
		{rows(history.MaxTerms, ""), "policy.csv:257:16: found more than 256 terms, expected fewer: each is kept for every thread, or every caller"},
		{rows(history.MaxWindowed, "m"), ""},
		{rows(history.MaxWindowed+1, "m"), "policy.csv:65:16: found more than 64 terms with a window, expected fewer: each is kept for every thread, or every caller"},
	} {
		p, _, err := Load(Source{File: "policy.csv", Data: []byte(c.data)}, nil, nil)
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("found %v; expected %q", err, c.want)
		}
		if err == nil {
			if _, err := history.NewTerms(p.Terms(), Covers); err != nil {
				t.Error(err)
			}
		}
	}
}

// A condition that reads no past takes no more with one.
func TestAllocationsWithAPast(t *testing.T) {
	p, r := refund(t)
	past := pastOf(t, mustLoad(t, pastRows), r, nil)
	count := func() float64 {
		return testing.AllocsPerRun(100, func() {
			if d, err := p.Permit(t.Context(), r); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		})
	}
	without := count()
	r.Past = past
	if with := count(); with > without {
		t.Errorf("%v allocations with a past, %v without", with, without)
	}
	if saw := past.Saw(); len(saw) != 0 {
		t.Errorf("it saw %v", saw)
	}
}

// BenchmarkPermitOnThePast evaluates one condition on a count.
func BenchmarkPermitOnThePast(b *testing.B) {
	p := mustLoad(b, `p, Analyst, acme/alpha, payments.refund, "thread.calls('payments.refund') <= 3", allow`)
	r := Request{Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "payments.refund", Arguments: map[string]any{"amount": json.Number("99.5")}}
	r.Past = pastOf(b, p, r, nil, poolCall{tool: "payments.refund", args: r.Arguments})
	b.ReportAllocs()
	for b.Loop() {
		if d, err := p.Permit(b.Context(), r); err != nil || !d.Allowed {
			b.Fatal(d, err)
		}
	}
}
