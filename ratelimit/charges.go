package ratelimit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Kind is a class of budgets. Each kind has its own table of buckets, so that names
// invented in one cannot evict those of another.
type Kind uint8

const (
	Agents Kind = iota
	AgentTools
	Tools
	Projects
	Callers
	Kinds
)

// Name identifies a bucket within its kind.
type Name struct{ First, Second string }

// Charge is one token that a call must take from a budget.
type Charge struct {
	Kind      Kind
	Listed    bool // the limits hold the name, so it is not made up
	Own       bool // the budget is the name's own, not the default
	Name      Name
	Budget    Budget
	Undivided Budget // of which budget is one replica's share; zero: it is no share

	TableFull bool // there is no room for another bucket
}

// Charges are all that one call must take: at most one token of each kind, and a slot.
type Charges struct {
	List  [Callers]Charge
	Count int
	Agent string // whose slot
	Slots *int   // nil: not limited
}

func (d *Charges) Add(k Kind, listed, own bool, n Name, b Budget) {
	a := &d.List[d.Count]
	a.Kind, a.Listed, a.Own, a.Name, a.Budget = k, listed, own, n, b
	d.Count++
}

// validate refuses what no limiter can judge; ready says whether there is one.
func validate(ctx context.Context, ready bool, limits *Limits) error {
	switch {
	case !ready:
		return ErrNoLimiter
	case ctx == nil:
		return ErrNoContext
	case limits == nil:
		return ErrNoLimits
	}
	return ctx.Err()
}

// ChargeCall collects what a call charges. The error is for the operator.
func ChargeCall(ctx context.Context, d *Charges, ready bool, l *Limits, key Key) error {
	if err := validate(ctx, ready, l); err != nil {
		return err
	}
	if key.Agent == "" || key.Tool == "" {
		return ErrNoNames
	}
	collect(d, l, key)
	if !d.Valid() {
		return ErrInvalidLimits
	}
	return nil
}

// ChargeCaller is ChargeCall for a request of a caller, which charges nothing without a
// budget.
func ChargeCaller(ctx context.Context, d *Charges, ready bool, l *Limits, caller string) error {
	if err := validate(ctx, ready, l); err != nil {
		return err
	}
	if caller == "" {
		return ErrNoNames
	}
	if l.Caller == nil {
		return nil
	}
	d.Add(Callers, false, true, Name{BoundedName(caller), ""}, *l.Caller)
	if !d.Valid() {
		return ErrInvalidLimits
	}
	return nil
}

// collect adds the charges for a key.
func collect(d *Charges, l *Limits, key Key) {
	d.Agent = BoundedName(key.Agent)
	agent, listed := l.Agents[key.Agent]
	budget, own := agent.Budget, agent.Budget != nil
	if !own {
		budget = l.Default.Budget
	}
	if budget != nil {
		d.Add(Agents, listed, own, Name{d.Agent, ""}, *budget)
	}
	if b, ok := agent.Tools[key.Tool]; ok {
		d.Add(AgentTools, true, true, Name{d.Agent, key.Tool}, b)
	}
	if b, ok := l.Tools[key.Tool]; ok {
		d.Add(Tools, true, true, Name{key.Tool, ""}, b)
	}
	if b, ok := l.Projects[Project{key.Workspace, key.Project}]; ok {
		d.Add(Projects, true, true, Name{key.Workspace, key.Project}, b)
	}
	d.Slots = agent.Concurrency
	if d.Slots == nil {
		d.Slots = l.Default.Concurrency
	}
}

// Valid reports whether every budget can be counted.
func (d *Charges) Valid() bool {
	for i := range d.Count {
		if !d.List[i].Budget.Valid() {
			return false
		}
	}
	return d.Slots == nil || *d.Slots >= 1
}

// Divide cuts valid charges to the share that one replica may grant alone. The rate
// is divided exactly. A bucket holds at least one token, since a bucket that holds
// none would never grant; slots round down, even to none, since else they would add
// up to more than the limit.
func (d *Charges) Divide(replicas int) {
	for i := range d.Count {
		a := &d.List[i]
		a.Undivided = a.Budget
		a.Budget.Rate.per *= time.Duration(replicas)
		a.Budget.Burst = max(1, a.Budget.Burst/replicas)
	}
	if d.Slots != nil {
		d.Slots = new(*d.Slots / replicas)
	}
}

// BoundedName keeps names of agents and callers short, since they may be invented and
// are kept in memory. A digest is longer than any name that is kept as it is, so it
// equals none of them.
func BoundedName(s string) string {
	if len(s) <= sha256.Size*2 {
		return s
	}
	return Digest(s)
}

func Digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// path is the key of the budget in the limits, for the operator. It contains only
// names that the limits contain.
func (a *Charge) path() string {
	switch a.Kind {
	case Agents:
		if !a.Own {
			return "default"
		}
		return "agents." + a.Name.First
	case AgentTools:
		return "agents." + a.Name.First + ".tools." + a.Name.Second
	case Tools:
		return "tools." + a.Name.First
	case Projects:
		return "projects." + a.Name.First + "/" + a.Name.Second
	}
	return "caller"
}
