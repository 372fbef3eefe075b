package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// keepWait bounds how long a call that is about to be dispatched waits for the
// store.
const keepWait = 5 * time.Second

// keep notes the calls of a decision before the first is dispatched. Where one
// cannot be kept, none is, and all of them end here.
func (d *Decision) keep(ctx context.Context) *refusal.Error {
	bounded, cancel := context.WithTimeout(ctx, keepWait)
	defer cancel()
	for i, c := range d.calls {
		if c.kept || c.parsed.Kind != parser.Call {
			continue
		}
		if err := c.keep(bounded); err != nil {
			refused := refusal.From(refusal.Execute, err)
			for _, c := range d.calls[:i] {
				c.drop(ctx)
			}
			c.kept = true // the store may have taken this one, and not said so
			c.drop(ctx)
			d.end(refused)
			return refused
		}
	}
	return nil
}

// keep notes one call that no key has started.
func (c *call) keep(ctx context.Context) (err error) {
	if c.given != nil {
		return errors.New("a call that answers a question has no key")
	}
	prior, err := c.noteCall(ctx, "")
	if err == nil && prior != nil {
		err = noStore(ctx, errors.New("the store knows the id of a new call"))
	}
	return err
}

// noteCall asks the store to keep the call, and returns the one that its key has
// started before.
func (c *call) noteCall(ctx context.Context, key string) (prior *store.Call, err error) {
	start := c.trace.start()
	prior, err = c.kernel.store.Open(ctx, store.Call{ID: c.id, Scope: c.scope(), Key: key, Digest: c.asked()})
	c.trace.stored(ctx, start, err)
	if err != nil {
		return nil, noStore(ctx, err)
	}
	c.kept = prior == nil
	return prior, nil
}

// claim makes it durable that the tool is about to be called. With an error it
// must not be. A call that brings answers is kept as one that acts once, whatever its
// tool does: its answers are not kept, and without them it is not the same call.
func (c *call) claim(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keepWait)
	defer cancel()
	effect := c.tool.Effect()
	if c.brings() {
		effect = "once"
	}
	start := c.trace.start()
	err := c.kernel.store.Dispatch(ctx, c.id, store.Task{
		Tool: c.tool.Name(), Version: c.tool.Version(), Effect: effect, Agent: c.subject.Agent, Arguments: c.parsed.Arguments,
		Caller: c.caller(), RequestID: c.request.ID, Trace: c.request.TraceID, Thread: c.request.Thread,
		Input: c.inputDigest(), Config: c.state.Digest,
	})
	c.trace.stored(ctx, start, err)
	if err != nil {
		return noStore(ctx, err)
	}
	c.kept = false
	return nil
}

// drop forgets a call that is not dispatched. It has ended as one that was
// refused, whether the store forgets it or not.
func (c *call) drop(ctx context.Context) {
	if !c.kept {
		return
	}
	c.kept = false
	// Whoever asked may have left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepWait)
	defer cancel()
	_ = c.kernel.store.Drop(ctx, c.id)
}
