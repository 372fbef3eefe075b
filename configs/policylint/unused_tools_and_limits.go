package policylint

import (
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/policy"
)

// actsOnce is the effect of tools that must not be called twice.
const actsOnce = "once"

// reaches finds tools that nobody may use, agents that may use none, limits that no call reaches,
// and rows of a pattern that reach a tool which acts once.
func (l *linter) reaches() error {
	once := map[string]bool{}
	for _, e := range l.Tools.Entries() {
		once[e.Name()] = once[e.Name()] || e.Effect() == actsOnce
	}
	used := map[string]map[string]bool{} // tools by agent
	wide := map[int]string{}             // tools by the line of a row
	for _, at := range l.places {
		if used[at.agent] == nil {
			used[at.agent] = map[string]bool{}
		}
		for _, tool := range l.tools {
			if err := l.ctx.Err(); err != nil {
				return err
			}
			reach, err := l.judge.Reach(at.agent, at.workspace, at.project, tool)
			if err != nil {
				return err
			}
			if reach == policy.Never {
				continue
			}
			used[at.agent][tool] = true
			if once[tool] && reach != policy.Asks {
				l.noteWide(wide, l.Policy.Matching(at.agent, at.workspace, at.project, tool), tool)
			}
		}
	}
	for _, r := range l.Policy.Rows() {
		if tool, found := wide[r.Line]; found {
			l.row(Wide, r, "the pattern %s allows %s, which acts once: name such tools one by one, or ask people first", r.Tool, tool)
		}
	}
	l.unused(used)
	l.limits(used)
	return nil
}

// noteWide notes the rows of a pattern that allow a tool whatever its arguments are.
func (l *linter) noteWide(wide map[int]string, rows []*policy.Row, tool string) {
	for _, r := range rows {
		if _, known := wide[r.Line]; !known && r.Effect == policy.Allow && r.When == "" && strings.HasSuffix(r.Tool, "*") {
			wide[r.Line] = tool
		}
	}
}

// unused finds tools that nobody may use, and agents that may use none.
func (l *linter) unused(used map[string]map[string]bool) {
	file := l.Files[0]
	for _, tool := range l.tools {
		if !anybody(used, tool) {
			l.add(Nobody, file, 0, "no agent may ever use the tool %s", tool)
		}
	}
	for _, agent := range slices.Sorted(maps.Keys(used)) {
		if len(used[agent]) == 0 {
			l.add(IdleAgent, file, 0, "the agent %s may never use any tool", agent)
		}
	}
}

// anybody reports whether some agent may use a tool.
func anybody(used map[string]map[string]bool, tool string) bool {
	for _, tools := range used {
		if tools[tool] {
			return true
		}
	}
	return false
}

// limits finds limits that no call reaches. Of names that are not there the configuration warns.
func (l *linter) limits(used map[string]map[string]bool) {
	add := func(format string, args ...any) { l.add(IdleLimit, l.LimitsFile, 0, format, args...) }
	for _, agent := range slices.Sorted(maps.Keys(l.Limits.Agents)) {
		of := l.Limits.Agents[agent]
		if tools, listed := used[agent]; listed && len(tools) == 0 {
			add("agents.%s: the agent may never use any tool", agent)
			continue
		}
		own := of.Budget
		if own == nil {
			own = l.Limits.Default.Budget
		}
		for _, tool := range slices.Sorted(maps.Keys(of.Tools)) {
			_, registered := l.Tools.Lookup(tool)
			switch {
			case registered && used[agent] != nil && !used[agent][tool]:
				add("agents.%s.tools.%s: the agent may never use the tool", agent, tool)
			case own != nil && of.Tools[tool].Covers(*own):
				add("agents.%s.tools.%s: %v is no less than the %v of the agent for all tools, which is reached first", agent, tool,
					of.Tools[tool], *own)
			}
		}
	}
	for _, tool := range slices.Sorted(maps.Keys(l.Limits.Tools)) {
		if _, registered := l.Tools.Lookup(tool); registered && !anybody(used, tool) {
			add("tools.%s: no agent may ever use the tool", tool)
		}
	}
}
