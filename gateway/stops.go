package gateway

import (
	"context"
	"errors"
	"slices"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// stops are what operators have stopped.
type stops struct {
	list    []store.Stop
	unknown bool // nobody knows what else they have
}

// Stop sets what operators have stopped: no call, and no request to a model, that one of the stops
// covers begins from now on. It replaces the former list, and outlives configurations. Where it is not
// known what operators have stopped, everything is refused.
func (k *Kernel) Stop(list []store.Stop, known bool) {
	now := k.deps.Now()
	active := slices.DeleteFunc(slices.Clone(list), func(s store.Stop) bool { return !s.Active(now) })
	if len(active) == 0 && known {
		k.stops.Store(nil)
		return
	}
	k.stops.Store(&stops{active, !known})
}

// stopped returns the refusal of what operators have stopped, or nil.
func (k *Kernel) stopped(target *store.StopTarget) error {
	stops := k.stops.Load()
	if stops == nil {
		return nil
	}
	now := k.deps.Now()
	for i := range stops.list {
		if s := &stops.list[i]; s.Active(now) && s.Covers(target) {
			return refuse.Stopped().WithCause(errors.New(s.ID))
		}
	}
	if stops.unknown {
		return refuse.StopsUnknown()
	}
	return nil
}

// checkStops is the first step of the stage permission: operators have not stopped the call. It comes before
// the tool is looked up: nobody is to correct a name, and to ask a model again, for what is stopped.
func checkStops(_ context.Context, c *Call) error { return c.Stopped() }

// mayBeStopped reports whether operators have stopped anything.
func mayBeStopped(c *Call) bool { return c.kernel.stops.Load() != nil }

// Stopped returns the refusal of a call that operators have stopped since it was judged, or nil. The
// error is a *refusal.Error.
func (c *Call) Stopped() error {
	if !mayBeStopped(c) {
		return nil
	}
	target := store.StopTarget{Scope: c.storeScope(), Agent: c.subject.Agent, Tool: c.ToolName(), Thread: c.request.Thread,
		Ancestors: c.request.Ancestors}
	if c.held.stored != nil {
		target.Scope = c.held.stored.Scope
	}
	return c.kernel.stopped(&target)
}

// Stopped refuses the next request of the admission to a model where operators have stopped it, and
// writes that down. The error is a *refusal.Error.
func (a *Admission) Stopped(ctx context.Context) error {
	if a.kernel == nil {
		return refuse.NotAdmitted()
	}
	err := a.kernel.stopped(a.stopTarget(""))
	if err == nil {
		return nil
	}
	return a.Open(ctx, ModeCall, Input{}).Refuse(ctx, refusal.From(refusal.Permission, err)).Refusal()
}

// StopsTool reports whether operators have stopped calls of a tool by the admission.
func (a *Admission) StopsTool(tool string) bool {
	return a.kernel == nil || a.kernel.stopped(a.stopTarget(tool)) != nil
}

func (a *Admission) stopTarget(tool string) *store.StopTarget {
	return &store.StopTarget{
		Scope: store.Scope{Principal: a.principal, Workspace: a.request.Workspace, Project: a.request.Project},
		Agent: a.request.Agent, Tool: tool, Thread: a.request.Thread, Ancestors: a.request.Ancestors,
	}
}
