package ratelimit

import (
	"fmt"
	"strings"
	"time"
)

// Allowance has the limits of one agent. A nil member is not limited.
type Allowance struct {
	Budget      *Budget
	Concurrency *int // calls at the same time
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
type StoreLoss int

const (
	LossRefuse StoreLoss = iota // every call is limiter_unavailable
	LossLocal                   // each replica grants its share of every budget
)

// ParseStoreLoss reads "refuse" or "local". The error says what was found and
// what was expected.
func ParseStoreLoss(s string) (StoreLoss, error) {
	switch s {
	case "refuse":
		return LossRefuse, nil
	case "local":
		return LossLocal, nil
	}
	return LossRefuse, fmt.Errorf("found %q, expected local or refuse", s)
}

// Limits are all budgets of one configuration. They must not change once they
// are in use. The zero value limits nothing; it is the operator's choice to
// state no limits, whereas a nil *Limits is refused.
type Limits struct {
	Caller   *Budget
	Default  Allowance
	Agents   map[string]Agent
	Tools    map[string]Budget
	Projects map[Project]Budget
	// OnStoreLoss and Replicas concern limiters that replicas share. Replicas is
	// how many there are, at least 1.
	OnStoreLoss StoreLoss
	Replicas    int
	// Threads bounds what calls do in threads; nil bounds nothing. A limiter does not look at it: what keeps threads does.
	Threads *Threads
}

// Threads bounds what calls do in threads. What is 0 is not bounded.
type Threads struct {
	Calls int  // that are let through in one thread
	New   Rate // threads of one caller, in whole minutes or hours
	Equal *Equal
}

// Equal bounds equal calls of one thread.
type Equal struct {
	EqualCalls
	Within time.Duration // how far back is looked
	Tools  map[string]EqualCalls
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
