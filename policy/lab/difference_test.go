package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/compare"
	"github.com/callgate/callgate/policy/lab"
)

const main = `registry: {files: [tools.yaml]}
policy: policy.csv
workspaces: workspaces.yaml
limits: limits.yaml
approvals: approvals.yaml
# end
`

// write makes a small configuration with edits, each the name of a file, old and new text.
func write(t *testing.T, edits ...[3]string) *configs.Config {
	t.Helper()
	files := map[string]string{
		"callgate.yaml": main,
		"tools.yaml": `tools:
  - {name: pay, description: Pays., effect: once, run: {type: client}, input_schema: {type: object, properties: {n: {type: integer, maximum: 100}}, required: [n]}}
  - {name: look, description: Looks., run: {type: client}, input_schema: {type: object, properties: {}}}
# end
`,
		"policy.csv": "p, A, acme/*, *, , allow\np, A, acme/alpha, pay, , ask:money\n# end\n",
		"workspaces.yaml": `workspaces:
  acme:
    projects:
      alpha: {agents: [A], roots: [/srv/a, /srv/b], hosts: [example.com], resources: {customer: [c-1]}}
# end
`,
		"limits.yaml":    "default: {}\n# end\n",
		"approvals.yaml": "rules: {money: {approve: 1, within: 5m}}\n# end\n",
	}
	for _, e := range edits {
		if !strings.Contains(files[e[0]], e[1]) {
			t.Fatalf("%s does not have %q", e[0], e[1])
		}
		files[e[0]] = strings.Replace(files[e[0]], e[1], e[2], 1)
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := configs.Load(filepath.Join(dir, "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParts(t *testing.T) {
	old := write(t)
	for _, c := range []struct {
		edit        [3]string
		there, back compare.Verdict
		part, key   string
	}{
		{[3]string{"limits.yaml", "{}", "{ }"}, compare.Equivalent, compare.Equivalent, "", ""},
		{[3]string{"policy.csv", "p, A, acme/alpha, pay, , ask:money\n", ""}, compare.Wider, compare.Narrower, "", ""},
		{[3]string{"workspaces.yaml", "[A]", "[A, B]"}, compare.Wider, compare.Narrower, "workspaces", "acme/alpha agents"},
		{[3]string{"workspaces.yaml", "[A]", "[B]"}, compare.Incomparable, compare.Incomparable, "workspaces", "acme/alpha agents"},
		{[3]string{"workspaces.yaml", "[/srv/a, /srv/b]", "[/srv/a]"}, compare.Narrower, compare.Wider, "workspaces", "acme/alpha roots"},
		{[3]string{"workspaces.yaml", "[/srv/a, /srv/b]", "[/srv/b]"}, compare.Incomparable, compare.Incomparable, "workspaces", "acme/alpha roots"},
		{[3]string{"workspaces.yaml", "[/srv/a, /srv/b]", "[/srv/b, /srv/a]"}, compare.Incomparable, compare.Incomparable, "workspaces", "acme/alpha roots"},
		{[3]string{"workspaces.yaml", "[example.com]", "[example.com, '*.example.com']"}, compare.Wider, compare.Narrower, "workspaces", "acme/alpha hosts"},
		{[3]string{"workspaces.yaml", "[c-1]", "[c-1, c-2]"}, compare.Wider, compare.Narrower, "workspaces", "acme/alpha resources customer"},
		{[3]string{"tools.yaml", "maximum: 100", "maximum: 101"}, compare.Incomparable, compare.Incomparable, "tool", "pay"},
		{[3]string{"tools.yaml", "description: Pays.", "description: It pays."}, compare.Equivalent, compare.Equivalent, "", ""},
		{[3]string{"approvals.yaml", "5m", "6m"}, compare.Incomparable, compare.Incomparable, "approvals", "money"},
	} {
		t.Run(fmt.Sprint(c.edit), func(t *testing.T) {
			now := write(t, c.edit)
			for _, direction := range []struct {
				from, to *configs.Config
				want     compare.Verdict
			}{{old, now, c.there}, {now, old, c.back}, {now, now, compare.Equivalent}} {
				r, err := lab.Compare(t.Context(), direction.from.Rules(), direction.to.Rules())
				if err != nil || r.Verdict != direction.want {
					t.Errorf("%v: found %s, expected %s: %+v", err, r.Verdict, direction.want, r)
				}
				if parts := len(r.Parts); direction.from != direction.to && c.part != "" && (parts != 1 || r.Parts[0].Part != c.part || r.Parts[0].Key != c.key) {
					t.Errorf("found the parts %+v", r.Parts)
				}
			}
		})
	}
}

// A tool and a project that only one side has.
func TestMoreOfAll(t *testing.T) {
	old := write(t)
	now := write(t,
		[3]string{"tools.yaml", "  - {name: look", "  - {name: more, description: More., run: {type: client}, input_schema: {type: object, properties: {}}}\n  - {name: look"},
		[3]string{"workspaces.yaml", "    projects:\n", "    projects:\n      beta: {agents: [A]}\n"})
	r, err := lab.Compare(t.Context(), old.Rules(), now.Rules())
	if err != nil || r.Verdict != compare.Wider || r.Policy.Verdict != compare.Equivalent || len(r.Parts) != 2 {
		t.Errorf("%v: %+v", err, r)
	}
	if calls := 2 * 4 * 4; r.Policy.Calls != calls { // A, other; alpha, beta, other, other/other; pay, look, more, other
		t.Errorf("%d calls, expected %d", r.Policy.Calls, calls)
	}
}

// Another policy stands in place of the one that the main file names, under its name in the digest.
func TestLoadWithPolicy(t *testing.T) {
	old := write(t)
	source, err := old.ReadPolicy()
	if err != nil {
		t.Fatal(err)
	}
	for _, load := range []func(string, policy.Source) (*configs.Config, error){configs.LoadWithPolicy, configs.LoadTestedWithPolicy} {
		same, err := load(old.Files[0], policy.Source{File: "elsewhere.csv", Data: source.Data})
		if err != nil || same.Digest != old.Digest || same.Policy.Rows()[0].Place() != "elsewhere.csv:1" {
			t.Errorf("%v: %+v", err, same)
		}
		none, err := load(old.Files[0], policy.Source{File: "elsewhere.csv", Data: []byte("# end\n")})
		if err != nil || none.Digest == old.Digest {
			t.Fatalf("%v: the digest is not over the policy", err)
		}
		if r, err := lab.Compare(t.Context(), old.Rules(), none.Rules()); err != nil || r.Verdict != compare.Narrower {
			t.Errorf("%v, %+v", err, r)
		}
		if _, err := load(old.Files[0], policy.Source{File: "elsewhere.csv", Data: []byte("p, A\n# end\n")}); err == nil || !strings.Contains(err.Error(), "elsewhere.csv:1") {
			t.Errorf("a faulty policy: %v", err)
		}
		if _, err := load("", source); err == nil {
			t.Error("a policy that asks by a rule which the built-in configuration does not have is loaded")
		}
	}
}
