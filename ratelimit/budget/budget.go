package budget

import (
	"strings"
	"sync"
	"time"
)

// Per says what a budget has a counter for.
type Per string

// The kinds of names that a budget is counted for.
const (
	PerAll       Per = "all"       // everything that it covers, together
	PerAgent     Per = "agent"     // each agent
	PerPrincipal Per = "principal" // each principal
	PerProject   Per = "project"   // each project of a workspace
)

// Budget bounds what the requests that it covers may take in one window. One of Tokens and Micros
// is at least 1; 0 is no bound. Amount is of both.
type Budget struct {
	Name string
	// Patterns of names, in which * stands for any text; none: all. Projects are
	// workspace/project.
	Agents, Principals, Projects, Models []string
	Per                                  Per
	Window                               Window
	Zone                                 *time.Location
	Limit                                Amount
}

// Scope is whose request it is, and for which model. Agent and Project may be empty.
type Scope struct{ Principal, Agent, Workspace, Project, Model string }

func (s *Scope) project() string { return s.Workspace + "/" + s.Project }

// covers reports whether a budget applies to a request. One that names no agent, or no project, may
// be for any of its principal's, so a budget of some applies to it.
func (b *Budget) covers(s *Scope) bool {
	return (s.Agent == "" || matches(b.Agents, s.Agent)) && matches(b.Principals, s.Principal) &&
		(s.Project == "" || matches(b.Projects, s.project())) && matches(b.Models, s.Model)
}

// CoversModel reports whether a budget covers requests for a model.
func (b *Budget) CoversModel(model string) bool { return matches(b.Models, model) }

// matches reports whether one of the patterns matches a name. No patterns match every name.
func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if Matches(p, name) {
			return true
		}
	}
	return len(patterns) == 0
}

// Matches reports whether a pattern matches a name: * stands for any text, everything else for
// itself. The time is bounded by the product of the lengths.
func Matches(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	for ok {
		var part string
		if part, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(name, part)
		}
		_, name, ok = strings.Cut(name, part)
	}
	return false
}

// MayMatch reports whether a pattern matches a name, or some name that a model's ID with a * at its end stands for.
func MayMatch(pattern, id string) bool {
	prefix, wildcard := strings.CutSuffix(id, "*")
	if !wildcard {
		return Matches(pattern, id)
	}
	first, _, star := strings.Cut(pattern, "*")
	return strings.HasPrefix(first, prefix) || star && strings.HasPrefix(prefix, first)
}

// subject is the name that a request is counted for; empty where it has none.
func (b *Budget) subject(s *Scope) string {
	switch b.Per {
	case PerAgent:
		return s.Agent
	case PerPrincipal:
		return s.Principal
	case PerProject:
		if s.Project != "" {
			return s.project()
		}
	}
	return ""
}

// Counter identifies a counter, in each window anew.
type Counter struct {
	Budget  string
	Per     Per
	Window  Window
	Zone    string
	Subject string
}

// Charge is a counter that a request is charged to, with its budget.
type Charge struct {
	Budget  *Budget
	Subject string
}

// Counter returns the identity of the counter.
func (c *Charge) Counter() Counter {
	b := c.Budget
	return Counter{Budget: b.Name, Per: b.Per, Window: b.Window, Zone: b.Zone.String(), Subject: c.Subject}
}

// ModelPrice is the price of the models that a pattern matches: a name, or a prefix before a
// trailing *.
type ModelPrice struct {
	Model string
	Price Price
}

// Set is the budgets of one configuration, and the prices. Its members are not changed once it is
// used. A nil Set has none.
type Set struct {
	Budgets  []Budget `key:"budgets"`
	Currency string
	Prices   []ModelPrice
	// BytesPerToken is how many bytes of a request are taken for one token of its input. At 1 no
	// text has more tokens than that.
	BytesPerToken int64 `key:"bytes_per_token" of:"how many bytes of a request are taken for one token of its input" range:"1..16"`
	// Replicas is the number of gateways of which each grants its part while the store that they
	// share is away; 0: nothing is granted then.
	Replicas int

	// known keeps what lookUp has found, so that a request costs the same however many budgets,
	// names and prices there are.
	mu    sync.RWMutex
	known map[Scope]found
}

// Covers reports whether a budget covers a request.
func (s *Set) Covers(of Scope) bool { return len(s.lookUp(of).charges) > 0 }

// Charges returns the charges of a request, which must not be changed; none: no budget covers it.
func (s *Set) Charges(of Scope) []Charge { return s.lookUp(of).charges }

// Price returns the price of a model: that of its name, else of the longest prefix.
func (s *Set) Price(model string) (Price, bool) {
	longest, price := -1, Price{}
	for i := range s.Prices {
		p := &s.Prices[i]
		prefix, every := strings.CutSuffix(p.Model, "*")
		switch {
		case p.Model == model:
			return p.Price, true
		case every && strings.HasPrefix(model, prefix) && len(prefix) > longest:
			longest, price = len(prefix), p.Price
		}
	}
	return price, longest >= 0
}
