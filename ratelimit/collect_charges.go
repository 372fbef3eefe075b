package ratelimit

import (
	"context"

	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// validate refuses what no limiter can judge; ready says whether there is one.
func validate(ctx context.Context, ready bool, limits *Limits) error {
	switch {
	case !ready:
		return charge.ErrNoLimiter
	case ctx == nil:
		return charge.ErrNoContext
	case limits == nil:
		return charge.ErrNoLimits
	}
	return ctx.Err()
}

// ChargeCall collects what a call charges. The error is for the operator.
func ChargeCall(ctx context.Context, d *charge.Charges, ready bool, l *Limits, key Key) error {
	if err := validate(ctx, ready, l); err != nil {
		return err
	}
	if key.Agent == "" || key.Tool == "" {
		return charge.ErrNoNames
	}
	collect(d, l, key)
	if !d.Valid() {
		return charge.ErrInvalidLimits
	}
	return nil
}

// ChargeCaller is ChargeCall for a request of a caller, which charges nothing without a
// budget.
func ChargeCaller(ctx context.Context, d *charge.Charges, ready bool, l *Limits, caller string) error {
	if err := validate(ctx, ready, l); err != nil {
		return err
	}
	if caller == "" {
		return charge.ErrNoNames
	}
	if l.Caller == nil {
		return nil
	}
	d.Add(charge.Callers, false, true, charge.Name{First: charge.BoundedName(caller)}, *l.Caller)
	if !d.Valid() {
		return charge.ErrInvalidLimits
	}
	return nil
}

// collect adds the charges for a key.
func collect(d *charge.Charges, l *Limits, key Key) {
	d.Agent = charge.BoundedName(key.Agent)
	agent, listed := l.Agents[key.Agent]
	d.Slots = agent.Concurrency
	if d.Slots == nil {
		d.Slots = l.Default.Concurrency
	}
	if key.Paid {
		return
	}
	budget, own := agent.Budget, agent.Budget != nil
	if !own {
		budget = l.Default.Budget
	}
	if budget != nil {
		d.Add(charge.Agents, listed, own, charge.Name{First: d.Agent}, *budget)
	}
	if b, ok := agent.Tools[key.Tool]; ok {
		d.Add(charge.AgentTools, true, true, charge.Name{First: d.Agent, Second: key.Tool}, b)
	}
	if b, ok := l.Tools[key.Tool]; ok {
		d.Add(charge.Tools, true, true, charge.Name{First: key.Tool}, b)
	}
	if b, ok := l.Projects[Project{key.Workspace, key.Project}]; ok {
		d.Add(charge.Projects, true, true, charge.Name{First: key.Workspace, Second: key.Project}, b)
	}
}
