package ratelimit

import (
	"fmt"
	"strings"
	"time"
)

// Allowance has the limits of one agent. A nil member is not limited.
type Allowance struct {
	Budget      *Budget
	Concurrency *int `key:"concurrency" of:"how many calls at the same time" range:"1..1000000"`
}

// Agent has the limits of a named agent. A nil member of its Allowance is that of the
// default.
type Agent struct {
	Allowance
	Tools map[string]Budget
}

// Project names a project of a workspace.
type Project struct{ Workspace, Name string }

// ParseProject reads "workspace/project". The error says what was found and
// what was expected.
func ParseProject(s string) (Project, error) {
	workspace, name, _ := strings.Cut(s, "/")
	p := Project{Workspace: workspace, Name: name}
	if fault := p.problem(); fault != "" {
		return Project{}, fmt.Errorf("found %q, expected %s", s, fault)
	}
	return p, nil
}

// String is "workspace/project".
func (p Project) String() string { return p.Workspace + "/" + p.Name }

// StoreLoss is the behavior of a limiter that replicas share while its store is away. The
// zero value refuses.
type StoreLoss string

const (
	LossRefuse StoreLoss = "refuse" // every call is limiter_unavailable
	LossLocal  StoreLoss = "local"  // each replica grants its share of every budget
)

// Limits are all budgets of one configuration. They must not change once they
// are in use. The zero value limits nothing; it is the operator's choice to
// state no limits, whereas a nil *Limits is refused.
type Limits struct {
	Caller   *Budget            `key:"caller"`
	Default  Allowance          `key:"default"`
	Agents   map[string]Agent   `key:"agents"`
	Tools    map[string]Budget  `key:"tools"`
	Projects map[Project]Budget `key:"projects"`
	// OnStoreLoss and Replicas concern limiters that replicas share. Replicas is
	// how many there are, at least 1.
	OnStoreLoss StoreLoss `key:"on_store_loss" of:"what happens while Redis is away" words:"local refuse"`
	Replicas    int       `key:"replicas" of:"how many gateways share the limits" range:"1..1000"`
	// Threads bounds what calls do in threads; nil bounds nothing. A limiter does not look at it: what keeps threads does.
	Threads *Threads `key:"threads"`
}

// Threads bounds what calls do in threads. What is 0 is not bounded.
type Threads struct {
	Calls int `key:"calls" of:"how many calls one thread may have" range:"1..1000000000"` // that are let through
	// threads of one caller, in whole minutes or hours
	New   Rate   `key:"new"`
	Equal *Equal `key:"equal"`
}

// Equal bounds equal calls of one thread.
type Equal struct {
	EqualCalls
	Within time.Duration         `key:"within" of:"how far back equal calls are looked for" range:"1s..7d"`
	Tools  map[string]EqualCalls `key:"tools"`
}

// EqualCalls is how many equal calls there may be, and how many equal results of them on end. What is 0 is not bounded.
type EqualCalls struct{ Calls, Outcomes int }

// Of is what bounds the equal calls of a tool. nil bounds none.
func (e *Equal) Of(tool string) EqualCalls {
	if e == nil {
		return EqualCalls{}
	}
	if own, ok := e.Tools[tool]; ok {
		return own
	}
	return e.EqualCalls
}
