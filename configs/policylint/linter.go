package policylint

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/lab"
)

// linter gathers the findings in one configuration.
type linter struct {
	*configs.Config
	ctx   context.Context
	judge *lab.Judge
	found []Finding

	warned map[int]bool // by line: what else such a row does not do follows
	places []place
	tools  []string // sorted
}

// place is a project with one of its agents.
type place struct{ agent, workspace, project string }

func (p place) request(tool string) policy.Request {
	return policy.Request{Agent: p.agent, Workspace: p.workspace, Project: p.project, Tool: tool}
}

// placesOf lists each project with each of its agents.
func placesOf(c *configs.Config) []place {
	var places []place
	for _, workspace := range slices.Sorted(maps.Keys(c.Workspaces)) {
		projects := c.Workspaces[workspace].Projects
		for _, project := range slices.Sorted(maps.Keys(projects)) {
			for _, agent := range projects[project].Agents {
				places = append(places, place{agent, workspace, project})
			}
		}
	}
	return places
}

// toolNames lists the names of the tools, each once.
func toolNames(c *configs.Config) []string {
	names := map[string]bool{}
	for _, e := range c.Tools.Entries() {
		names[e.Name()] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (l *linter) add(id ID, file string, line int, format string, args ...any) {
	l.found = append(l.found, Finding{ID: id, File: file, Line: line, Message: fmt.Sprintf(format, args...), Page: id.Page()})
}

// row adds a finding on a row.
func (l *linter) row(id ID, r policy.Row, format string, args ...any) {
	l.add(id, r.File, r.Line, format, args...)
}
