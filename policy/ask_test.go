package policy

import (
	"slices"
	"strings"
	"testing"
)

const askingRows = `
p, Analyst, acme/*, payments.refund, "args.currency == 'EUR'", allow
p, Analyst, acme/*, payments.refund, "args.amount > 100", ask:refunds
p, Analyst, acme/*, payments.refund, "args.amount > 1000", ask:board
p, Analyst, acme/*, payments.refund, "args.amount > 5000", deny
p, Analyst, acme/*, files.delete, , ask:deletes
p, Analyst, acme/alpha, files.delete, , ask:deletes
p, Analyst, acme/alpha, files.delete, , allow
p, Analyst, acme/beta, files.delete, , deny
p, Analyst, acme/*, web.fetch, "args.url == 'a'", ask:webs
p, Analyst, acme/*, web.search, "agent == 'Analyst'", ask:webs
p, Analyst, acme/alpha, web.search, , allow
`

func TestAsk(t *testing.T) {
	p := mustLoad(t, askingRows)
	for _, c := range []struct {
		project, tool, arguments string
		allowed                  bool
		asks, rows               string
		reach                    Reach
	}{
		{"alpha", "payments.refund", `{"currency":"EUR","amount":100}`, true, "", "policy.csv:2", OnConditions},
		{"alpha", "payments.refund", `{"currency":"EUR","amount":101}`, true, "refunds", "policy.csv:3", OnConditions},
		{"alpha", "payments.refund", `{"currency":"EUR","amount":1001}`, true, "board refunds", "policy.csv:3 policy.csv:4", OnConditions},
		{"alpha", "payments.refund", `{"currency":"USD","amount":1001}`, true, "board refunds", "policy.csv:3 policy.csv:4", OnConditions},
		{"alpha", "payments.refund", `{"currency":"EUR","amount":5001}`, false, "", "policy.csv:5", OnConditions},
		{"alpha", "payments.refund", `{"currency":"USD","amount":5}`, false, "", "", OnConditions},
		{"alpha", "payments.refund", `{"currency":"EUR"}`, false, "", "policy.csv:5", OnConditions}, // a condition that fails denies
		{"alpha", "files.delete", `{}`, true, "deletes", "policy.csv:6 policy.csv:7", Asks},
		{"gamma", "files.delete", `{}`, true, "deletes", "policy.csv:6", Asks},
		{"beta", "files.delete", `{}`, false, "", "policy.csv:9", Never},
		{"alpha", "web.fetch", `{"url":"a"}`, true, "webs", "policy.csv:10", OnConditions},
		{"alpha", "web.fetch", `{"url":"b"}`, false, "", "", OnConditions},
		{"alpha", "web.fetch", `{}`, false, "", "", OnConditions}, // it fails: it asks, and nothing permits
		{"alpha", "web.search", `{}`, true, "webs", "policy.csv:11", Asks},
		{"beta", "web.search", `{}`, true, "webs", "policy.csv:11", OnConditions},
	} {
		for range 2 { // the second answer comes from the table
			r := Request{"Analyst", "acme", c.project, c.tool, decode(t, c.arguments), nil}
			d, err := p.Permit(t.Context(), r)
			if err != nil || d.Allowed != c.allowed || strings.Join(d.Asks, " ") != c.asks || strings.Join(d.Rows, " ") != c.rows {
				t.Errorf("%v: %v, asks %v, rows %v, %v; want %v, %s, %s", r, d.Allowed, d.Asks, d.Rows, err, c.allowed, c.asks, c.rows)
			}
		}
		if reach, err := p.Reach("Analyst", "acme", c.project, c.tool); reach != c.reach || err != nil {
			t.Errorf("%s in %s: reach %v (%v), want %v", c.tool, c.project, reach, err, c.reach)
		}
	}
}

// A condition that fails asks where another row permits, and does not permit itself.
func TestAFailedConditionAsks(t *testing.T) {
	const ask = `p, Analyst, acme/alpha, web.fetch, "args.url == 'a'", ask:webs` + "\n"
	r := Request{"Analyst", "acme", "alpha", "web.fetch", nil, nil}
	for rows, want := range map[string]string{
		ask: "false",
		ask + "p, Analyst, *, web.fetch, , allow": "true webs",
		ask + "p, Analyst, *, web.*, , ask:other": "true other webs",
		ask + "p, Analyst, *, web.*, , deny":      "false",
	} {
		d, err := mustLoad(t, rows).Permit(t.Context(), r)
		if got := strings.Join(append([]string{map[bool]string{false: "false", true: "true"}[d.Allowed]}, d.Asks...), " "); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", rows, got, err, want)
		}
	}
}

func TestExplainAsks(t *testing.T) {
	p := mustLoad(t, askingRows)
	for _, c := range []struct {
		tool, arguments, why string
		near                 []string
	}{
		{"payments.refund", `{"currency":"EUR","amount":101}`,
			"Approval required by policy.csv:3: ask:refunds Analyst in acme/*, tool payments.refund: its condition is met: args.amount > 100, where args.amount is 101.",
			[]string{"matches, but line 3 asks", "condition false: args.amount > 1000, where args.amount is 101", "condition false: args.amount > 5000, where args.amount is 101"}},
		{"files.delete", `{}`, "Approval required by policy.csv:6: ask:deletes Analyst in acme/*, tool files.delete.",
			[]string{"asks as well", "matches, but line 6 asks"}},
		{"web.fetch", `{}`, "Denied: no allow row matches.", []string{"condition failed (it read a member or an element that is not there): args.url == 'a', where args.url is not there"}},
	} {
		e, err := p.Explain(t.Context(), Request{"Analyst", "acme", "alpha", c.tool, decode(t, c.arguments), nil})
		var near []string
		for _, n := range e.NearMisses {
			if n.Row.Tool == c.tool && n.Row.Domain != "acme/beta" {
				near = append(near, n.Why)
			}
		}
		slices.Sort(near)
		slices.Sort(c.near)
		if err != nil || e.Why != c.why || !slices.Equal(near, c.near) {
			t.Errorf("%s: %s, %v, %v", c.tool, e.Why, near, err)
		}
	}
	e, err := mustLoad(t, "p, Analyst, *, *, , allow\n"+`p, Analyst, *, web.*, "args.a", ask:webs`).Explain(t.Context(),
		Request{"Analyst", "acme", "alpha", "web.fetch", map[string]any{}, nil})
	const want = "its condition failed (it read a member or an element that is not there), and a row that asks then asks, and does not permit. It is args.a, where args.a is not there."
	if err != nil || !strings.HasSuffix(e.Why, want) {
		t.Error(e.Why, err)
	}
}

// Where no row asks, a decision costs no allocation.
func TestADecisionThatAsksNobodyAllocatesNothing(t *testing.T) {
	p := mustLoad(t, askingRows+"p, Intern, *, *, , allow\n")
	for _, r := range []Request{{"Intern", "acme", "alpha", "web.search", nil, nil}, {"Analyst", "acme", "alpha", "files.delete", nil, nil}} {
		n := testing.AllocsPerRun(100, func() {
			if d, err := p.Permit(t.Context(), r); err != nil || len(d.Rows) == 0 {
				t.Fatal(d, err)
			}
		})
		if n != 0 {
			t.Errorf("%v: %v allocations", r, n)
		}
	}
}

func TestAskingRows(t *testing.T) {
	var got []string
	for _, r := range mustLoad(t, askingRows).AskingRows() {
		got = append(got, r.Place()+" "+r.Rule)
	}
	want := "policy.csv:3 refunds, policy.csv:4 board, policy.csv:6 deletes, policy.csv:7 deletes, policy.csv:10 webs, policy.csv:11 webs"
	if strings.Join(got, ", ") != want {
		t.Error(got)
	}
}
