package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/refusal"
)

func TestProjectOf(t *testing.T) {
	w := testSpaces()
	for _, c := range []struct {
		agent, workspace, project string
		want                      refusal.Code
	}{
		{"Analyst", "acme", "alpha", ""},
		{"Intern", "globex", "gamma", ""},
		{"Analyst", "nowhere", "alpha", refusal.WorkspaceMismatch},
		{"Analyst", "", "alpha", refusal.WorkspaceMismatch},
		{"Analyst", "Acme", "alpha", refusal.WorkspaceMismatch},
		{"Analyst", "acme", "gamma", refusal.ProjectMismatch},
		{"Analyst", "acme", "", refusal.ProjectMismatch},
		{"Intern", "acme", "beta", refusal.ProjectMismatch},
		{"", "acme", "alpha", refusal.ProjectMismatch},
		{"analyst", "acme", "alpha", refusal.ProjectMismatch},
	} {
		p, err := w.Project(c.agent, c.workspace, c.project)
		if c.want == "" {
			if err != nil || p.Bounds().Within(boundary.KindWorkspace, c.workspace) != nil || p.Bounds().Within(boundary.KindProject, c.project) != nil {
				t.Errorf("%v: %v, %v", c, p, err)
			}
			continue
		}
		var refused *refusal.Error
		if p != nil || !errors.As(err, &refused) || refused.Code != c.want || refused.Message == "" {
			t.Errorf("%v: %v, %v", c, p, err)
		}
	}
	for name, empty := range map[string]Workspaces{"nil": nil, "empty names": {"": {Projects: map[string]Project{"": {Agents: []string{""}}}}}} {
		if p, err := empty.Project("", "", ""); p != nil || err == nil {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if p := w["acme"].Projects["alpha"]; p.Bounds().Within(boundary.KindProject, "alpha") == nil {
		t.Error("a project knows its name without being looked up")
	}
}

func TestKnownAgents(t *testing.T) {
	w := testSpaces()
	for agent, want := range map[string]bool{"Analyst": true, "Intern": true, "Ghost": false, "": false, "analyst": false} {
		if w.Known(agent) != want {
			t.Errorf("%q: known %v", agent, !want)
		}
	}
	if got := w.Agents(); !slices.Equal(got, []string{"Analyst", "Intern"}) {
		t.Errorf("agents %v", got)
	}
	if Workspaces(nil).Known("Analyst") || len(Workspaces(nil).Agents()) != 0 {
		t.Error("no file knows an agent")
	}
}

func TestValidate(t *testing.T) {
	if faults := testSpaces().Validate(); faults != nil {
		t.Error(faults)
	}
	if faults := (Workspaces)(nil).Validate(); faults != nil {
		t.Error(faults)
	}
	at := func(p Project) Workspaces { return Workspaces{"w": {Projects: map[string]Project{"p": p}}} }
	const here = "w.projects.p."
	for _, c := range []struct {
		spaces Workspaces
		want   string // path: start of the message
	}{
		{Workspaces{"": {}}, ": found an empty name"},
		{Workspaces{"a/b": {}}, "a/b: found a slash or a star in the name of a workspace"},
		{Workspaces{"*": {}}, "*: found a slash or a star in the name of a workspace"},
		{Workspaces{"a\n": {}}, "a\n: found \"a\\n\", expected no space at either end"},
		{Workspaces{" a": {}}, " a: found \" a\", expected no space at either end"},
		{Workspaces{"a\u200bb": {}}, "a\u200bb: found \"a\\u200bb\", expected no control or invisible character"},
		{Workspaces{"w": {Projects: map[string]Project{"": {}}}}, "w.projects.: found an empty name"},
		{Workspaces{"w": {Projects: map[string]Project{"p/q": {}}}}, "w.projects.p/q: found a slash or a star in the name of a project"},
		{Workspaces{"w": {Projects: map[string]Project{"p*": {}}}}, "w.projects.p*: found a slash or a star in the name of a project"},
		{at(Project{Agents: []string{"a", ""}}), here + "agents.1: found an empty name"},
		{at(Project{Agents: []string{"role:x"}}), here + "agents.0: found an agent named like a role"},
		{at(Project{Agents: []string{"a*"}}), here + "agents.0: found a star in an agent's name"},
		{at(Project{Agents: []string{"a\x00"}}), here + "agents.0: found \"a\\x00\", expected no control"},
		{at(Project{Agents: []string{"a\xff"}}), here + "agents.0: found invalid UTF-8"},
		{at(Project{Agents: []string{"a", "b", "a"}}), here + "agents.2: found \"a\" again, which is element 0 already"},
		{at(Project{Roots: []string{"srv/x"}}), here + "roots.0: found the root \"srv/x\", expected an absolute path"},
		{at(Project{Roots: []string{"/srv/x/"}}), here + "roots.0: found the root"},
		{at(Project{Roots: []string{"/srv/../x"}}), here + "roots.0: found the root"},
		{at(Project{Roots: []string{"//srv"}}), here + "roots.0: found the root"},
		{at(Project{Roots: []string{"~/x"}}), here + "roots.0: found the root"},
		{at(Project{Roots: []string{""}}), here + "roots.0: found an empty name"},
		{at(Project{Hosts: []string{"https://a.com"}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"a.com:80"}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"a.com."}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"*"}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"*."}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"a.*.com"}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"*a.com"}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"*.1"}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"*.1.2.3.4"}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"127.1"}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"0x7f.1"}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"a.0x7f"}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"*.0x"}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"[::1]"}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"ünï.com"}}), here + "hosts.0: found the host"},
		{at(Project{Hosts: []string{"::ffff:0102:0304"}}), here + "hosts.0: found the address"},
		{at(Project{Hosts: []string{"fe80::1%eth0"}}), here + "hosts.0: found the address"},
		{at(Project{Hosts: []string{strings.Repeat("a", 64) + ".com"}}), here + "hosts.0: found the host"},
		{at(Project{Resources: map[string][]string{"": {"x"}}}), here + "resources.: found an empty name"},
		{at(Project{Resources: map[string][]string{"path": {"x"}}}), here + "resources.path: found a resource named \"path\""},
		{at(Project{Resources: map[string][]string{"c": {"a*b"}}}), here + "resources.c.0: found a star inside"},
		{at(Project{Resources: map[string][]string{"c": {"**"}}}), here + "resources.c.0: found a star inside"},
		{at(Project{Resources: map[string][]string{"c": {"x", ""}}}), here + "resources.c.1: found an empty name"},
	} {
		faults := c.spaces.Validate()
		if len(faults) != 1 || !strings.HasPrefix(faults[0].Error(), c.want) {
			t.Errorf("got %q, want one fault that starts with %q", faults, c.want)
		}
	}
	if faults := at(Project{Hosts: []string{"*.a.com", "A.com", "1.2.3.4", "::1", "xn--a.com", "x_y.a", "a.0xyz"}, Roots: []string{"/", "/srv/a b"}, Resources: map[string][]string{"c": {"*", "a/b"}}}).Validate(); faults != nil {
		t.Error(faults)
	}
}
