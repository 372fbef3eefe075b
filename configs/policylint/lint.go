// Package policylint finds in a configuration what its policy and limits say without effect, or
// surely otherwise than was meant. Each finding has an id that does not change, and a section of
// docs/policy-lint.md.
package policylint

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway/dryrun"
	"github.com/callgate/callgate/policy"
)

// ID names a kind of finding.
type ID string

// The kinds of findings. Those of the first group are always reported: without the row, or the
// limit, everything is decided as with it, or it reaches further than it looks.
const (
	Idle        ID = policy.Idle
	Repeated    ID = policy.Repeated
	NoMembers   ID = policy.NoMembers
	Shadowed    ID = "shadowed"
	Overridden  ID = "overridden"
	DenyNothing ID = "deny-nothing"
	AskNothing  ID = "ask-nothing"
	NeverTrue   ID = "never-true"
	Wide        ID = "wide"
	IdleLimit   ID = "idle-limit"
)

// Those of the second group may well be meant, and are reported when all are asked for.
const (
	Constant  ID = "constant"
	Optional  ID = "optional"
	Nobody    ID = "nobody"
	IdleAgent ID = "idle-agent"
)

// IDs lists all kinds, in the order of the page that explains them.
func IDs() []ID {
	return []ID{Idle, Repeated, NoMembers, Shadowed, Overridden, DenyNothing, AskNothing, NeverTrue, Wide, IdleLimit, Constant, Optional, Nobody, IdleAgent}
}

// ByRequest reports whether a kind is reported only when all are asked for.
func (id ID) ByRequest() bool {
	return slices.Contains([]ID{Constant, Optional, Nobody, IdleAgent}, id)
}

// Page is where a kind is explained.
func (id ID) Page() string { return "docs/policy-lint.md#" + string(id) }

// Finding is one finding.
type Finding struct {
	ID      ID     `json:"id"`
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // from 1; 0 where it is of no line
	Message string `json:"message"`
	Page    string `json:"page"`
}

// String is one line.
func (f Finding) String() string {
	at := f.File
	if f.Line > 0 {
		at += ":" + strconv.Itoa(f.Line)
	}
	return fmt.Sprintf("%s: %s: %s (%s)", at, f.ID, f.Message, f.Page)
}

// Lint returns the findings in a configuration, by file and line; those that may well be meant
// only where all are asked for.
func Lint(ctx context.Context, c *configs.Config, all bool) ([]Finding, error) {
	judge, err := c.DryRun()
	if err != nil {
		return nil, err
	}
	l := &linter{Config: c, ctx: ctx, judge: judge, warned: map[int]bool{}, places: placesOf(c), tools: toolNames(c)}
	for _, w := range c.PolicyWarnings {
		l.warned[w.Line] = true
		l.add(ID(w.Kind), w.File, w.Line, "%s", w.Message)
	}
	l.superfluous()
	l.conditions()
	if err := l.reaches(); err != nil {
		return nil, err
	}
	if !all {
		l.found = slices.DeleteFunc(l.found, func(f Finding) bool { return f.ID.ByRequest() })
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(slices.Index(IDs(), a.ID), slices.Index(IDs(), b.ID)))
	})
	return l.found, ctx.Err()
}

// linter gathers the findings in one configuration.
type linter struct {
	*configs.Config
	ctx   context.Context
	judge *dryrun.Judge
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

// superfluous finds rows without which every call is decided as with them.
func (l *linter) superfluous() {
	for _, s := range l.Policy.Superfluous() {
		switch {
		case l.warned[s.Row.Line]:
		case s.Reason == policy.Shadowed:
			l.row(Shadowed, s.Row, "line %d does the same for everything that this row matches", s.By.Line)
		case s.Reason == policy.Overridden && s.Row.Effect == policy.Ask:
			l.row(AskNothing, s.Row, "line %d denies everything that this row matches, so nobody is ever asked", s.By.Line)
		case s.Reason == policy.Overridden:
			l.row(Overridden, s.Row, "line %d denies everything that this row matches", s.By.Line)
		case s.Reason == policy.DeniesNothing:
			l.row(DenyNothing, s.Row, "no row permits anything that this row denies")
		}
	}
}
