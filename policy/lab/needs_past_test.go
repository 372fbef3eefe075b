package lab_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/configtest"
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
}

// threaded is a configuration whose policy reads what was done before.
func threaded(t testing.TB) *configs.Config {
	t.Helper()
	c, err := configs.Load(configtest.Write(t, t.TempDir(), map[string]configtest.File{
		"callgate.yaml":   {Data: "registry: {files: [tools.yaml]}\nthreads: {labels: [customer, untrusted], default_labels: [untrusted]}\napprovals: approvals.yaml\n# end\n"},
		"approvals.yaml":  {Data: "rules: {writes: {}}\n# end\n"},
		"limits.yaml":     {Data: "{}\n# end\n"},
		"workspaces.yaml": {Data: "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n# end\n"},
		"tools.yaml": {Data: `tools:
  - {name: crm.read, labels: [customer], run: {type: demo}, input_schema: {type: object, required: [id], properties: {id: {type: integer}}}}
  - {name: mail.send, labels: [], run: {type: demo}, input_schema: {type: object, required: [to], properties: {to: {type: string}}}}
  - {name: web.fetch, labels: [{label: untrusted, unless_hosts: [docs.acme.example]}], run: {type: demo}, input_schema: {type: object, properties: {url: {type: string}}}}
  - {name: files.read, labels: [], run: {type: demo}, input_schema: {type: object, required: [path], properties: {path: {type: string}}}}
  - {name: files.write, labels: [], run: {type: demo}, input_schema: {type: object, required: [path], properties: {path: {type: string}}}}
  - {name: pay.refund, labels: [], run: {type: demo}, input_schema: {type: object, required: [amount, currency], properties: {amount: {type: number, minimum: 0}, currency: {type: string}}}}
  - {name: tests.run, run: {type: demo}, input_schema: {type: object}}
  - {name: deploy.run, labels: [], run: {type: demo}, input_schema: {type: object}}
# end
`},
		"policy.csv": {Data: `p, Analyst, *, mail.send, "'customer' in thread.labels && !args.to.endsWith('@acme.example')", deny
p, Analyst, *, mail.send, , allow
p, Analyst, *, files.write, "'untrusted' in thread.labels", ask:writes
p, Analyst, *, files.write, "thread.results('files.read', {'path': args.path}) > 0", allow
p, Analyst, *, pay.refund, "thread.calls('pay.refund') <= 3 && thread.sum('pay.refund', 'amount', {'currency': args.currency}) <= 500.5", allow
p, Analyst, *, pay.refund, "caller.sum('pay.refund', 'amount', '24h') > 5000", deny
p, Analyst, *, deploy.run, "thread.results('tests.run', '30m') > 0", allow
# end
`},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The steps of a test are counted as the gateway counts them.
func TestStepsOfTests(t *testing.T) {
	c := threaded(t)
	const refund = "tool: pay.refund, arguments: {amount: 100, currency: EUR}, "
	for name, test := range map[string]struct{ call, thread, expect string }{
		"nothing before":                 {"tool: mail.send, arguments: {to: eve@evil.example}", "", "allow"},
		"a customer, outside":            {"tool: mail.send, arguments: {to: eve@evil.example}", "{tool: crm.read, arguments: {id: 7}}", "deny"},
		"a customer, inside":             {"tool: mail.send, arguments: {to: bob@acme.example}", "{tool: crm.read, arguments: {id: 7}}", "allow"},
		"failed, labelled all the same":  {"tool: mail.send, arguments: {to: eve@evil.example}", "{tool: crm.read, arguments: {id: 7}, ended: failed}", "deny"},
		"a label alone":                  {"tool: mail.send, arguments: {to: eve@evil.example}", "{labels: [customer, untrusted], ago: 3d}", "deny"},
		"another label":                  {"tool: mail.send, arguments: {to: eve@evil.example}", "{labels: [untrusted]}", "allow"},
		"by the schema":                  {"tool: mail.send, arguments: {}", "{labels: [customer]}", "missing_argument"},
		"own hosts":                      {"tool: files.write, arguments: {path: a}", "{tool: files.read, arguments: {path: a}}, {tool: web.fetch, arguments: {url: 'https://docs.acme.example/a'}}", "allow"},
		"other hosts":                    {"tool: files.write, arguments: {path: a}", "{tool: files.read, arguments: {path: a}}, {tool: web.fetch, arguments: {url: 'https://a.example/'}}", "ask:writes"},
		"a tool that states no labels":   {"tool: files.write, arguments: {path: a}", "{tool: files.read, arguments: {path: a}}, {tool: tests.run}", "ask:writes"},
		"read before":                    {"tool: files.write, arguments: {path: a}", "{tool: files.read, arguments: {path: a}}", "allow"},
		"another path read":              {"tool: files.write, arguments: {path: a}", "{tool: files.read, arguments: {path: b}}", "deny"},
		"read not ended":                 {"tool: files.write, arguments: {path: a}", "{tool: files.read, arguments: {path: a}, ended: no}", "deny"},
		"read failed":                    {"tool: files.write, arguments: {path: a}", "{tool: files.read, arguments: {path: a}, ended: failed}", "deny"},
		"the third":                      {"tool: pay.refund, arguments: {amount: 1, currency: EUR}", "{" + refund + "times: 2}", "allow"},
		"the fourth, of which one runs":  {"tool: pay.refund, arguments: {amount: 1, currency: EUR}", "{" + refund + "times: 2}, {" + refund + "ended: no}", "deny"},
		"the sum":                        {"tool: pay.refund, arguments: {amount: 300.5, currency: EUR}", "{" + refund + "times: 2}", "allow"},
		"above the sum":                  {"tool: pay.refund, arguments: {amount: 300.500001, currency: EUR}", "{" + refund + "times: 2}", "deny"},
		"in another currency":            {"tool: pay.refund, arguments: {amount: 500, currency: USD}", "{" + refund + "times: 2}", "allow"},
		"tests at the edge":              {"tool: deploy.run, arguments: {}", "{tool: tests.run, ago: 30m}", "allow"},
		"tests too long ago":             {"tool: deploy.run, arguments: {}", "{tool: tests.run, ago: 30m1s}", "deny"},
		"a sum of the caller a day ago":  {"tool: pay.refund, arguments: {amount: 1, currency: USD}", "{tool: pay.refund, arguments: {amount: 6000, currency: EUR}, ago: 2d}", "allow"},
		"a sum of the caller, in a day":  {"tool: pay.refund, arguments: {amount: 1, currency: USD}", "{tool: pay.refund, arguments: {amount: 6000, currency: EUR}, ago: 23h}", "deny"},
		"more than can be added exactly": {"tool: pay.refund, arguments: {amount: 1, currency: USD}", "{tool: pay.refund, arguments: {amount: 1e-9, currency: USD}, ago: 25h}", "deny"},
	} {
		t.Run(name, func(t *testing.T) {
			thread := ""
			if test.thread != "" {
				thread = ", thread: [" + test.thread + "]"
			}
			text := "tests:\n  - {name: t, agent: Analyst, project: acme/alpha, " + test.call + ", expect: '" + test.expect + "'" + thread + "}\n# end\n"
			file := filepath.Join(t.TempDir(), "a_test.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			by, tests, err := c.ReadTests([]string{file})
			if err != nil {
				t.Fatal(err)
			}
			results, err := lab.RunTests(t.Context(), by, tests, nil)
			if err != nil || results[0].Failed > 0 {
				t.Errorf("%v: %+v", err, results[0].Failures)
			}
		})
	}
}

// The report on such tests says what conditions saw, and coverage counts them with what was done before.
func TestReportOfSteps(t *testing.T) {
	c := threaded(t)
	by, tests, err := c.ReadTests([]string{filepath.Join("testdata", "thread.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	coverage := lab.NewCoverage(c.Policy)
	results, err := lab.RunTests(t.Context(), by, tests, coverage)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	lab.WriteTestText(&text, results)
	coverage.WriteText(&text)
	golden(t, "thread.txt", c, text.Bytes())
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
