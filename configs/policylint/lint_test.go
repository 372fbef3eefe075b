package policylint_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/policylint"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

const (
	tools = `tools:
  - {name: web.search, effect: read, input_schema: {type: object}, run: {type: client}}
  - {name: pay.refund, effect: once, run: {type: client}, input_schema: {type: object, required: [amount], properties: {amount: {type: number, exclusiveMinimum: 0, maximum: 500}, currency: {enum: [EUR, USD]}}}}
# end
`
	workspaces = "workspaces: {acme: {projects: {alpha: {agents: [Analyst, Intern]}, beta: {agents: [Analyst]}}}}\n# end\n"
	both       = "p, Analyst, *, web.search, , allow\np, Analyst, *, pay.refund, , allow\np, Intern, *, web.search, , allow\n"
)

func load(t testing.TB, policy, limits string) *configs.Config {
	t.Helper()
	files := configtest.With(t, map[string]string{
		"callgate.yaml": "registry: {files: [tools/web.yaml]}\napprovals: approvals.yaml\n# end\n", "approvals.yaml": "rules: {pay: {}}\n# end\n",
		"tools/web.yaml": tools, "workspaces.yaml": workspaces, "limits.yaml": limits + "# end\n", "policy.csv": policy + "# end\n",
	})
	c, err := configs.Load(configtest.Write(t, t.TempDir(), files))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ids are the findings as LINE ID, without the folder.
func ids(t testing.TB, c *configs.Config, all bool) string {
	t.Helper()
	found, err := policylint.Lint(t.Context(), c, all)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range found {
		list = append(list, fmt.Sprintf("%d %s", f.Line, f.ID))
		if f.Page != "docs/policy-lint.md#"+string(f.ID) || !strings.Contains(f.String(), f.Message) || f.Message == "" {
			t.Errorf("found %+v", f)
		}
	}
	return strings.Join(list, "; ")
}

func TestLint(t *testing.T) {
	for name, c := range map[string]struct{ policy, limits, want, all string }{
		"nothing":             {both, "{}\n", "", ""},
		"idle":                {both + "p, Analyst, *, web.sarch, , allow\n", "{}\n", "4 idle", "4 idle"},
		"repeated":            {both + "p, Intern, *, web.search, , allow\n", "{}\n", "4 repeated", "4 repeated"},
		"a role of nobody":    {both + "p, role:clerk, *, web.search, , allow\n", "{}\n", "4 no-members", "4 no-members"},
		"shadowed":            {both + "p, Analyst, acme/beta, web.search, , allow\n", "{}\n", "4 shadowed", "4 shadowed"},
		"overridden in part":  {both + "p, Intern, acme/*, web.*, , deny\n", "{}\n", "", "0 idle-agent"}, // a domain to come may be allowed
		"overridden by all":   {"p, Intern, acme/alpha, web.search, , allow\np, Intern, acme/*, *, , deny\np, Analyst, *, web.search, , allow\np, Analyst, *, pay.refund, , allow\n", "{}\n", "1 overridden", "0 idle-agent; 1 overridden"},
		"denies nothing":      {both + "p, Intern, *, pay.refund, , deny\n", "{}\n", "4 deny-nothing", "4 deny-nothing"},
		"asks nothing":        {both + "p, Intern, *, pay.refund, , ask:pay\np, Intern, *, pay.*, , deny\n", "{}\n", "4 ask-nothing", "4 ask-nothing"},
		"never by two bounds": {both + "p, Intern, *, pay.refund, args.amount > 100 && args.amount < 50, allow\n", "{}\n", "4 never-true", "4 never-true"},
		"never by the names":  {both + "p, Intern, *, pay.refund, project == 'gamma', allow\n", "{}\n", "4 never-true", "4 never-true"},
		"constant":            {both + "p, Intern, *, pay.refund, project == 'alpha', allow\n", "{}\n", "", "4 constant"},
		"optional":            {both + "p, Intern, *, pay.refund, args.currency == 'EUR', allow\n", "{}\n", "", "4 optional"},
		"asked for":           {both + "p, Intern, *, pay.refund, has(args.currency) && args.currency == 'EUR', allow\n", "{}\n", "", ""},
		"wide":                {"p, Analyst, *, *, , allow\np, Intern, *, web.search, , allow\n", "{}\n", "1 wide", "1 wide"},
		"not wide":            {"p, Analyst, *, *, , allow\np, Analyst, *, pay.refund, , ask:pay\np, Intern, *, web.search, , allow\n", "{}\n", "", ""},
		"nobody":              {"p, Analyst, *, web.search, , allow\np, Intern, *, web.search, , allow\n", "{}\n", "", "0 nobody"},
		"an idle agent":       {"p, Analyst, *, web.search, , allow\np, Analyst, *, pay.refund, , allow\n", "{}\n", "", "0 idle-agent"},
		"a limit of a tool":   {"p, Analyst, *, web.search, , allow\np, Intern, *, web.search, , allow\n", "tools: {pay.refund: {rate: 1/s}}\n", "0 idle-limit", "0 nobody; 0 idle-limit"},
		"a limit of an agent": {both, "agents: {Intern: {rate: 1/s, tools: {pay.refund: {rate: 1/m}}}}\n", "0 idle-limit", "0 idle-limit"},
		"a looser limit":      {both, "agents: {Intern: {rate: 60/m, burst: 5, tools: {web.search: {rate: 1/s, burst: 5}}}}\n", "0 idle-limit", "0 idle-limit"},
		"a burst of its own":  {both, "agents: {Intern: {rate: 60/m, burst: 5, tools: {web.search: {rate: 1/s, burst: 4}}}}\n", "", ""},
		"looser than default": {both, "default: {rate: 1/s}\nagents: {Intern: {tools: {web.search: {rate: 2/s}}}}\n", "0 idle-limit", "0 idle-limit"},
	} {
		t.Run(name, func(t *testing.T) {
			loaded := load(t, c.policy, c.limits)
			if found := ids(t, loaded, false); found != c.want {
				t.Errorf("found %q; expected %q", found, c.want)
			}
			if found := ids(t, loaded, true); found != c.all {
				t.Errorf("of all, found %q; expected %q", found, c.all)
			}
		})
	}
}

// TestCommandPart: a row that lets a command pass by a part of it is found.
func TestCommandPart(t *testing.T) {
	for row, found := range map[string]bool{
		`"args.commands.all(c, c.startsWith('ls'))", allow`:                            true,
		`args.cmd.contains('git'), ask:pay`:                                            true,
		`args.cmd.endsWith('.go'), allow`:                                              true,
		`args.cmd.matches('^ls$') && !args.cmd.contains('..'), allow`:                  false,
		`args.cmd == 'ls', allow`:                                                      false,
		`args.cmd.contains('..'), deny`:                                                false,
		`args.cmd.matches('ls'), allow`:                                                true,
		`args.cmd.matches('^ls'), allow`:                                               true,
		`args.cmd.matches('ls$'), allow`:                                               true,
		`args.cmd.matches('^ls .*$'), allow`:                                           true,
		`args.cmd.matches('^ls|cat$'), allow`:                                          true,
		`args.cmd.matches('(?m)^ls$'), allow`:                                          true,
		`"args.cmd.matches('^ls [^;]*$')", allow`:                                      true,
		`args.cmd.matches(r'^ls(\s[a-z]+)*$'), allow`:                                  true,
		`args.cmd.matches('^(ls|cat)$'), allow`:                                        false,
		`args.cmd.matches('^ls$|^cat( [a-z]+)?$'), ask:pay`:                            false,
		`"args.cmd.startsWith('ls') && args.cmd.matches('ls$')", allow`:                true,
		`"args.cmd.startsWith('ls') && args.cmd.matches('^ls( [a-z]+)*$')", allow`:     false,
		`"args.cmd.startsWith('ls') && project.matches('^a$')", allow`:                 true,
		`"args.cmd.matches('^ls$') || args.cmd.startsWith('cat')", allow`:              true,
		`"args.cmd in ['ls', 'pwd']", allow`:                                           false,
		`"args.commands.all(c, c.matches('^ls$'))", allow`:                             false,
		`"args.commands.exists(c, c.matches('^ls$'))", allow`:                          true,
		`"args.commands[0] == 'sh' && args.commands[1].matches('^ls$')", allow`:        false,
		`"args.commands[0] == 'sh' && args.commands[1].matches('^ls')", allow`:         true,
		`"has(args.cmd) ? args.cmd.matches('^ls$') : size(args.commands) == 0", allow`: false,
	} {
		files := configtest.With(t, map[string]string{
			"callgate.yaml": "registry: {files: [tools/web.yaml]}\napprovals: approvals.yaml\n# end\n", "approvals.yaml": "rules: {pay: {}}\n# end\n", "limits.yaml": "{}\n# end\n",
			"tools/web.yaml":  "tools:\n  - {name: shell, run: {type: client}, input_schema: {type: object, required: [cmd, commands], properties: {cmd: {type: string}, commands: {type: array, items: {type: string}}}}}\n# end\n",
			"workspaces.yaml": workspaces, "policy.csv": "p, Analyst, *, shell, " + row + "\n# end\n",
		})
		c, err := configs.Load(configtest.Write(t, t.TempDir(), files))
		if err != nil {
			t.Fatal(err)
		}
		if got := ids(t, c, false); strings.Contains(got, "command-part") != found {
			t.Errorf("%s: found %q", row, got)
		}
	}
}

// TestPast finds conditions that count for what must come first, and labels that do nothing.
func TestPast(t *testing.T) {
	all := "p, Analyst, *, web.search, , allow\n"
	for name, c := range map[string]struct{ policy, labels, tool, want, all string }{
		"counts itself":       {"p, Analyst, *, pay.refund, thread.calls('pay.refund') > 0, allow\n", "", "", "2 counts-first", "2 counts-first"},
		"counts another":      {"p, Analyst, *, pay.refund, \"thread.calls('web.search', '1h') >= 1 && args.amount < 5\", allow\n", "", "", "2 counts-first", "2 counts-first"},
		"a bound":             {"p, Analyst, *, pay.refund, thread.calls('pay.refund') <= 3, allow\n", "", "", "", ""},
		"more than one":       {"p, Analyst, *, pay.refund, thread.calls('pay.refund') >= 10, allow\n", "", "", "", ""},
		"either":              {"p, Analyst, *, pay.refund, thread.calls('pay.refund') > 0 || args.amount < 5, allow\n", "", "", "", ""},
		"denies":              {"p, Analyst, *, pay.refund, , allow\np, Analyst, *, pay.refund, \"caller.calls('*', '1h') > 0\", deny\n", "", "", "", ""},
		"results":             {"p, Analyst, *, pay.refund, thread.results('web.search') > 0, allow\n", "", "", "", "2 same-answer"},
		"a label":             {"p, Analyst, *, pay.*, 'a' in thread.labels, ask:pay\n", "[a]", "[a]", "", ""},
		"a label of no row":   {"p, Analyst, *, pay.refund, , allow\n", "[a]", "[a]", "0 label-unread", "0 label-unread; 0 once-untainted"},
		"a label of no tool":  {"p, Analyst, *, pay.refund, !('a' in thread.labels), allow\n", "[a]", "[]", "0 label-unadded", "0 label-unadded"},
		"any label":           {"p, Analyst, *, pay.refund, thread.labels == [], allow\n", "[a, b]", "[a, b]", "", ""},
		"a row about another": {"p, Analyst, *, pay.refund, , allow\np, Analyst, *, web.search, 'a' in thread.labels, deny\n", "[a]", "[a]", "", "0 once-untainted"},
	} {
		t.Run(name, func(t *testing.T) {
			main, own := "registry: {files: [tools/web.yaml]}\napprovals: approvals.yaml\n", tools
			if c.labels != "" {
				main += "threads: {labels: " + c.labels + "}\n"
				own = strings.Replace(tools, "effect: read", "effect: read, labels: "+c.tool, 1)
			}
			loaded, err := configs.Load(configtest.Write(t, t.TempDir(), configtest.With(t, map[string]string{
				"callgate.yaml": main + "# end\n", "approvals.yaml": "rules: {pay: {}}\n# end\n", "tools/web.yaml": own, "limits.yaml": "replicas: 1\n# end\n",
				"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n# end\n", "policy.csv": all + c.policy + "# end\n",
			})))
			if err != nil {
				t.Fatal(err)
			}
			if found := ids(t, loaded, false); found != c.want {
				t.Errorf("found %q; expected %q", found, c.want)
			}
			if found := ids(t, loaded, true); found != c.all {
				t.Errorf("of all, found %q; expected %q", found, c.all)
			}
		})
	}
}

// TestDottedDenials: a deny row of a domain does not reach the names that requests bring.
func TestDottedDenials(t *testing.T) {
	for _, c := range []struct{ policy, source, want string }{
		{"p, Analyst, *, *, , allow\np, Analyst, *, admin.*, , deny\n", "request", "2 dotted-deny"},
		{"p, Analyst, *, *, , allow\np, Analyst, *, admin.*, , deny\n", "registry", ""},
		{"p, Analyst, *, *, , allow\np, Analyst, *, admin.*, , deny\np, Analyst, *, *, tool.startsWith('admin_'), deny\n", "request", ""},
		{"p, Analyst, *, Read, , allow\np, Analyst, *, admin.*, , deny\n", "request", ""},
		{"p, Analyst, *, *, , allow\np, Analyst, *, a.b.*, , deny\np, Intern, *, c.*, , deny\n", "request", "2 dotted-deny"},
	} {
		files := configtest.With(t, map[string]string{
			"callgate.yaml": "registry: {files: [tools/web.yaml]}\nupstreams: upstreams.yaml\n# end\n", "tools/web.yaml": tools, "workspaces.yaml": workspaces, "limits.yaml": "{}\n# end\n", "policy.csv": c.policy + "# end\n",
			"upstreams.yaml": "upstreams: [{name: u, base_url: \"http://127.0.0.1:1/v1\", models: [m], tools: " + c.source + "}]\n# end\n",
		})
		loaded, err := configs.Load(configtest.Write(t, t.TempDir(), files))
		if err != nil {
			t.Fatal(err)
		}
		found := strings.Join(slices.DeleteFunc(strings.Split(ids(t, loaded, false), "; "), func(id string) bool { return !strings.HasSuffix(id, "dotted-deny") }), "; ")
		if found != c.want {
			t.Errorf("%s, %s: found %q; expected %q", c.policy, c.source, found, c.want)
		}
	}
}

// TestPage: each kind of finding has a section, to which its findings lead.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/policy-lint.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range policylint.IDs() {
		if !strings.Contains(string(page), "\n### "+string(id)+"\n") {
			t.Errorf("docs/policy-lint.md has no section %s", id)
		}
	}
}

func TestLintEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := policylint.Lint(ctx, load(t, both, "{}\n"), true); !errors.Is(err, context.Canceled) {
		t.Errorf("found %v", err)
	}
}
