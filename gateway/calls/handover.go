package calls

import (
	"context"
	"net/http"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/execution"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// maxHandedOver bounds the decisions that were handed over and whose outcomes are not
// recorded yet.
const maxHandedOver = 256

// maxGiven bounds the calls of models that were handed over and are remembered for the hooks of their applications, over all callers.
const maxGiven = 1 << 14

// HandOver ends the calls of a decision of ModeEnforce, which the application runs, and
// releases it. A decision is handed over once. Its outcomes are only call ids, and are
// recorded in the background: the caller does not wait, since the decision is durable
// already. If too many are not recorded yet, it is refused.
func (e *Executor) HandOver(ctx context.Context, d *gateway.Decision) []Outcome {
	defer d.Release()
	e.approvals.Ask(ctx, d)
	approved, refused := e.door.Approve(d, gateway.ModeEnforce)
	if refused == nil {
		refused = e.handOver(ctx, approved)
	}
	return execution.Outcomes(d, refused, func(i int) Outcome { return Outcome{CallID: approved[i].Call().ID(), Status: http.StatusOK} })
}

// CallOff ends the calls of a decision of a mode that is not acted on any more, for a reason that
// is recorded as the outcome of each, and releases it.
func (e *Executor) CallOff(d *gateway.Decision, mode gateway.Mode, why *refusal.Error) []Outcome {
	defer d.Release()
	approved, refused := e.door.Approve(d, mode)
	if refused == nil {
		execution.EndAll(approved, why)
		refused = why
	}
	return execution.Outcomes(d, refused, nil)
}

// handOver records the outcomes of a decision in the background, or returns an error.
func (e *Executor) handOver(ctx context.Context, approved []gateway.Approved) *refusal.Error {
	var records []audit.Record
	for _, a := range approved {
		if c := a.Call(); c != nil {
			if err := c.Stopped(); err != nil {
				refused := refusal.From(refusal.Permission, err)
				execution.EndAll(approved, refused)
				return refused
			}
			r := c.Outcome(audit.ToolCall)
			r.Outcome = audit.HandedOver
			records = append(records, r)
		}
	}
	if len(records) == 0 {
		return nil
	}
	if err := e.handOvers.Acquire(ctx); err != nil {
		refused := refusal.From(refusal.Log, refusal.AsCanceled(ctx, refusal.Log, refuse.Unrecorded(err)))
		execution.EndAll(approved, refused)
		return refused
	}
	// Last: an approval is used up only where the calls are handed over.
	if refused := e.useApprovals(ctx, approved); refused != nil {
		e.handOvers.Release()
		execution.EndAll(approved, refused)
		return refused
	}
	e.journal.Later(e.handOvers.Release, records...)
	for _, a := range approved {
		if c := a.Call(); c != nil {
			c.FinishTrace(gateway.VerdictCall, nil, audit.HandedOver, 0, nil)
			if key, g, ok := c.Given(); ok {
				e.given.Put(key, g)
			}
		}
	}
	return nil
}

// TakeGiven looks for the call of a model that was handed over under an id, where the hook of its application asks about it:
// the call was judged, counted and recorded then. stands and changed are as gateway.Admission.Stands reports them. A call that
// stands is forgotten: each counts for one question.
func (e *Executor) TakeGiven(ctx context.Context, a *gateway.Admission, call gateway.NativeCall) (g gateway.Given, stands, changed bool) {
	key, ok := a.GivenKey(call.ID)
	if ok {
		g, ok = e.given.Get(key)
	}
	if !ok {
		return g, false, false
	}
	if stands, changed = a.Stands(ctx, &g, call); stands {
		e.given.Delete(key)
	}
	return g, stands, changed
}

// useApprovals uses up the approvals of calls that are handed over, each in the transition in
// which the store takes the call as dispatched: an approval that another call has used, or that
// was revoked, refuses it. The store keeps such a call as one that has ended without a result.
func (e *Executor) useApprovals(ctx context.Context, approved []gateway.Approved) *refusal.Error {
	ctx = context.WithoutCancel(ctx)
	for _, a := range approved {
		if a.Call() == nil || len(a.Call().Using()) == 0 {
			continue
		}
		c := e.executions.New(a.Call())
		err := c.Persist(ctx)
		if err == nil {
			err = c.MarkDispatched(ctx)
		}
		if err != nil {
			c.Forget(ctx)
			return refusal.From(refusal.Execute, err)
		}
		// Nothing else becomes of it here.
		e.journal.Go(func() { e.executions.CloseStored(c.ID(), store.Answer{Status: http.StatusOK}) })
	}
	return nil
}
