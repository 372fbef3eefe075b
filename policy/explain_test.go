package policy

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	p := load(t)
	for _, c := range []struct {
		agent, domain, tool, arguments string
		want                           []string
	}{
		{"Analyst", "acme/alpha", "payments.refund", `{"currency":"EUR","amount":100.01}`, []string{
			"false Denied: no allow row matches.",
			"6 condition false: args.currency == 'EUR' && args.amount <= 100, where args.amount is 100.01 and args.currency is \"EUR\"",
			"7 wrong subject: the row is for Intern",
			"8 wrong subject: the row is for Intern",
			"2 wrong tool: the row is for web.*",
			"3 wrong tool: the row is for data.*",
			"5 wrong tool: the row is for files.read",
		}},
		{"Analyst", "acme/alpha", "payments.refund", `{}`, []string{
			"false Denied: no allow row matches.",
			"6 condition failed (it read a member or an element that is not there): args.currency == 'EUR' && args.amount <= 100, where args.amount is not there and args.currency is not there",
			"7 wrong subject: the row is for Intern",
			"8 wrong subject: the row is for Intern",
			"2 wrong tool: the row is for web.*",
			"3 wrong tool: the row is for data.*",
			"5 wrong tool: the row is for files.read",
		}},
		{"Analyst", "acme/alpha", "payments.refund", "", []string{
			"false Denied: no allow row matches.",
			"6 condition not decided without the arguments: args.currency == 'EUR' && args.amount <= 100",
			"7 wrong subject: the row is for Intern",
			"8 wrong subject: the row is for Intern",
			"2 wrong tool: the row is for web.*",
			"3 wrong tool: the row is for data.*",
			"5 wrong tool: the row is for files.read",
		}},
		{"Analyst", "acme/beta", "files.read", `{}`, []string{
			"false Denied: no allow row matches.",
			"5 wrong domain: the row is for acme/alpha",
			"7 wrong subject: the row is for Intern",
			"2 wrong tool: the row is for web.*",
			"3 wrong tool: the row is for data.*",
			"4 wrong tool: the row is for notes.label",
		}},
		{"Analyst", "acme/alpha", "notes.label", `{}`, []string{
			"false Denied: no allow row matches.",
			"4 wrong subject: \"Analyst\" does not have role:senior in \"acme/alpha\"",
			"7 wrong subject: the row is for Intern",
			"2 wrong tool: the row is for web.*",
			"3 wrong tool: the row is for data.*",
			"5 wrong tool: the row is for files.read",
			"6 wrong tool: the row is for payments.refund",
		}},
		{"Intern", "acme/alpha", "web.fetch", `{"url":5}`, []string{
			"false Denied by policy.csv:10: deny Intern in acme/alpha, tool web.fetch: its condition failed (an operation met a value of a type that it does not take), and a deny row then denies. It is args.url.startsWith('http:'), where args.url is 5.",
			"7 matches, but line 10 denies",
			"2 wrong subject: \"Intern\" does not have role:researcher in \"acme/alpha\"",
			"8 wrong tool: the row is for payments.*",
			"9 wrong tool: the row is for files.delete",
		}},
		{"Intern", "acme/alpha", "web.fetch", `{"url":"http:"}`, []string{
			"false Denied by policy.csv:10: deny Intern in acme/alpha, tool web.fetch: its condition is met: args.url.startsWith('http:'), where args.url is \"http:\".",
			"7 matches, but line 10 denies",
			"2 wrong subject: \"Intern\" does not have role:researcher in \"acme/alpha\"",
			"8 wrong tool: the row is for payments.*",
			"9 wrong tool: the row is for files.delete",
		}},
		{"Analyst", "acme/alpha", "files.read", `{}`, []string{
			"true Allowed by policy.csv:5: allow Analyst in acme/alpha, tool files.read.",
			"7 wrong subject: the row is for Intern",
			"2 wrong tool: the row is for web.*",
			"3 wrong tool: the row is for data.*",
			"6 wrong tool: the row is for payments.refund",
		}},
		{"role:researcher", "acme/alpha", "web.search", `{}`, []string{"false Denied: an agent named like a role matches nothing."}},
		{"Analyst", "acme/", "web.search", `{}`, []string{"false Denied: an empty agent, workspace, project or tool matches nothing."}},
	} {
		workspace, project, _ := strings.Cut(c.domain, "/")
		r := Request{Agent: c.agent, Workspace: workspace, Project: project, Tool: c.tool}
		if c.arguments != "" {
			r.Arguments = decode(t, c.arguments)
		}
		e, err := p.Explain(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{fmt.Sprint(e.Allowed, " ", e.Why)}
		for _, n := range e.NearMisses {
			got = append(got, fmt.Sprint(n.Row.Line, " ", n.Why))
		}
		if g, w := strings.Join(got, "\n"), strings.Join(c.want, "\n"); g != w {
			t.Errorf("%v:\ngot\n%s\nwant\n%s", r, g, w)
		}
		if d, err := p.Permit(t.Context(), r); err != nil || !reflect.DeepEqual(d, e.Decision) {
			t.Errorf("%v: Permit says %v, Explain %v", r, d, e.Decision)
		}
	}
	var rows strings.Builder
	for i := range 100 {
		fmt.Fprintf(&rows, "p, Intern, *, t.n%d, , allow\n", i)
	}
	e, err := mustLoad(t, rows.String()).Explain(t.Context(), Request{"Intern", "acme", "alpha", "x", nil, nil})
	if err != nil || len(e.NearMisses) != maxNearMisses || e.Omitted != 100-maxNearMisses {
		t.Errorf("%d near, %d omitted, %v", len(e.NearMisses), e.Omitted, err)
	}
}
