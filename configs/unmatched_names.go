package configs

import (
	"fmt"
	"maps"
	"slices"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/similar"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// maxHints bounds the hints at near names of one load, beside those of the policy.
const maxHints = 50

// unmatched warns of names that can match nothing: they are allowed, and surely not meant.
// The policy warns of its own rows.
type unmatched struct {
	*Config
	suggest  similar.Suggester
	models   []upstream.Definition
	agents   []string // that a project or a principal names
	tools    []string
	projects []string // as workspace/project
	brought  bool     // requests may bring tools that are not registered
}

// warnUnmatched warns of such names in the main file and in the files of limits, workspaces and
// principals.
func (l *loader) warnUnmatched(root, limits, workspaces, people document.Node, budgets []budget.Budget, models []upstream.Definition, c *Config) {
	if len(l.report.Faults) > 0 {
		return
	}
	u := &unmatched{Config: c, suggest: similar.Suggester{Left: maxHints}, brought: l.toolsOfRequests, models: models,
		agents: slices.Sorted(maps.Keys(c.Agents))}
	for _, e := range c.Tools.Entries() {
		u.tools = append(u.tools, e.Name())
	}
	u.projects = c.Workspaces.Places("")
	if d := c.Defaults; c.Auth.Mode == AuthNone && !c.Agents[d.Agent] {
		root.At("/defaults/agent").Warn("the default agent %q is named by no project, so requests that name none are refused%s", d.Agent,
			u.near(d.Agent, u.agents))
	}
	u.defaultProject(root)
	u.limits(limits)
	u.budgets(limits, budgets)
	u.principals(people)
	if c.Auth.Mode == AuthKeys {
		u.projectAgents(workspaces)
	}
}

// defaultProject warns of a stated project that is not there.
func (u *unmatched) defaultProject(root document.Node) {
	d := u.Defaults
	_, workspace := root.Resolve("/defaults/workspace")
	_, project := root.Resolve("/defaults/project")
	if u.Auth.Mode != AuthNone || !workspace && !project {
		return
	}
	w, known := u.Workspaces[d.Workspace]
	if !known {
		root.At("/defaults/workspace").Warn("the default workspace %q is not there, so requests that name none are refused if their agent has several%s", d.Workspace,
			u.near(d.Workspace, slices.Sorted(maps.Keys(u.Workspaces))))
		return
	}
	if _, known = w.Projects[d.Project]; !known {
		root.At("/defaults/project").Warn("the default project %q is not in the workspace %q, so requests that name none are refused if their agent has several%s",
			d.Project, d.Workspace, u.near(d.Project, slices.Sorted(maps.Keys(w.Projects))))
	}
}

func (u *unmatched) near(name string, names []string) string {
	return u.suggest.DidYouMean(name, names)
}

func (u *unmatched) limits(n document.Node) {
	for _, agent := range slices.Sorted(maps.Keys(u.Limits.Agents)) {
		if !u.Agents[agent] {
			n.At(refusal.Pointer("agents", agent)).Warn("limits for the agent %q, which nothing names%s", agent, u.near(agent, u.agents))
		}
		u.limited(n, slices.Sorted(maps.Keys(u.Limits.Agents[agent].Tools)), "agents", agent, "tools")
	}
	u.limited(n, slices.Sorted(maps.Keys(u.Limits.Tools)), "tools")
	if t := u.Limits.Threads; t != nil && t.Equal != nil {
		u.limited(n, slices.Sorted(maps.Keys(t.Equal.Tools)), "threads", "equal", "tools")
	}
	for project := range u.Limits.Projects {
		if _, ok := u.Workspaces[project.Workspace].Projects[project.Name]; !ok {
			name := project.String()
			n.At(refusal.Pointer("projects", name)).Warn("limits for the project %q, which no workspace has%s", name,
				u.near(name, u.projects))
		}
	}
}

func (u *unmatched) limited(n document.Node, tools []string, path ...string) {
	for _, tool := range tools {
		if _, ok := u.Tools.Lookup(tool); !ok && !u.brought {
			n.At(refusal.Pointer(append(path, tool)...)).Warn("limits for the tool %q, which is not registered%s", tool,
				u.near(tool, u.tools))
		}
	}
}

// budgets warns of names in budgets that match nothing: such a budget bounds nothing.
func (u *unmatched) budgets(n document.Node, all []budget.Budget) {
	var callers, models []string
	for _, p := range u.Principals {
		callers = append(callers, p.Name)
	}
	for _, d := range u.models {
		for _, m := range d.Models {
			models = append(models, m.ID)
		}
	}
	for i := range all {
		b := &all[i]
		warn := func(key string, patterns, names []string, matches func(pattern, name string) bool) {
			for j, pattern := range patterns {
				if !slices.ContainsFunc(names, func(name string) bool { return matches(pattern, name) }) {
					n.At(fmt.Sprintf("/budgets/%d/%s/%d", i, key, j)).Warn("the budget %q is for %q, which matches none of the %s%s", b.Name,
						pattern, key, u.near(pattern, names))
				}
			}
		}
		warn("agents", b.Agents, u.agents, budget.Matches)
		warn("projects", b.Projects, u.projects, budget.Matches)
		warn("models", b.Models, models, budget.MayMatch)
		if u.Auth.Mode == AuthKeys { // the principals of tokens are the issuer's
			warn("principals", b.Principals, callers, budget.Matches)
		}
	}
}

// principals warns of agents that no project lists, and of projects that are not there.
func (u *unmatched) principals(n document.Node) {
	listed := u.Workspaces.Agents()
	for i, p := range u.Principals {
		for j, agent := range p.Agents {
			if _, found := slices.BinarySearch(listed, agent); !found {
				n.At(fmt.Sprintf("/principals/%d/agents/%d", i, j)).Warn("the agent %q is listed by no project%s", agent,
					u.near(agent, listed))
			}
		}
		w, found := u.Workspaces[p.Workspace]
		if !found && p.Workspace != "" {
			n.At(fmt.Sprintf("/principals/%d/workspace", i)).Warn("the workspace %q is not there%s",
				p.Workspace, u.near(p.Workspace, slices.Sorted(maps.Keys(u.Workspaces))))
			continue
		}
		for j, project := range p.Projects {
			if _, found := w.Projects[project]; !found {
				n.At(fmt.Sprintf("/principals/%d/projects/%d", i, j)).Warn("the project %q is not in the workspace %q%s",
					project, p.Workspace, u.near(project, slices.Sorted(maps.Keys(w.Projects))))
			}
		}
	}
}

// projectAgents warns of agents of projects that no principal may act for, where that looks like a
// typing error: a project may list an agent before anybody has a key for it.
func (u *unmatched) projectAgents(n document.Node) {
	permitted := map[string]bool{}
	for _, p := range u.Principals {
		for _, agent := range p.Agents {
			permitted[agent] = true
		}
	}
	names := slices.Sorted(maps.Keys(permitted))
	for _, workspace := range slices.Sorted(maps.Keys(u.Workspaces)) {
		projects := u.Workspaces[workspace].Projects
		for _, project := range slices.Sorted(maps.Keys(projects)) {
			for i, agent := range projects[project].Agents {
				if permitted[agent] {
					continue
				}
				if hint := u.near(agent, names); hint != "" {
					n.At("/workspaces"+refusal.Pointer(workspace, "projects", project, "agents", fmt.Sprint(i))).Warn(
						"no principal may act for the agent %q%s", agent, hint)
				}
			}
		}
	}
}
