package policy

import (
	"maps"
	"slices"

	"github.com/callgate/callgate/policy/internal/lexical"
)

// Reason says why a row has no effect.
type Reason int

// The reasons.
const (
	// Shadowed: another row, which has no condition, does the same for all that the row matches.
	Shadowed Reason = iota + 1
	// Overridden: a row that denies without a condition covers one that allows or asks.
	Overridden
	// DeniesNothing: no row permits anything that a deny row matches.
	DeniesNothing
)

// Superfluous is a row without which every call is permitted, denied and asked for as with it,
// whatever agents, projects and tools there are. That holds for each such row of a policy by
// itself, and for all of them together.
type Superfluous struct {
	Row    Row
	Reason Reason
	By     Row // the other row; the zero value for DeniesNothing
}

// Superfluous lists the rows without effect, in the order of their lines. It looks at pairs of
// rows: a row that only several others cover together is not listed.
func (p *Policy) Superfluous() []Superfluous {
	if p == nil || p.index == nil {
		return nil
	}
	o := newOverlaps(p)
	var found []Superfluous
	for _, r := range p.rules {
		if by, reason := p.index.covering(r); reason != 0 {
			found = append(found, Superfluous{Row: r.Row, Reason: reason, By: by.Row})
		} else if r.Effect == Deny && !o.permitted(r) {
			found = append(found, Superfluous{Row: r.Row, Reason: DeniesNothing})
		}
	}
	return found
}

// covering returns a row without a condition that matches whatever r matches, and makes it
// superfluous. A row of patterns is looked up as a request is: what matches the pattern matches
// all that it stands for, and no row is looked at twice for a name.
func (x *index) covering(r *rule) (by *rule, reason Reason) {
	rules, _ := x.candidates(r.Subject, r.domain, r.Tool)
	for _, s := range rules {
		switch {
		case s == r || s.condition != nil:
		case s.Effect == Deny && r.Effect != Deny:
			return s, Overridden
		case reason == 0 && (s.Effect == r.Effect && s.Rule == r.Rule || s.Effect == Ask && r.Effect == Allow):
			by, reason = s, Shadowed
		}
	}
	return by, reason
}

// overlaps finds whether a row that permits matches anything that a deny row matches.
type overlaps struct {
	x       *index
	members map[string][]string     // the direct members of each role, in any domain
	permits map[rowKey][]*rule      // by subject and domain, without the tool
	domains map[string][]domain     // that the file names, by workspace; "" has all
	known   map[membership][]string // the subjects of an agent in a domain
}

func newOverlaps(p *Policy) *overlaps {
	o := &overlaps{x: p.index, members: map[string][]string{}, permits: map[rowKey][]*rule{}, domains: map[string][]domain{},
		known: map[membership][]string{}}
	for _, g := range p.grants {
		o.members[g.role] = append(o.members[g.role], g.member)
	}
	for _, r := range p.rules {
		if r.Effect != Deny {
			key := rowKey{subject: r.Subject, domain: r.domain}
			o.permits[key] = append(o.permits[key], r)
		}
	}
	for d := range maps.Keys(p.index.domains) {
		o.domains[""] = append(o.domains[""], d)
		o.domains[d.workspace] = append(o.domains[d.workspace], d)
	}
	return o
}

// permitted reports whether a row permits, for some agent in some domain, a tool of a deny row.
// The domains that the file names stand for all: no row tells others apart.
func (o *overlaps) permitted(deny *rule) bool {
	var within []domain
	switch deny.domain {
	case everywhere():
		within = o.domains[""]
	case domain{deny.domain.workspace, "*"}:
		within = o.domains[deny.domain.workspace]
	default:
		within = []domain{deny.domain}
	}
	for _, agent := range o.agents(deny.Subject) {
		for _, at := range within {
			subjects := o.subjects(agent, at)
			if !slices.Contains(subjects, deny.Subject) {
				continue
			}
			patterns := at.patterns()
			for _, subject := range subjects {
				for _, where := range slices.Compact(patterns[:]) {
					if slices.ContainsFunc(o.permits[rowKey{subject: subject, domain: where}],
						func(s *rule) bool { return toolsOverlap(s.Tool, deny.Tool) }) {
						return true
					}
				}
			}
		}
	}
	return false
}

// subjects are the agent and its roles in a domain.
func (o *overlaps) subjects(agent string, at domain) []string {
	key := membership{agent, at}
	known, done := o.known[key]
	if !done {
		roles, _ := o.x.roles.of(agent, at)
		known = append(roles, agent)
		o.known[key] = known
	}
	return known
}

// agents are those that can be a subject: the agent itself, or all members of a role.
func (o *overlaps) agents(subject string) []string {
	if !isRole(subject) {
		return []string{subject}
	}
	var agents []string
	seen := map[string]bool{subject: true}
	for next := []string{subject}; len(next) > 0; next = next[1:] {
		for _, m := range o.members[next[0]] {
			if seen[m] {
				continue
			}
			seen[m] = true
			if isRole(m) {
				next = append(next, m)
			} else {
				agents = append(agents, m)
			}
		}
	}
	return agents
}

// toolsOverlap reports whether a tool can match both patterns.
func toolsOverlap(a, b string) bool { return lexical.Matches(a, b) || lexical.Matches(b, a) }
