package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/parser"
)

// maxChain is the number of steps from an agent to the furthest of its roles.
// casbin.Enforcer follows this many and silently ignores the rest.
const maxChain = 10

// membership is the key under which the index holds grants.
type membership struct {
	member string
	domain domain
}

// roles answers which roles an agent has in a domain.
type roles map[membership][]*grant

// of lists the agent's roles in a domain, inherited ones included, and the
// grants that give them, in the order of discovery.
func (r roles) of(agent string, at domain) (names []string, by []*grant) {
	seen := map[string]bool{agent: true}
	for next := []string{agent}; len(next) > 0; next = next[1:] {
		patterns := at.patterns()
		for _, where := range slices.Compact(patterns[:]) {
			for _, g := range r[membership{next[0], where}] {
				by = append(by, g)
				if !seen[g.role] {
					seen[g.role] = true
					names = append(names, g.role)
					next = append(next, g.role)
				}
			}
		}
	}
	return names, by
}

// checkRoles reports cycles and overlong chains of roles. Grants meet where
// their domains overlap, so each domain that is written down is checked with
// the wider patterns that cover it.
func checkRoles(grants []*grant, f *faults) {
	byPlace := map[domain][]*grant{}
	for _, g := range grants {
		if isRole(g.member) {
			byPlace[g.domain] = append(byPlace[g.domain], g)
		}
	}
	reported := map[*grant]bool{}
	places := slices.SortedFunc(maps.Keys(byPlace), func(a, b domain) int {
		return cmp.Or(strings.Compare(a.workspace, b.workspace), strings.Compare(a.project, b.project))
	})
	for _, at := range places {
		members := map[string][]*grant{}
		var starts []string
		covering := at.patterns()
		for _, where := range slices.Compact(covering[:]) {
			for _, g := range byPlace[where] {
				if len(members[g.member]) == 0 {
					starts = append(starts, g.member)
				}
				members[g.member] = append(members[g.member], g)
			}
		}
		walkRoles(starts, members, at, reported, f)
	}
}

// walkRoles measures the longest chain from every role of one domain.
func walkRoles(starts []string, members map[string][]*grant, at domain, reported map[*grant]bool, f *faults) {
	const onPath = -1
	length := map[string]int{}
	var walk func(role string) int
	walk = func(role string) int {
		length[role] = onPath
		longest := 0
		for _, g := range members[role] {
			steps, known := length[g.role]
			switch {
			case known && steps == onPath:
				if !reported[g] {
					reported[g] = true
					f.add(g.line, 0, fmt.Sprintf("a cycle of roles in %s: %s leads back to %s", at, parser.Quote(g.role),
						parser.Quote(g.member)), "roles that end")
				}
				continue
			case !known:
				steps = walk(g.role)
			}
			if steps+1 >= maxChain && !reported[g] {
				reported[g] = true
				f.add(g.line, 0, fmt.Sprintf("a chain of %d roles in %s, from %s", steps+2, at, parser.Quote(g.member)),
					fmt.Sprintf("at most %d", maxChain))
			}
			longest = max(longest, steps+1)
		}
		length[role] = longest
		return longest
	}
	for _, role := range starts {
		if _, known := length[role]; !known {
			walk(role)
		}
	}
}
