package compare

import (
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/policy"
)

// region is a set of calls that a changed row or grant can reach, by the patterns of a row.
type region struct{ domain, tool string }

// changes knows the calls that two policies can decide differently.
type changes struct {
	regions map[string]map[region]bool // by the subject of rows and the member of grants
	uses    map[string][]string        // roles by member, under either policy, in any domain
}

// change is a row or grant without its line.
type change struct{ subject, domain, tool, when, effect, rule string }

func newChanges(a, b file) *changes {
	c := &changes{regions: map[string]map[region]bool{}, uses: map[string][]string{}}
	for row := range changedRows(a.rows, b.rows) {
		c.add(row.subject, region{row.domain, row.tool})
	}
	for _, g := range slices.Concat(a.grants, b.grants) {
		if !slices.Contains(c.uses[g.Member], g.Role) {
			c.uses[g.Member] = append(c.uses[g.Member], g.Role)
		}
	}
	c.addGrants(changedGrants(a.grants, b.grants), a, b)
	return c
}

// file holds the rows of a policy, which are copied once.
type file struct {
	rows   []policy.Row
	grants []policy.Grant
}

func fileOf(p *policy.Policy) file { return file{p.Rows(), p.Grants()} }

func (c *changes) add(subject string, r region) {
	if c.regions[subject] == nil {
		c.regions[subject] = map[region]bool{}
	}
	c.regions[subject][r] = true
}

// addGrants adds the calls that the rows of a changed grant's roles can reach.
func (c *changes) addGrants(changed map[policy.Grant]bool, files ...file) {
	if len(changed) == 0 {
		return
	}
	rows := map[string][]policy.Row{}
	for _, f := range files {
		for _, r := range f.rows {
			if isRole(r.Subject) {
				rows[r.Subject] = append(rows[r.Subject], r)
			}
		}
	}
	for g := range changed {
		for _, role := range c.subjects(g.Role) {
			for _, r := range rows[role] {
				if domain, meet := intersect(g.Domain, r.Domain); meet {
					c.add(g.Member, region{domain, r.Tool})
				}
			}
		}
	}
}

// subjects are a name and the roles that it may have, under either policy, in any domain.
func (c *changes) subjects(name string) []string {
	found := []string{name}
	seen := map[string]bool{name: true}
	for i := 0; i < len(found); i++ {
		for _, role := range c.uses[found[i]] {
			if !seen[role] {
				seen[role] = true
				found = append(found, role)
			}
		}
	}
	return found
}

// each calls yield once with every call of an agent that a change can reach.
func (c *changes) each(n *names, agent string, yield func(place, string)) {
	tools := map[string]map[string]bool{} // patterns of tools by domain
	for _, subject := range c.subjects(agent) {
		for r := range c.regions[subject] {
			if tools[r.domain] == nil {
				tools[r.domain] = map[string]bool{}
			}
			tools[r.domain][r.tool] = true
		}
	}
	seen := map[place]bool{}
	for _, domain := range slices.Sorted(maps.Keys(tools)) {
		for _, at := range n.places[domain] {
			if seen[at] {
				continue
			}
			seen[at] = true
			patterns := map[string]bool{}
			for _, pattern := range []string{at.String(), at.workspace + "/*", "*"} {
				maps.Copy(patterns, tools[pattern])
			}
			eachTool(n, patterns, func(tool string) { yield(at, tool) })
		}
	}
}

func eachTool(n *names, patterns map[string]bool, yield func(string)) {
	if patterns["*"] {
		patterns = map[string]bool{"*": true}
	}
	seen := map[string]bool{}
	for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
		for _, tool := range n.tools[pattern] {
			if len(patterns) > 1 && seen[tool] {
				continue
			}
			seen[tool] = true
			yield(tool)
		}
	}
}

// changedRows are the rows that one policy has and the other has not, wherever they stand.
func changedRows(a, b []policy.Row) map[change]bool {
	// Most edits are of few rows, so most rows stand at the beginning and the end of both.
	for len(a) > 0 && len(b) > 0 && changeOf(a[0]) == changeOf(b[0]) {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && changeOf(a[len(a)-1]) == changeOf(b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	side := make(map[change]uint8, len(a))
	for i, rows := range [][]policy.Row{a, b} {
		for _, r := range rows {
			side[changeOf(r)] |= 1 << i
		}
	}
	changed := map[change]bool{}
	for row, sides := range side {
		if sides != 3 {
			changed[row] = true
		}
	}
	return changed
}

func changeOf(r policy.Row) change {
	return change{r.Subject, r.Domain, r.Tool, r.When, string(r.Effect), r.Rule}
}

// changedGrants are likewise the g rows.
func changedGrants(a, b []policy.Grant) map[policy.Grant]bool {
	side := make(map[policy.Grant]uint8, len(a))
	for i, grants := range [][]policy.Grant{a, b} {
		for _, g := range grants {
			g.Line = 0
			side[g] |= 1 << i
		}
	}
	maps.DeleteFunc(side, func(_ policy.Grant, sides uint8) bool { return sides == 3 })
	changed := map[policy.Grant]bool{}
	for g := range side {
		changed[g] = true
	}
	return changed
}

// intersect is the pattern of the domains that two patterns match.
func intersect(a, b string) (string, bool) {
	switch {
	case a == b || b == "*":
		return a, true
	case a == "*":
		return b, true
	case covers(a, b):
		return b, true
	case covers(b, a):
		return a, true
	}
	return "", false
}

// covers reports whether workspace/* covers a domain.
func covers(pattern, domain string) bool {
	workspace, found := strings.CutSuffix(pattern, "/*")
	return found && strings.HasPrefix(domain, workspace+"/")
}
