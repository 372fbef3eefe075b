package policy

import (
	"cmp"
	"slices"
	"strings"
)

// rowKey is the key under which the index holds a row.
type rowKey struct {
	subject string
	domain  domain
	tool    string
}

// class names a set of requests that no row of the policy tells apart but by
// its condition: the agent, the domain and the tool, each by its number, 0 for
// a domain or tool that only "*" covers. There are as many classes as the file
// can tell apart, however many names are asked for.
type class struct{ agent, domain, tool uint32 }

// index finds the rows that can reach a request without looking at the others.
type index struct {
	rules map[rowKey][]*rule
	roles roles

	agents     map[string]uint32 // agents named as subject or member
	domains    map[domain]uint32 // exact domains and workspace/* patterns
	tools      map[string]uint32 // exact names
	toolPrefix map[string]uint32 // "web" for web.*
}

func newIndex(rules []*rule, grants []*grant) *index {
	x := &index{
		rules: make(map[rowKey][]*rule, len(rules)), roles: roles{},
		agents: map[string]uint32{}, domains: map[domain]uint32{}, tools: map[string]uint32{}, toolPrefix: map[string]uint32{},
	}
	for _, r := range rules {
		key := rowKey{r.Subject, r.domain, r.Tool}
		x.rules[key] = append(x.rules[key], r)
		assignNumber(x.domains, r.domain)
		if !isRole(r.Subject) {
			assignNumber(x.agents, r.Subject)
		}
		if prefix, found := strings.CutSuffix(r.Tool, ".*"); found {
			assignNumber(x.toolPrefix, prefix)
		} else if r.Tool != "*" {
			assignNumber(x.tools, r.Tool)
		}
	}
	for _, g := range grants {
		key := membership{g.member, g.domain}
		x.roles[key] = append(x.roles[key], g)
		assignNumber(x.domains, g.domain)
		if !isRole(g.member) {
			assignNumber(x.agents, g.member)
		}
	}
	// A class of tools has one number, so the two tables must not share any.
	for prefix, n := range x.toolPrefix {
		x.toolPrefix[prefix] = n + uint32(len(x.tools))
	}
	return x
}

// assignNumber gives a key the next number, from 1.
func assignNumber[K comparable](m map[K]uint32, key K) {
	if _, known := m[key]; !known {
		m[key] = uint32(len(m) + 1)
	}
}

// classOf returns the request's class, with the domain that stands for it; ok
// is false when no row names the agent, so that nothing can match.
func (x *index) classOf(agent string, at domain, tool string) (c class, canonical domain, ok bool) {
	if c.agent, ok = x.agents[agent]; !ok {
		return class{}, domain{}, false
	}
	canonical = everywhere()
	if n, known := x.domains[at]; known {
		c.domain, canonical = n, at
	} else if n, known := x.domains[domain{at.workspace, "*"}]; known {
		c.domain, canonical = n, domain{at.workspace, "*"}
	}
	if n, known := x.tools[tool]; known {
		c.tool = n
		return c, canonical, true
	}
	for prefix := tool; ; {
		dot := strings.LastIndexByte(prefix, '.')
		if dot < 0 {
			return c, canonical, true
		}
		covers := dot+1 < len(tool)
		prefix = prefix[:dot]
		if n, known := x.toolPrefix[prefix]; known && covers {
			c.tool = n
			return c, canonical, true
		}
	}
}

// candidates lists the rows that match a request when conditions are ignored,
// in the order of their lines, and the grants that took part.
func (x *index) candidates(agent string, at domain, tool string) ([]*rule, []*grant) {
	roles, by := x.roles.of(agent, at)
	var found []*rule
	for _, subject := range append(roles, agent) {
		patterns := at.patterns()
		for _, where := range slices.Compact(patterns[:]) {
			eachToolPattern(tool, func(pattern string) {
				found = append(found, x.rules[rowKey{subject, where, pattern}]...)
			})
		}
	}
	slices.SortFunc(found, func(a, b *rule) int { return cmp.Compare(a.Line, b.Line) })
	return found, by
}

// eachToolPattern calls yield with every text that can stand in a row and
// match a tool: its name, PREFIX.* for each of its prefixes, and "*".
func eachToolPattern(tool string, yield func(string)) {
	yield(tool)
	for i := len(tool) - 2; i > 0; i-- {
		if tool[i] == '.' {
			yield(tool[:i+1] + "*")
		}
	}
	yield("*")
}
