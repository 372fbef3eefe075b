package ratelimit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// kind is a class of budgets. Each kind has its own table of buckets, so that names
// invented in one cannot evict those of another.
type kind uint8

const (
	agents kind = iota
	agentTools
	tools
	projects
	callers
	kinds
)

// name identifies a bucket within its kind.
type name struct{ first, second string }

// charge is one token that a call must take from a budget.
type charge struct {
	kind      kind
	listed    bool // the limits hold the name, so it is not made up
	own       bool // the budget is the name's own, not the default
	name      name
	budget    Budget
	undivided Budget // of which budget is one replica's share; zero: it is no share

	tableFull bool // there is no room for another bucket
}

// charges are all that one call must take: at most one token of each kind, and a slot.
type charges struct {
	list  [callers]charge
	count int
	agent string // whose slot
	slots *int   // nil: not limited
}

func (d *charges) add(k kind, listed, own bool, n name, b Budget) {
	a := &d.list[d.count]
	a.kind, a.listed, a.own, a.name, a.budget = k, listed, own, n, b
	d.count++
}

// validate refuses what no limiter can judge; ready says whether there is one.
func validate(ctx context.Context, ready bool, limits *Limits) error {
	switch {
	case !ready:
		return errNoLimiter
	case ctx == nil:
		return errNoContext
	case limits == nil:
		return errNoLimits
	}
	return ctx.Err()
}

// chargeCall collects what a call charges. The error is for the operator.
func chargeCall(ctx context.Context, d *charges, ready bool, l *Limits, key Key) error {
	if err := validate(ctx, ready, l); err != nil {
		return err
	}
	if key.Agent == "" || key.Tool == "" {
		return errNoNames
	}
	collect(d, l, key)
	if !d.valid() {
		return errInvalidLimits
	}
	return nil
}

// chargeCaller is chargeCall for a request of a caller, which charges nothing without a
// budget.
func chargeCaller(ctx context.Context, d *charges, ready bool, l *Limits, caller string) error {
	if err := validate(ctx, ready, l); err != nil {
		return err
	}
	if caller == "" {
		return errNoNames
	}
	if l.Caller == nil {
		return nil
	}
	d.add(callers, false, true, name{boundedName(caller), ""}, *l.Caller)
	if !d.valid() {
		return errInvalidLimits
	}
	return nil
}

// collect adds the charges for a key.
func collect(d *charges, l *Limits, key Key) {
	d.agent = boundedName(key.Agent)
	agent, listed := l.Agents[key.Agent]
	budget, own := agent.Budget, agent.Budget != nil
	if !own {
		budget = l.Default.Budget
	}
	if budget != nil {
		d.add(agents, listed, own, name{d.agent, ""}, *budget)
	}
	if b, ok := agent.Tools[key.Tool]; ok {
		d.add(agentTools, true, true, name{d.agent, key.Tool}, b)
	}
	if b, ok := l.Tools[key.Tool]; ok {
		d.add(tools, true, true, name{key.Tool, ""}, b)
	}
	if b, ok := l.Projects[Project{key.Workspace, key.Project}]; ok {
		d.add(projects, true, true, name{key.Workspace, key.Project}, b)
	}
	d.slots = agent.Concurrency
	if d.slots == nil {
		d.slots = l.Default.Concurrency
	}
}

// valid reports whether every budget can be counted.
func (d *charges) valid() bool {
	for i := range d.count {
		if !d.list[i].budget.valid() {
			return false
		}
	}
	return d.slots == nil || *d.slots >= 1
}

// divide cuts valid charges to the share that one replica may grant alone. The rate
// is divided exactly. A bucket holds at least one token, since a bucket that holds
// none would never grant; slots round down, even to none, since else they would add
// up to more than the limit.
func (d *charges) divide(replicas int) {
	for i := range d.count {
		a := &d.list[i]
		a.undivided = a.budget
		a.budget.Rate.per *= time.Duration(replicas)
		a.budget.Burst = max(1, a.budget.Burst/replicas)
	}
	if d.slots != nil {
		d.slots = new(*d.slots / replicas)
	}
}

// boundedName keeps names of agents and callers short, since they may be invented and
// are kept in memory. A digest is longer than any name that is kept as it is, so it
// equals none of them.
func boundedName(s string) string {
	if len(s) <= sha256.Size*2 {
		return s
	}
	return digest(s)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// path is the key of the budget in the limits, for the operator. It contains only
// names that the limits contain.
func (a *charge) path() string {
	switch a.kind {
	case agents:
		if !a.own {
			return "default"
		}
		return "agents." + a.name.first
	case agentTools:
		return "agents." + a.name.first + ".tools." + a.name.second
	case tools:
		return "tools." + a.name.first
	case projects:
		return "projects." + a.name.first + "/" + a.name.second
	}
	return "caller"
}
