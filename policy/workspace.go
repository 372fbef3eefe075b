package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/invalid"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/policy/internal/lexical"
	"github.com/callgate/callgate/refusal"
)

// Workspaces is the whole of a workspaces file, by name. It is not changed once
// it is in use.
type Workspaces map[string]Workspace

// Workspace is one workspace: its projects, by name.
type Workspace struct{ Projects map[string]Project }

// Project is where calls may act: the agents that may act there, and the lists
// that the arguments marked x-boundary must stay within. An empty list allows
// nothing.
type Project struct {
	Agents []string `key:"agents" of:"agents" list:"unique" pattern:"^[^ *]([^*]*[^ *])?$"`
	// absolute, clean directories; the first is where relative paths start
	Roots []string `key:"roots"`
	Hosts []string `key:"hosts" of:"hosts" list:"unique" pattern:"^(\\*\\.)?[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$|^[0-9a-fA-F.]*:[0-9a-fA-F:.]+$"` // names, *.NAME, or IP addresses
	// exact values, or a prefix before a trailing star
	Resources map[string][]string `key:"resources"`

	workspace, name string // set by Workspaces.Project
}

// Bounds returns the boundaries for the arguments of calls in this project. It
// shares its lists with p.
func (p Project) Bounds() boundary.Lists {
	return boundary.Lists{Roots: p.Roots, Hosts: p.Hosts, Resources: p.Resources, Workspace: p.workspace, Project: p.name}
}

// Workspace finds a workspace by name. The error is a *refusal.Error with
// WorkspaceMismatch.
func (w Workspaces) Workspace(name string) (Workspace, error) {
	found, ok := w[name]
	if !ok || name == "" {
		return Workspace{}, refusal.New(refusal.WorkspaceMismatch, "This workspace does not exist. The call cannot be made here.")
	}
	return found, nil
}

// Project finds the project in which an agent acts. The error is a
// *refusal.Error: WorkspaceMismatch where the workspace is not in the file,
// ProjectMismatch where the project is not in it or does not list the agent.
// The result shares its lists with w and knows its own names.
func (w Workspaces) Project(agent, workspace, project string) (*Project, error) {
	in, err := w.Workspace(workspace)
	if err != nil {
		return nil, err
	}
	found, ok := in.Projects[project]
	if !ok || project == "" || agent == "" || !slices.Contains(found.Agents, agent) {
		return nil, refusal.New(refusal.ProjectMismatch, "This agent does not act in this project. The call cannot be made here.")
	}
	found.workspace, found.name = workspace, project
	return &found, nil
}

// Places lists the projects that list an agent, or all for the empty name, as "workspace/project", sorted.
func (w Workspaces) Places(agent string) []string {
	var all []string
	for workspace, in := range w {
		for project, p := range in.Projects {
			if agent == "" || slices.Contains(p.Agents, agent) {
				all = append(all, workspace+"/"+project)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Known reports whether any project names the agent. It looks at every project: a
// caller that asks for each request keeps the set of Agents.
func (w Workspaces) Known(agent string) bool {
	for _, in := range w {
		for _, p := range in.Projects {
			if slices.Contains(p.Agents, agent) {
				return true
			}
		}
	}
	return false
}

// Agents lists the agents that projects name, sorted, each once.
func (w Workspaces) Agents() []string {
	all := map[string]bool{}
	for _, in := range w {
		for _, p := range in.Projects {
			for _, agent := range p.Agents {
				all[agent] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Validate checks every name and list; nil when there is no fault. The errors
// are sorted by their paths. Roots must have been made absolute before.
func (w Workspaces) Validate() []invalid.Field {
	v := &validation{}
	for workspace, in := range w {
		v.placeName("workspace", workspace, workspace)
		for project, p := range in.Projects {
			at := []string{workspace, "projects", project}
			v.placeName("project", project, at...)
			v.project(p, at)
		}
	}
	slices.SortFunc(v.faults, func(a, b invalid.Field) int {
		return cmp.Or(slices.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	return v.faults
}

// validation gathers the faults of one file.
type validation struct{ faults []invalid.Field }

func (v *validation) add(at []string, format string, args ...any) {
	v.faults = append(v.faults, invalid.Field{Path: slices.Clone(at), Message: fmt.Sprintf(format, args...)})
}

func (v *validation) project(p Project, at []string) {
	v.each(append(at, "agents"), p.Agents, func(agent string) string {
		switch {
		case isRole(agent):
			return "found an agent named like a role, expected a name that does not start with " + rolePrefix
		case strings.Contains(agent, "*"):
			return "found a star in an agent's name, expected a plain name"
		}
		return lexical.NameProblem(agent)
	})
	v.each(append(at, "roots"), p.Roots, boundary.RootProblem)
	v.each(append(at, "hosts"), p.Hosts, boundary.HostProblem)
	for name, values := range p.Resources {
		here := append(slices.Clone(at), "resources", name)
		if bad := lexical.NameProblem(name); bad != "" {
			v.add(here, "%s", bad)
		}
		if boundary.BuiltIn(name) {
			v.add(here, "found a resource named %s, expected a name that is not a kind of boundary itself", parser.Quote(name))
		}
		v.each(here, values, func(value string) string {
			if strings.Contains(strings.TrimSuffix(value, "*"), "*") {
				return "found a star inside a value, expected none or one at its end"
			}
			return lexical.NameProblem(value)
		})
	}
}

// each checks the elements of a list, and that none is there twice.
func (v *validation) each(at []string, values []string, bad func(string) string) {
	first := map[string]int{}
	for i, value := range values {
		here := append(slices.Clone(at), fmt.Sprint(i))
		if message := bad(value); message != "" {
			v.add(here, "%s", message)
		} else if j, repeated := first[value]; repeated {
			v.add(here, "found %.300q again, which is element %d already", value, j) // paths differ at their end
		} else {
			first[value] = i
		}
	}
}

// placeName checks the name of a workspace or a project.
func (v *validation) placeName(what, name string, at ...string) {
	switch {
	case strings.ContainsAny(name, "/*"):
		v.add(at, "found a slash or a star in the name of a %s, expected neither", what)
	default:
		if bad := lexical.NameProblem(name); bad != "" {
			v.add(at, "%s", bad)
		}
	}
}
