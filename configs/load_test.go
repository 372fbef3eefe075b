package configs

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/configtest"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/upstream"
)

func TestBaseLoads(t *testing.T) {
	c := loads(t, configtest.Base(t))
	if len(c.Warnings) > 0 {
		t.Errorf("found warnings: %v", c.Warnings)
	}
	if c.Server.Listen != "127.0.0.1:8080" || c.Server.AdminListen != "127.0.0.1:9090" || filepath.Base(c.DataDir) != "data" || c.PrincipalsFile != "principals.yaml" {
		t.Errorf("found the settings %+v", c.Settings)
	}
	if found := c.Principals; len(found) != 1 || found[0].Name != "batch" || !slices.Equal(found[0].Projects, []string{"alpha"}) {
		t.Errorf("found the principals %+v", found)
	}
	if b := c.Limits; b.OnStoreLoss != ratelimit.LossLocal || b.Replicas != 2 || b.Default.Budget.Burst != 5 || b.Agents["Analyst"].Tools["web.search"].Burst != 5 {
		t.Errorf("found the limits %+v", b)
	}
	web, ok := c.Tools.Lookup("web.search")
	if !ok || web.Effect() != "read" || web.Run().URL != "http://127.0.0.1:9000/search" || !slices.Equal(web.Run().Addresses, []string{"127.0.0.1/32"}) {
		t.Error("web.search is not as its file says")
	}
	if len(c.Files) != 7 || filepath.Base(c.Files[0]) != "callgate.yaml" {
		t.Errorf("found the files %v", c.Files)
	}
	for text, allowed := range map[string]bool{`"fine"`: true, `"secret"`: false} {
		request := policy.Request{Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "notes.add", Arguments: map[string]any{"text": strings.Trim(text, `"`)}}
		if d, err := c.Policy.Permit(context.Background(), request); err != nil || d.Allowed != allowed {
			t.Errorf("with the text %s: allowed %v, %v; expected %v", text, d.Allowed, err, allowed)
		}
	}
}

// TestForms writes the base in other ways, which say the same.
func TestForms(t *testing.T) {
	want := loads(t, configtest.Base(t))
	crlf := map[string]string{}
	for name, f := range configtest.Base(t) {
		crlf[name] = strings.ReplaceAll(f.Data, "\n", "\r\n")
	}
	flow, err := json.Marshal(map[string]any{"workspaces": map[string]any{"acme": map[string]any{"projects": map[string]any{"alpha": map[string]any{
		"agents": []string{"Analyst", "Intern"}, "roots": []string{"work/alpha"}, "hosts": []string{"example.com", "*.example.org"},
		"resources": map[string]any{"customer": []string{"c-1*"}},
	}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for why, changed := range map[string]map[string]string{
		"line ends of Windows":      crlf,
		"no newline after the end":  {"limits.yaml": strings.TrimSuffix(configtest.Base(t)["limits.yaml"].Data, "\n"), "policy.csv": strings.TrimSuffix(configtest.Base(t)["policy.csv"].Data, "\n")},
		"JSON as YAML":              {"workspaces.yaml": string(flow) + "\n# end\n"},
		"comments":                  {"limits.yaml": "# above\n" + strings.ReplaceAll(configtest.Base(t)["limits.yaml"].Data, "\nreplicas: 2", " # beside\n\n# between\nreplicas: 2 # here")},
		"a document's marks":        {"limits.yaml": "---\n" + strings.TrimSuffix(configtest.Base(t)["limits.yaml"].Data, "# end\n") + "...\n# end\n"},
		"quoted keys and values":    {"limits.yaml": strings.NewReplacer("replicas", `"replicas"`, "local", "'local'").Replace(configtest.Base(t)["limits.yaml"].Data)},
		"an early end line":         {"limits.yaml": "# end\n" + configtest.Base(t)["limits.yaml"].Data},
		"JSON without white space":  {"tools/notes.json": strings.NewReplacer("\n", "", " ", "").Replace(configtest.Base(t)["tools/notes.json"].Data)},
		"a JSON file with escapes":  {"tools/notes.json": strings.ReplaceAll(configtest.Base(t)["tools/notes.json"].Data, "notes.add", `notes\u002eadd`)},
		"a policy without spaces":   {"policy.csv": strings.ReplaceAll(strings.ReplaceAll(configtest.Base(t)["policy.csv"].Data, ",  ", ","), "# p,", "#p,")},
		"the same tool files twice": {"callgate.yaml": strings.ReplaceAll(configtest.Base(t)["callgate.yaml"].Data, "tools/*.yaml, ", "tools/*.yaml, tools/web.yaml, tools/../tools/*.yaml, ")},
	} {
		t.Run(why, func(t *testing.T) {
			dir := t.TempDir()
			c, err := Load(configtest.Write(t, dir, configtest.With(t, changed)))
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Warnings) > 0 {
				t.Errorf("found warnings: %v", c.Warnings)
			}
			if c.DataDir != filepath.Join(dir, "data") {
				t.Errorf("found data_dir %q", c.DataDir)
			}
			c.DataDir = want.DataDir
			c.ToolFiles = want.ToolFiles // its patterns are what one of the cases changes
			root := c.Workspaces["acme"].Projects["alpha"].Roots
			if len(root) != 1 || root[0] != filepath.Join(dir, "work", "alpha") {
				t.Errorf("found the roots %v", root)
			}
			root[0] = want.Workspaces["acme"].Projects["alpha"].Roots[0]
			same(t, c, want)
			if c.Digest == want.Digest {
				t.Error("other bytes have the same digest")
			}
		})
	}
}

func TestDigestIsOfTheFilesAlone(t *testing.T) {
	a, b := loads(t, configtest.Base(t)), loads(t, configtest.Base(t))
	if a.Digest != b.Digest || len(a.Digest) != 64 || strings.Trim(a.Digest, "0123456789abcdef") != "" {
		t.Errorf("equal files in two folders have the digests %s and %s", a.Digest, b.Digest)
	}
	dir := t.TempDir()
	main := configtest.Write(t, dir, configtest.Base(t))
	t.Chdir(dir)
	c, err := Load("callgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Load(main)
	if err != nil {
		t.Fatal(err)
	}
	if c.Digest != a.Digest || d.Digest != a.Digest {
		t.Error("the way the main file is named enters the digest")
	}
}

func TestPaths(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "policy.csv")
	if err := os.WriteFile(elsewhere, []byte(configtest.Base(t)["policy.csv"].Data), 0o600); err != nil {
		t.Fatal(err)
	}
	files := configtest.Base(t)
	files["sub/spaces.yaml"] = configtest.File{Data: strings.Replace(files["workspaces.yaml"].Data, "[work/alpha]", "[work/alpha, ../up/./x/, /srv//acme]", 1)}
	delete(files, "workspaces.yaml")
	delete(files, "policy.csv")
	files["callgate.yaml"] = configtest.File{Data: strings.NewReplacer("workspaces: workspaces.yaml", "workspaces: sub/spaces.yaml", "policy: policy.csv", "policy: "+elsewhere, "data_dir: data", "data_dir: some/data").Replace(files["callgate.yaml"].Data)}
	dir := t.TempDir()
	c, err := Load(configtest.Write(t, dir, files))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "sub", "work", "alpha"), filepath.Join(dir, "up", "x"), "/srv/acme"}
	if found := c.Workspaces["acme"].Projects["alpha"].Roots; !slices.Equal(found, want) {
		t.Errorf("found the roots %v; expected %v", found, want)
	}
	if c.DataDir != filepath.Join(dir, "some", "data") {
		t.Errorf("found data_dir %q; expected it beside the main file, in %s", c.DataDir, dir)
	}
	if !slices.Contains(c.Files, elsewhere) {
		t.Errorf("found the files %v; expected %s among them", c.Files, elsewhere)
	}
}

func TestWarnings(t *testing.T) {
	policyWith := func(row string) map[string]string {
		return map[string]string{"policy.csv": strings.Replace(configtest.Base(t)["policy.csv"].Data, "# end", row+"\n# end", 1)}
	}
	for why, c := range map[string]struct {
		changed map[string]string
		want    []string
	}{
		"a subject that no project lists":   {policyWith("p, Nobody, acme/alpha, notes.add, , deny"), []string{`policy.csv:6: no project lists an agent "Nobody", so this row matches nothing`}},
		"a tool that is not there":          {policyWith("p, Intern, acme/alpha, files.*, , deny"), []string{`policy.csv:6: no tool matches "files.*", so this row matches nothing`}},
		"a domain that is not there":        {policyWith("p, Intern, other/*, notes.add, , deny"), []string{`policy.csv:6: no project matches the domain "other/*", so this row matches nothing`}},
		"a role that nobody has":            {policyWith("p, role:writer, *, notes.add, , deny"), []string{`policy.csv:6: no g row grants "role:writer", so this row matches nothing`}},
		"a role that nothing names":         {policyWith("g, Analyst, role:writer, *"), []string{`policy.csv:6: no p row names "role:writer", so this row gives nothing`}},
		"a row that stands twice":           {policyWith("g, Analyst, role:reader, acme/alpha"), []string{`policy.csv:6: lines 5 and 6 hold the same row; the second changes nothing`}},
		"limits for an unknown agent":       {map[string]string{"limits.yaml": "replicas: 1\nagents:\n  Analist: {rate: 2/s}\n# end\n"}, []string{`limits.yaml:3:3: limits for the agent "Analist", which nothing names (did you mean "Analyst"?)`}},
		"limits for an unknown tool":        {map[string]string{"limits.yaml": "tools:\n  web.search: {rate: 1/s}\n  web.serch: {rate: 2/s}\n# end\n"}, []string{`limits.yaml:3:3: limits for the tool "web.serch", which is not registered (did you mean "web.search"?)`}},
		"limits for an agent's unknown one": {map[string]string{"limits.yaml": "agents:\n  Analyst:\n    tools: {web.serch: {rate: 2/s}}\n# end\n"}, []string{`limits.yaml:3:13: limits for the tool "web.serch", which is not registered (did you mean "web.search"?)`}},
		"budgets that bound nothing": {map[string]string{
			"limits.yaml": "budgets:\n" +
				"  - {name: a, agents: [Analyst, Analist, \"An*\"], window: day, tokens: 1}\n" +
				"  - {name: b, projects: [acme/alfa, \"acme/*\"], window: day, tokens: 1}\n" +
				"  - {name: c, models: [small, smal, \"sm*\", big-1, \"b*\", \"c*\"], window: day, tokens: 1}\n" +
				"  - {name: d, principals: [anybody], window: day, tokens: 1}\n# end\n",
			"callgate.yaml":  strings.Replace(configtest.Base(t)["callgate.yaml"].Data, "# end", "upstreams: upstreams.yaml\n# end", 1),
			"upstreams.yaml": "upstreams: [{name: m, base_url: https://example.com/v1, default_output_tokens: 9, models: [{id: small}, {id: big-*}]}]\n# end\n",
		}, []string{
			"limits.yaml:1:1: budgets without the key redis are counted by this process only, and forget what was spent when it ends",
			`limits.yaml:2:33: the budget "a" is for "Analist", which matches none of the agents (did you mean "Analyst"?)`,
			`limits.yaml:3:26: the budget "b" is for "acme/alfa", which matches none of the projects (did you mean "acme/alpha"?)`,
			`limits.yaml:4:31: the budget "c" is for "smal", which matches none of the models (did you mean "small"?)`,
			`limits.yaml:4:57: the budget "c" is for "c*", which matches none of the models`,
		}},
		"a member that nothing declares": {map[string]string{"tools/more.yaml": "tools:\n  - name: a\n    input_schema: {type: object, required: [txt, text], properties: {text: {type: string}}}\n" +
			"    run: {type: client}\n# end\n"},
			[]string{`tools/more.yaml:3:45: the schema of a requires "txt", which it does not declare, so nothing fits it (did you mean "text"?)`}},
		"a secret that is not there": {map[string]string{
			"callgate.yaml":  strings.Replace(configtest.Base(t)["callgate.yaml"].Data, "# end", "upstreams: upstreams.yaml\n# end", 1),
			"upstreams.yaml": "upstreams: [{name: m, base_url: https://example.com/v1, key: \"file:key\", models: [{id: a}]}]\n# end\n",
		}, []string{"upstreams.yaml:1:62: key: found no such file; expected a file; put the secret there: without it, what needs the secret fails"}},
		"keys of an issuer that are not there": {map[string]string{
			"callgate.yaml": "auth: {mode: jwt, jwt: {issuer: a, audience: b, jwks_file: no.json}}\nregistry: {files: [tools/*.yaml, tools/*.json]}\n# end\n",
		}, []string{"callgate.yaml:1:49: no.json: no such file or directory; put the issuer's keys there: without them no caller can be authenticated"}},
		"an agent of a principal that no project lists": {principalWith("agents: [Analyst, Internn], workspace: acme, projects: [alpha]"), []string{
			`principals.yaml:2:113: the agent "Internn" is listed by no project (did you mean "Intern"?)`}},
		"a workspace of a principal that is not there": {principalWith("agents: [Analyst], workspace: acne, projects: [alpha]"), []string{
			`principals.yaml:2:114: the workspace "acne" is not there (did you mean "acme"?)`}},
		"a project of a principal that is not there": {principalWith("agents: [Analyst], workspace: acme, projects: [alpha, beta]"), []string{
			`principals.yaml:2:149: the project "beta" is not in the workspace "acme"`}},
		"an agent that nobody may act for": {map[string]string{
			"callgate.yaml":   "auth: {mode: keys}\nregistry: {files: [tools/*.yaml, tools/*.json]}\nprincipals: principals.yaml\n# end\n",
			"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst, Intern, Anelyst], hosts: [a.example]}}}}\n# end\n",
			"principals.yaml": principalWith("agents: [Analyst, Intern], workspace: acme, projects: [alpha]")["principals.yaml"],
		}, []string{`workspaces.yaml:1:66: no principal may act for the agent "Anelyst" (did you mean "Analyst"?)`}},
		"limits for an unknown project":         {map[string]string{"limits.yaml": "projects:\n  acme/alpha: {rate: 1/s}\n  acme/beta: {rate: 2/s}\n# end\n"}, []string{`limits.yaml:3:3: limits for the project "acme/beta", which no workspace has`}},
		"a default agent that is not there":     {map[string]string{"callgate.yaml": strings.Replace(configtest.Base(t)["callgate.yaml"].Data, "{agent: Analyst", "{agent: Analist", 1)}, []string{`callgate.yaml:2:12: the default agent "Analist" is named by no project, so requests that name none are refused (did you mean "Analyst"?)`}},
		"nothing but comments":                  {map[string]string{"limits.yaml": "# caller: {rate: 50/s}\n# end\n"}, nil},
		"a default workspace that is not there": {map[string]string{"callgate.yaml": strings.Replace(configtest.Base(t)["callgate.yaml"].Data, "workspace: acme", "workspace: acne", 1)}, []string{`callgate.yaml:2:28: the default workspace "acne" is not there, so requests that name none are refused if their agent has several (did you mean "acme"?)`}},
		"a default project that is not there":   {map[string]string{"callgate.yaml": strings.Replace(configtest.Base(t)["callgate.yaml"].Data, "project: alpha", "project: alfa", 1)}, []string{`callgate.yaml:2:45: the default project "alfa" is not in the workspace "acme", so requests that name none are refused if their agent has several (did you mean "alpha"?)`}},
		"tools that only requests bring": {map[string]string{
			"callgate.yaml":  strings.Replace(configtest.Base(t)["callgate.yaml"].Data, "# end", "upstreams: upstreams.yaml\n# end", 1),
			"upstreams.yaml": "upstreams: [{name: m, base_url: https://example.com/v1, models: [{id: a, tools: request}]}]\n# end\n",
			"limits.yaml":    "tools: {Bash: {rate: 1/s}}\n# end\n",
			"policy.csv":     policyWith("p, Intern, other/*, Bash, , allow")["policy.csv"],
		}, []string{`policy.csv:6: no project matches the domain "other/*", so this row matches nothing`}},
		"several, in the order of the files": {map[string]string{
			"limits.yaml": "tools: {b: {rate: 1/s}, a: {rate: 1/s}}\nagents: {Nobody: {rate: 1/s}}\n# end\n",
			"policy.csv":  policyWith("p, Nobody, *, *, , deny")["policy.csv"],
		}, []string{
			`limits.yaml:1:9: limits for the tool "b", which is not registered`,
			`limits.yaml:1:25: limits for the tool "a", which is not registered`,
			`limits.yaml:2:10: limits for the agent "Nobody", which nothing names`,
			`policy.csv:6: no project lists an agent "Nobody", so this row matches nothing`,
		}},
	} {
		t.Run(why, func(t *testing.T) {
			dir := t.TempDir()
			loaded, err := Load(configtest.Write(t, dir, configtest.With(t, c.changed)))
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, w := range loaded.Warnings {
				found = append(found, strings.ReplaceAll(w.Error(), dir+string(filepath.Separator), ""))
			}
			if !slices.Equal(found, c.want) {
				t.Errorf("found    %q\nexpected %q", found, c.want)
			}
		})
	}
}

func TestEmbeddedDefault(t *testing.T) {
	c, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("found warnings: %v", c.Warnings)
	}
	if c.Settings.PrincipalsFile != "" || len(c.Principals) > 0 {
		t.Error("the default has principals")
	}
	if c.DataDir != "callgate-data" {
		t.Errorf("found data_dir %q; expected one that starts at the working directory, since the default stands in no folder", c.DataDir)
	}
	roots := c.Workspaces["acme"].Projects["alpha"].Roots
	if want, err := filepath.Abs(filepath.Join(c.DataDir, "projects", "alpha")); err != nil || !slices.Equal(roots, []string{want}) {
		t.Errorf("found the roots %v; expected one in data_dir: %s", roots, want)
	}
}

// TestExampleStatesTheDefaults holds callgate.yaml to its first lines: what it
// states is what stands where nothing is stated, and it leaves no key out.
func TestExampleStatesTheDefaults(t *testing.T) {
	files := map[string]configtest.File{"callgate.yaml": {Data: "# data_dir: elsewhere\n# end\n"}}
	for _, name := range []string{"policy.csv", "workspaces.yaml", "limits.yaml", "tools/demo.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = configtest.File{Data: string(data)}
	}
	empty := loads(t, files)
	example, err := os.ReadFile("callgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files["callgate.yaml"] = configtest.File{Data: string(example)}
	stated := loads(t, files)
	if filepath.Base(empty.DataDir) != filepath.Base(stated.DataDir) {
		t.Errorf("found the folders %s and %s", empty.DataDir, stated.DataDir)
	}
	empty.DataDir = stated.DataDir
	empty.Workspaces["acme"].Projects["alpha"].Roots[0] = stated.Workspaces["acme"].Projects["alpha"].Roots[0]
	same(t, empty, stated)
	if len(empty.Warnings)+len(stated.Warnings) > 0 {
		t.Errorf("found warnings: %v %v", empty.Warnings, stated.Warnings)
	}

	files["callgate.yaml"] = configtest.File{Data: "unknown: true\n# end\n"}
	_, err = Load(configtest.Write(t, t.TempDir(), files))
	_, list, found := strings.Cut(err.Error(), "one of the keys ")
	if !found {
		t.Fatalf("the fault of an unknown key lists none: %v", err)
	}
	for key := range strings.SplitSeq(list, ", ") {
		absent := key == "principals" || strings.Contains(string(example), "\n#"+key+":")
		if !absent && !strings.Contains(string(example), "\n"+key+":") {
			t.Errorf("callgate.yaml does not state the key %s", key)
		}
	}
}

// principalWith is a principals file of one principal.
func principalWith(members string) map[string]string {
	return map[string]string{"principals.yaml": "principals:\n  - {name: ada, key_sha256: " + hashA + ", " + members + "}\n# end\n"}
}

// unstated is a line of an example that is absent by default.
var unstated = regexp.MustCompile(`(?m)^( *)#([^ \n]| {2,}\S)`)

// TestExampleOfAbsentKeys takes the # away that keys of callgate.yaml stand
// behind: what shows is taken, and says what is the default wherever there is one.
func TestExampleOfAbsentKeys(t *testing.T) {
	example, err := os.ReadFile("callgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	models, err := os.ReadFile("upstreams.yaml")
	if err != nil {
		t.Fatal(err)
	}
	servers, err := os.ReadFile("servers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	prices, err := os.ReadFile("prices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rulesOfApproval, err := os.ReadFile("approvals.yaml")
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := os.ReadFile("hooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// Switches of a protocol are refused where it is not spoken.
	models = bytes.Replace(models, []byte("speaks: [chat]\n"), []byte("speaks: [chat, messages, responses]\n"), 1)
	rules := upstream.Defaults().Rules
	rules.Speaks = []upstream.Wire{upstream.ChatWire, upstream.MessagesWire, upstream.ResponsesWire}
	stated := loads(t, configtest.With(t, map[string]string{
		"callgate.yaml":    strings.Replace(unstated.ReplaceAllString(string(example), "$1$2"), "  kind: file\n", "  kind: redis\n", 1), // which has replicas
		"upstreams.yaml":   unstated.ReplaceAllString(string(models), "$1$2"),
		"servers.yaml":     string(servers),
		"prices.yaml":      string(prices),
		"approvals.yaml":   unstated.ReplaceAllString(string(rulesOfApproval), "$1$2"),
		"hooks.yaml":       unstated.ReplaceAllString(string(hooks), "$1$2"),
		"policy_test.yaml": "tests: [{name: readers search, agent: Analyst, project: acme/alpha, tool: web.search, expect: always}]\n# end\n",
	}))
	rule := stated.Approvals.Rules["refunds"]
	if len(rule.Remember) != 2 || rule.Hint == "" {
		t.Errorf("found the rule %+v", rule)
	}
	if all := stated.Hooks.All(); len(all) != 2 || len(all[0].Patterns) == 0 || all[1].Callout == nil {
		t.Errorf("found the hooks %+v", all)
	}
	if len(stated.Servers) != 2 {
		t.Errorf("found %d servers", len(stated.Servers))
	}
	if route, found := stated.Upstreams.Lookup("any"); !found || !reflect.DeepEqual(route.Rules, rules) {
		t.Errorf("found the route %+v; expected the default rules", route)
	}
	least := loads(t, configtest.With(t, map[string]string{
		"callgate.yaml": "auth: {jwt: {issuer: \"https://id.example.com\", audience: callgate}}\nredis: {url: \"env:REDIS_URL\"}\n# end\n",
	}))
	rule.Remember, rule.Hint = nil, ""
	if byDefault := approving(t, nil).Approvals; !reflect.DeepEqual(rule, byDefault.Rules["refunds"]) || stated.Approvals.Wait != byDefault.Wait {
		t.Errorf("found the rule %+v and the wait %v", rule, stated.Approvals.Wait)
	}
	if !reflect.DeepEqual(stated.Redis, least.Redis) || stated.Redis == nil {
		t.Errorf("found %+v; expected %+v", stated.Redis, least.Redis)
	}
	response := stated.Auth.JWT.TokenOptions
	standard := identity.TokenOptions{
		Issuer: "https://id.example.com", Audience: "callgate", Algorithms: identity.DefaultAlgorithms(), ClockSkew: identity.DefaultClockSkew,
		Refresh: identity.DefaultRefresh, StaleIfError: identity.DefaultStaleIfError, Timeout: identity.DefaultTimeout, StartupTimeout: identity.DefaultStartupTimeout,
		Claims: identity.ClaimNames{Name: "sub", Agents: "callgate_agents", Workspace: "callgate_workspace", Projects: "callgate_projects", Operator: "callgate_operator", Approves: "callgate_approves"},
	}
	if !reflect.DeepEqual(response, standard) {
		t.Errorf("found %+v; expected %+v", response, standard)
	}
	if least.Auth.JWT.ClockSkew != identity.DefaultClockSkew {
		t.Errorf("without a word, clocks may differ by %v", least.Auth.JWT.ClockSkew)
	}
}

// TestAdminListener: beyond loopback it loads where there can be an operator.
func TestAdminListener(t *testing.T) {
	principals := "principals:\n  - {name: op, key_sha256: \"" + strings.Repeat("ab", 32) + "\", agents: [Analyst], workspace: acme, projects: [alpha], operator: true}\n# end\n"
	for name, main := range map[string]string{
		"keys": "server: {admin_listen: \"0.0.0.0:9090\"}\nauth: {mode: keys}\nprincipals: principals.yaml\n# end\n",
		"jwt":  "server: {admin_listen: \"0.0.0.0:9090\"}\nauth: {mode: jwt, jwt: {issuer: \"https://id.example.com\", audience: callgate}}\n# end\n",
	} {
		c := loads(t, configtest.With(t, map[string]string{"callgate.yaml": main, "principals.yaml": principals}))
		if !c.Server.AdminBeyondLoopback() || name == "keys" && !c.Principals[0].Operator {
			t.Errorf("%s: %+v", name, c.Settings)
		}
	}
	if (Server{AdminListen: "localhost:9090"}).AdminBeyondLoopback() || (Server{AdminListen: "[::1]:9090"}).AdminBeyondLoopback() {
		t.Error("a loopback address is one beyond loopback")
	}
}

// TestFaultsTogether reports all faults of all files at once, in their order.
func TestFaultsTogether(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(configtest.Write(t, dir, configtest.With(t, map[string]string{
		"limits.yaml":     "replicas: 0\ncaler: {}\n# end\n",
		"policy.csv":      "q\n# end\n",
		"workspaces.yaml": "[]\n# end\n",
	})))
	if err == nil {
		t.Fatal("it loads")
	}
	var places []string
	for line := range strings.Lines(strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")) {
		place, _, _ := strings.Cut(line, ": ")
		places = append(places, place)
	}
	if want := []string{"limits.yaml:1:11", "limits.yaml:2:1", "policy.csv:1:1", "workspaces.yaml:1:1"}; !slices.Equal(places, want) {
		t.Errorf("found faults at %v; expected %v", places, want)
	}
}

func TestFaultsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		b.WriteString("unknown" + strings.Repeat("x", i) + ": 1\n")
	}
	_, err := Load(configtest.Write(t, t.TempDir(), configtest.With(t, map[string]string{"limits.yaml": b.String() + "# end\n"})))
	faults, ok := err.(document.Faults)
	if !ok || len(faults) != document.MaxFaults+1 || !strings.HasSuffix(err.Error(), ": and 150 more faults") {
		t.Errorf("found %d faults, the last of which is %v; expected %d and a count of the others", len(faults), faults[len(faults)-1], document.MaxFaults)
	}
}

// TestLargeFile refuses a file that nobody wrote by hand before it is read.
func TestLargeFile(t *testing.T) {
	main := configtest.Write(t, t.TempDir(), configtest.Base(t))
	limits := filepath.Join(filepath.Dir(main), "limits.yaml")
	if err := os.Truncate(limits, document.MaxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	_, err := Load(main)
	if err == nil || !strings.HasSuffix(err.Error(), "limits.yaml: found more than 64 MiB; expected a smaller file") {
		t.Errorf("found %v", err)
	}
}

// TestDataFolder: the data of a configuration is beside it, stated or not, wherever a
// process was started and however the file was named to it.
func TestDataFolder(t *testing.T) {
	elsewhere := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	main := configtest.Base(t)["callgate.yaml"].Data
	for stated, want := range map[string]string{"": "callgate-data", "data_dir: x/../own\n": "own", "data_dir: " + elsewhere + "\n": elsewhere} {
		t.Chdir(here)
		files := configtest.Base(t)
		files["callgate.yaml"] = configtest.File{Data: strings.Replace(main, "data_dir: data\n", stated, 1)}
		dir := t.TempDir()
		main := configtest.Write(t, dir, files)
		t.Chdir(filepath.Dir(dir))
		for _, path := range []string{main, filepath.Join(filepath.Base(dir), "callgate.yaml")} {
			c, err := Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if !filepath.IsAbs(want) {
				want = filepath.Join(dir, want)
			}
			if found, err := filepath.Abs(c.DataDir); err != nil || found != want {
				t.Errorf("%q, loaded as %s: found %s; expected %s", stated, path, found, want)
			}
		}
	}
}

// loads loads files that have no fault.
func loads(t testing.TB, files map[string]configtest.File) *Config {
	t.Helper()
	c, err := Load(configtest.Write(t, t.TempDir(), files))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
