package ratelimit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/ratelimit"
)

// example is the limits.yaml of the documentation.
func example() *ratelimit.Limits {
	caller, fallback, analyst := limittest.Budget("50/s", 100), limittest.Budget("5/s", 10), limittest.Budget("2/s", 5)
	return &ratelimit.Limits{
		Caller:  &caller,
		Default: ratelimit.Allowance{Budget: &fallback, Concurrency: new(8)},
		Agents: map[string]ratelimit.Agent{"Analyst": {
			Allowance: ratelimit.Allowance{Budget: &analyst, Concurrency: new(4)},
			Tools:     map[string]ratelimit.Budget{"web.search": limittest.Budget("30/m", 5)},
		}},
		Tools:       map[string]ratelimit.Budget{"web.search": limittest.Budget("100/s", 200)},
		Projects:    map[ratelimit.Project]ratelimit.Budget{limittest.Acme("alpha"): limittest.Budget("500/s", 500)},
		OnStoreLoss: ratelimit.LossLocal,
		Replicas:    1,
	}
}

func TestValidate(t *testing.T) {
	noRate := ratelimit.Budget{Burst: 5}
	cases := map[string]struct {
		spoil func(*ratelimit.Limits)
		want  []string // path: part of the message
	}{
		"the example":          {func(*ratelimit.Limits) {}, nil},
		"nothing stated":       {func(l *ratelimit.Limits) { *l = ratelimit.Limits{Replicas: 1} }, nil},
		"replicas 0":           {func(l *ratelimit.Limits) { l.Replicas = 0 }, []string{"replicas: found 0, expected a whole number from 1"}},
		"replicas -1":          {func(l *ratelimit.Limits) { l.Replicas = -1 }, []string{"replicas: found -1"}},
		"on_store_loss":        {func(l *ratelimit.Limits) { l.OnStoreLoss = "Local" }, []string{"on_store_loss: expected local or refuse"}},
		"caller without rate":  {func(l *ratelimit.Limits) { l.Caller = &noRate }, []string{"caller.rate: found no rate, expected one such as 5/s"}},
		"caller burst 0":       {func(l *ratelimit.Limits) { l.Caller.Burst = 0 }, []string{"caller.burst: found 0, expected a whole number from 1 to 1000000"}},
		"default burst":        {func(l *ratelimit.Limits) { l.Default.Budget.Burst = 1_000_001 }, []string{"default.burst: found 1000001"}},
		"default concurrency":  {func(l *ratelimit.Limits) { l.Default.Concurrency = new(0) }, []string{"default.concurrency: found 0"}},
		"agent concurrency":    {func(l *ratelimit.Limits) { *l.Agents["Analyst"].Concurrency = -4 }, []string{"agents.Analyst.concurrency: found -4"}},
		"agent without a name": {func(l *ratelimit.Limits) { l.Agents[""] = ratelimit.Agent{} }, []string{`agents.: found "", expected an agent's name`}},
		"pattern of agents":    {func(l *ratelimit.Limits) { l.Agents["*"] = ratelimit.Agent{} }, []string{`agents.*: found "*", expected an agent's name (no patterns`}},
		"agent's tool": {func(l *ratelimit.Limits) { l.Agents["Analyst"].Tools["a"] = noRate },
			[]string{"agents.Analyst.tools.a.rate: found no rate"}},
		"pattern of tools": {func(l *ratelimit.Limits) { l.Tools["web.*"] = limittest.Budget("1/s", 1) },
			[]string{`tools.web.*: found "web.*", expected a tool's name such as web.search (no patterns)`}},
		"names of tools": {func(l *ratelimit.Limits) {
			for _, n := range []string{"", ".", "a.", ".a", "a..b", "a b", "ä", strings.Repeat("x", 65)} {
				l.Agents["Analyst"].Tools[n] = limittest.Budget("1/s", 1)
			}
			l.Tools[strings.Repeat("x", 64)] = limittest.Budget("1/s", 1)
		}, []string{"agents.Analyst.tools.:", "agents.Analyst.tools..:", "agents.Analyst.tools..a:", "agents.Analyst.tools.a b:", "agents.Analyst.tools.a.:",
			"agents.Analyst.tools.a..b:", "agents.Analyst.tools.xxx", "agents.Analyst.tools.ä:"}},
		"project": {func(l *ratelimit.Limits) {
			l.Projects[limittest.Acme("*")] = limittest.Budget("1/s", 1)
			l.Projects[limittest.Acme("a/b")] = limittest.Budget("1/s", 1)
			l.Projects[limittest.Acme("beta")] = noRate
		}, []string{`projects.acme/*: found "acme/*", expected the name of one project (no patterns)`, `projects.acme/a/b: found "acme/a/b", expected workspace/project`, "projects.acme/beta.rate: found no rate"}},
		"all at once, in order": {func(l *ratelimit.Limits) {
			l.Replicas, l.Caller, l.Default.Concurrency = 0, &ratelimit.Budget{}, new(0)
			l.Agents["B"] = ratelimit.Agent{Allowance: ratelimit.Allowance{Concurrency: new(0)}}
			l.Agents["A"] = ratelimit.Agent{Allowance: ratelimit.Allowance{Concurrency: new(0)}}
		}, []string{"caller.rate:", "caller.burst:", "default.concurrency:", "agents.A.concurrency:", "agents.B.concurrency:", "replicas:"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			limits := example()
			c.spoil(limits)
			faults := limits.Validate()
			if len(faults) != len(c.want) {
				t.Fatalf("got %d faults %v, want %d", len(faults), faults, len(c.want))
			}
			for i, f := range faults {
				if !strings.HasPrefix(f.Error(), c.want[i]) {
					t.Errorf("fault %d: got %q, want %q", i, f, c.want[i])
				}
			}
		})
	}
	if faults := (*ratelimit.Limits)(nil).Validate(); len(faults) != 1 || faults[0].Path != nil {
		t.Errorf("no limits: got %v", faults)
	}
}

// The paths of faults are looked up in the file: a name with a dot is one key.
func TestFaultsKeepTheirPaths(t *testing.T) {
	limits := example()
	limits.Agents["Analyst"] = ratelimit.Agent{Tools: map[string]ratelimit.Budget{"files.read": {}, "web.search": {}}}
	var got [][]string
	for _, f := range limits.Validate() {
		got = append(got, f.Path)
	}
	want := [][]string{
		{"agents", "Analyst", "tools", "files.read", "rate"}, {"agents", "Analyst", "tools", "files.read", "burst"},
		{"agents", "Analyst", "tools", "web.search", "rate"}, {"agents", "Analyst", "tools", "web.search", "burst"},
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestParseProject(t *testing.T) {
	if p, err := ratelimit.ParseProject("acme/alpha"); err != nil || p != limittest.Acme("alpha") || p.String() != "acme/alpha" {
		t.Errorf("got %v, %v", p, err)
	}
	for s, want := range map[string]string{
		"": "workspace/project", "acme": "workspace/project", "/alpha": "workspace/project", "acme/": "workspace/project", "a/b/c": "workspace/project",
		"acme/*": "no patterns", "*/alpha": "no patterns", "*": "workspace/project",
	} {
		if p, err := ratelimit.ParseProject(s); err == nil || !strings.Contains(err.Error(), want) || p != (ratelimit.Project{}) {
			t.Errorf("%q: got %v, %v; want an error with %q", s, p, err, want)
		}
	}
}
