package ratelimit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/invalid"
	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// Validate returns every error, in the order of the keys in Limits, names sorted; none
// means that the limits can be used. It does not check whether the agents, tools and
// projects exist.
func (l *Limits) Validate() []invalid.Field {
	var v validation
	if l == nil {
		v.add("found no limits, expected limits")
		return v.errors
	}
	v.budget(l.Caller, "caller")
	v.allowance(l.Default, "default")
	for _, name := range slices.Sorted(maps.Keys(l.Agents)) {
		agent := l.Agents[name]
		if name == "" || strings.Contains(name, "*") {
			v.add(fmt.Sprintf("found %q, expected an agent's name (no patterns; default is for the agents not named)", name),
				"agents", name)
		}
		v.allowance(agent.Allowance, "agents", name)
		v.tools(agent.Tools, "agents", name, "tools")
	}
	v.tools(l.Tools, "tools")
	byText := func(a, b Project) int { return strings.Compare(a.String(), b.String()) }
	for _, project := range slices.SortedFunc(maps.Keys(l.Projects), byText) {
		if fault := project.problem(); fault != "" {
			v.add(fmt.Sprintf("found %q, expected %s", project, fault), "projects", project.String())
		}
		budget := l.Projects[project]
		v.budget(&budget, "projects", project.String())
	}
	if l.OnStoreLoss != "" && l.OnStoreLoss != LossRefuse && l.OnStoreLoss != LossLocal {
		v.add("expected local or refuse", "on_store_loss")
	}
	v.count(l.Replicas, "replicas")
	if l.Threads != nil && l.Threads.Equal != nil {
		for _, name := range slices.Sorted(maps.Keys(l.Threads.Equal.Tools)) {
			v.tool(name, "threads", "equal", "tools")
		}
	}
	return v.errors
}

// validation collects errors.
type validation struct{ errors []invalid.Field }

func (v *validation) add(message string, path ...string) {
	v.errors = append(v.errors, invalid.Field{Path: path, Message: message})
}

func (v *validation) allowance(a Allowance, path ...string) {
	v.budget(a.Budget, path...)
	if a.Concurrency != nil {
		v.count(*a.Concurrency, appendKey(path, "concurrency")...)
	}
}

func (v *validation) tools(budgets map[string]Budget, path ...string) {
	for _, name := range slices.Sorted(maps.Keys(budgets)) {
		v.tool(name, path...)
		budget := budgets[name]
		v.budget(&budget, appendKey(path, name)...)
	}
}

func (v *validation) tool(name string, path ...string) {
	if !toolName(name) {
		v.add(fmt.Sprintf("found %q, expected a tool's name such as web.search (no patterns)", name), appendKey(path, name)...)
	}
}

func (v *validation) budget(b *Budget, path ...string) {
	if b == nil {
		return
	}
	if b.Rate == (Rate{}) {
		v.add("found no rate, expected one such as 5/s (a burst alone limits nothing)", appendKey(path, "rate")...)
	}
	v.count(b.Burst, appendKey(path, "burst")...)
}

func (v *validation) count(n int, path ...string) {
	if n < 1 || n > charge.MaxCount {
		v.add(fmt.Sprintf("found %d, expected a whole number from 1 to %d", n, charge.MaxCount), path...)
	}
}

// appendKey returns a copy of path with key: paths of siblings must not share memory.
func appendKey(path []string, key string) []string { return append(slices.Clip(path), key) }

// problem says what was expected instead of the project's name; "" if it is valid.
func (p Project) problem() string {
	if p.Workspace == "" || p.Name == "" || strings.Contains(p.Workspace, "/") || strings.Contains(p.Name, "/") {
		return "workspace/project"
	}
	if strings.Contains(p.Workspace, "*") || strings.Contains(p.Name, "*") {
		return "the name of one project (no patterns)"
	}
	return ""
}

// toolName follows the grammar of registry names:
// [A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*, at most 64 bytes. A budget under any
// other name would never apply, and nobody would notice.
func toolName(s string) bool {
	if len(s) > 64 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" {
			return false
		}
		for i := range len(part) {
			c := part[i]
			if !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
				return false
			}
		}
	}
	return true
}
