package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/similar"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/condition"
)

// configured holds the agents, tools and domains that the rest of the configuration names.
type configured struct {
	agents, tools map[string]bool
	prefixes      map[string]bool // of tools: "web" for web.search
	domains       map[domain]bool // exact, and workspace/* where it has a project

	suggest similar.Suggester
}

// maxHints bounds the hints at near names of one load.
const maxHints = 50

func newConfigured(tools []condition.Tool, workspaces Workspaces) configured {
	k := configured{
		agents: map[string]bool{}, tools: map[string]bool{}, prefixes: map[string]bool{}, domains: map[domain]bool{},
		suggest: similar.Suggester{Left: maxHints},
	}
	for _, t := range tools {
		k.tools[t.Name] = true
		for i := range len(t.Name) {
			if t.Name[i] == '.' {
				k.prefixes[t.Name[:i]] = true
			}
		}
	}
	for workspace, w := range workspaces {
		for project, p := range w.Projects {
			k.domains[domain{workspace, project}] = true
			k.domains[domain{workspace, "*"}] = true
			k.domains[everywhere()] = true
			for _, agent := range p.Agents {
				k.agents[agent] = true
			}
		}
	}
	return k
}

func (k configured) tool(pattern string) bool {
	if pattern == "*" {
		return len(k.tools) > 0
	}
	if prefix, found := strings.CutSuffix(pattern, ".*"); found {
		return k.prefixes[prefix]
	}
	return k.tools[pattern]
}

// nearAgent, nearDomain and nearTool hint at what was meant.
func (k *configured) nearAgent(agent string) string {
	return k.suggest.DidYouMean(agent, slices.Sorted(maps.Keys(k.agents)))
}

func (k *configured) nearDomain(domain string) string {
	var names []string
	for d := range k.domains {
		names = append(names, d.String())
	}
	slices.Sort(names)
	return k.suggest.DidYouMean(domain, names)
}

func (k *configured) nearTool(pattern string) string {
	names := slices.Sorted(maps.Keys(k.tools))
	if strings.HasSuffix(pattern, ".*") {
		names = nil
		for prefix := range k.prefixes {
			names = append(names, prefix+".*")
		}
		slices.Sort(names)
	}
	return k.suggest.DidYouMean(pattern, names)
}

// unusedRules warns of rows that can match nothing.
func (p *Policy) unusedRules(file string, tools []condition.Tool, workspaces Workspaces) []Warning {
	k := newConfigured(tools, workspaces)
	var warnings []Warning
	warn := func(line int, format string, args ...any) {
		warnings = append(warnings, Warning{File: file, Line: line, Kind: Idle, Message: fmt.Sprintf(format, args...)})
	}
	granted, used := map[string]bool{}, map[string]bool{}
	warnOfSubject := func(line int, subject, outcome string) {
		switch {
		case isRole(subject) && !granted[subject]:
			warn(line, "no g row grants %s, so this row %s", parser.Quote(subject), outcome)
			warnings[len(warnings)-1].Kind = NoMembers
		case !isRole(subject) && !k.agents[subject]:
			warn(line, "no project lists an agent %s, so this row %s%s", parser.Quote(subject), outcome, k.nearAgent(subject))
		}
	}
	for _, g := range p.grants {
		granted[g.role] = true
		if isRole(g.member) {
			used[g.member] = true
		}
	}
	for _, r := range p.rules {
		used[r.Subject] = true
		warnOfSubject(r.Line, r.Subject, "matches nothing")
		if !k.domains[r.domain] {
			warn(r.Line, "no project matches the domain %s, so this row matches nothing%s", parser.Quote(r.Domain), k.nearDomain(r.Domain))
		}
		if !k.tool(r.Tool) {
			warn(r.Line, "no tool matches %s, so this row matches nothing%s", parser.Quote(r.Tool), k.nearTool(r.Tool))
			warnings[len(warnings)-1].UnknownTool = true
		}
	}
	for _, g := range p.grants {
		warnOfSubject(g.line, g.member, "gives nothing")
		if !used[g.role] {
			warn(g.line, "no p row names %s, so this row gives nothing", parser.Quote(g.role))
		}
		if !k.domains[g.domain] {
			warn(g.line, "no project matches the domain %s, so this row gives nothing%s", parser.Quote(g.domainText),
				k.nearDomain(g.domainText))
		}
	}
	return warnings
}

func sortWarnings(ws []Warning) {
	slices.SortStableFunc(ws, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Message, b.Message))
	})
}
