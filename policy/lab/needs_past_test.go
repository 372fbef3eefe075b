package lab_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/lab"
	"github.com/callgate/callgate/refusal"
)

// A call on which the past of its thread may decide is not judged without it.
func TestNeedsPast(t *testing.T) {
	now := configuration(t, []string{
		`p, Analyst, acme/alpha, web.search, "thread.calls('web.search') <= 3", allow`,
		`p, Analyst, acme/alpha, web.search, "args.query == 'x'", allow`,
		`p, Analyst, acme/alpha, files.read, , allow`,
		`p, Analyst, acme/alpha, files.read, "thread.results('time.now') == 0", allow`,
		`p, Analyst, acme/alpha, time.now, "thread.results('time.now') == 0", allow`,
		`p, Analyst, acme/alpha, time.now, , deny`,
	})
	judge, err := now.DryRun()
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[[2]string]bool{
		{"web.search", `{"query":"y"}`}: true, {"web.search", `{"query":"x"}`}: true, {"web.search", `{}`}: false, // refused by the schema
		{"files.read", `{"path":"a"}`}: false, {"time.now", `{}`}: false, {"notes.label", `{}`}: false,
	} {
		call := lab.Call{Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: tool[0], Arguments: json.RawMessage(tool[1])}
		if j := judge.Judge(t.Context(), call); j.NeedsPast != want {
			t.Errorf("%s with %s: found %+v", tool[0], tool[1], j)
		}
		for name, replay := range map[string]*lab.Replay{"log": startReplay(t, now, nil), "baseline": startReplay(t, now, now)} {
			record := &audit.Record{
				Event: audit.Decision, Mode: audit.Call, Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: tool[0], ToolVersion: "1.0.0",
				Verdict: audit.Refused, Stage: refusal.Permission, Code: refusal.PermissionDenied, Arguments: json.RawMessage(tool[1]),
			}
			if err := replay.Add(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			if s := replay.Summary(); (s.Undecided[lab.NeedsPast] == 1) != want {
				t.Errorf("%s, %s with %s: %+v", name, tool[0], tool[1], s)
			}
		}
	}

	c := lab.TestConfig{Judge: judge, Policy: now.Policy, Workspaces: now.Workspaces}
	test := lab.Test{Agents: []string{"Analyst"}, Projects: []lab.TestProject{{Workspace: "acme", Name: "alpha"}}, Tools: []string{"web.search"}}
	for arguments, expect := range map[string]string{`{"query":"y"}`: "deny", "": "conditions"} {
		test.Arguments, test.Expect = nil, expect
		if arguments != "" {
			test.Arguments = json.RawMessage(arguments)
		}
		results, err := lab.RunTests(t.Context(), c, []lab.Test{test}, lab.NewCoverage(now.Policy))
		if err != nil {
			t.Fatal(err)
		}
		if failed := results[0].Failed == 1; failed != (arguments != "") || failed && results[0].Failures[0].Found != "it needs the past of a thread" {
			t.Errorf("with %s: %+v", arguments, results[0])
		}
	}
}

// A suggestion leaves rows alone whose conditions read the past: the log does not show it.
func TestSuggestWithThePast(t *testing.T) {
	const data = "p, A, w/p, t, \"thread.calls('t') <= 3\", allow\np, A, w/p, t, args.n > 5, allow\np, A, w/p, u, , allow\n# end\n"
	p, _, err := policy.Load(policy.Source{File: "policy.csv", Data: []byte(data)}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	u := lab.NewUses(p)
	r := policy.Request{Agent: "A", Workspace: "w", Project: "p", Tool: "t", Arguments: map[string]any{"n": json.Number("1")}}
	if err := u.Add(t.Context(), r, false); err != nil {
		t.Fatal(err)
	}
	out, counts := u.Suggest([]byte(data), lab.SuggestOptions{Since: "2026-01-01"})
	if counts.Unused != 1 || counts.Narrowed != 0 || !strings.Contains(string(out), "\np, A, w/p, t, args.n > 5, allow\n") {
		t.Errorf("%+v:\n%s", counts, out)
	}
}
