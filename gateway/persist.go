package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// storeWait bounds how long a call that is about to be dispatched waits for the
// store.
const storeWait = 5 * time.Second

// persist stores the calls of a decision before the first is dispatched: all, or none, and
// then all of them end here.
func (d *Decision) persist(ctx context.Context, executions []*execution) *refusal.Error {
	bounded, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	for i, c := range executions {
		if c.opened || c.parsed.Kind != parser.Call {
			continue
		}
		if err := c.persist(bounded); err != nil {
			refused := refusal.From(refusal.Execute, err)
			for _, c := range executions[:i] {
				c.forget(ctx)
			}
			c.opened = true // the store may have taken this one, and not said so
			c.forget(ctx)
			d.endAll(refused)
			return refused
		}
	}
	return nil
}

// persist stores one call without an idempotency key.
func (c *execution) persist(ctx context.Context) (err error) {
	if c.answers != nil {
		return errors.New("a call that answers a question has no key")
	}
	prior, err := c.openInStore(ctx, "")
	if err == nil && prior != nil {
		err = refuseUnsaved(ctx, errors.New("the store knows the id of a new call"))
	}
	return err
}

// openInStore stores the call, or returns the earlier call that has its key.
func (c *execution) openInStore(ctx context.Context, key string) (prior *storedCall, err error) {
	start := c.trace.start()
	call := store.Call{ID: c.id, Scope: c.storeScope(), Key: key, Digest: c.idempotencyDigest()}
	found, err := ask(c.kernel.deps.Store, func(s Store) (*store.Call, error) { return s.Open(ctx, call) })
	c.trace.storeStep(ctx, start, err)
	if err != nil {
		return nil, refuseUnsaved(ctx, err)
	}
	if c.opened = found == nil; c.opened {
		return nil, nil
	}
	return newStoredCall(*found), nil
}

// markDispatched stores durably that the tool is about to be called. With an error the tool
// must not be called. A call that brings answers is stored with the effect once: its
// answers are not stored, so it cannot be dispatched again.
func (c *execution) markDispatched(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	effect := c.tool.Effect()
	if c.mayBringAnswers() {
		effect = "once"
	}
	start := c.trace.start()
	task := store.Task{
		Tool: c.tool.Name(), Version: c.tool.Version(), Effect: effect, Agent: c.subject.Agent, Arguments: c.parsed.Arguments,
		Caller: c.caller(), RequestID: c.request.ID, Trace: c.request.TraceID, Thread: c.request.Thread,
		Input: c.inputDigest(), Config: c.config.Digest,
	}
	err := tell(c.kernel.deps.Store, func(s Store) error { return s.Dispatch(ctx, c.id, task) })
	c.trace.storeStep(ctx, start, err)
	if err != nil {
		return refuseUnsaved(ctx, err)
	}
	c.opened = false
	return nil
}

// forget removes a call that is not dispatched. An error does not matter: the call has
// ended as refused.
func (c *execution) forget(ctx context.Context) {
	if !c.opened {
		return
	}
	c.opened = false
	// The caller may have left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	_ = tell(c.kernel.deps.Store, func(s Store) error { return s.Settle(ctx, c.id) })
}
