package calls

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// markPending stores that the tool answers later. If the store fails, that is tried again
// in the background; until then the call looks like a running one.
func (c *execution) markPending(ctx context.Context, output tool.Result, start time.Time) Outcome {
	until := output.Until
	if until.IsZero() {
		until = start.Add(c.Tool().SharedRun().Timeout)
	}
	taken := c.Trace().Start()
	c.Trace().Add(string(refusal.Execute), start, taken, nil)
	err := c.storePending(ctx, until)
	c.Trace().StoreStep(ctx, taken, err)
	if errors.Is(err, store.ErrEnded) { // the answer came first
		call, err := c.executor.calls.Get(context.WithoutCancel(ctx), c.ID(), store.OfAnyone())
		if err == nil && call.Step == store.Ended {
			return c.priorOutcome(context.WithoutCancel(ctx), call)
		}
	} else if err != nil {
		c.executor.journal.Go(func() {
			for err := err; notStored(err); err = c.storePending(ctx, until) {
				time.Sleep(journal.RetryInterval)
			}
		})
	}
	return c.pendingOutcome(start, until)
}

func (c *execution) storePending(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateway.StoreWait)
	defer cancel()
	return c.executor.calls.Update(ctx, c.ID(), store.Defer{Until: until})
}

// notStored reports whether an error is a failure of the store, not an answer about the call.
func notStored(err error) bool {
	return err != nil && !errors.Is(err, store.ErrEnded) && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDispatched) && !errors.Is(err, store.ErrNotOwner)
}

// refuseNotWaiting refuses a message of a tool about a call that does not wait for it. The
// reason is for the operator alone.
func refuseNotWaiting(why string) *refusal.Error {
	return refusal.New(refusal.NotFound, "There is no such call that waits for an answer.").WithCause(errors.New(why))
}

// expire ends a call whose tool has not answered in time, unless it is being ended already.
func (e *Executor) expire(ctx context.Context, call *stored.Call) {
	if c := e.restore(call); e.endings.begin(c) {
		c.expire(ctx)
	}
}

// expire reports whether it has ended the call itself.
func (c *execution) expire(ctx context.Context) bool {
	c.expired = true
	o := c.finish(ctx, tool.Result{}, refuse.Timeout(c.WrittenName(), c.stored.Task.Effect), c.Started())
	return !c.endedByOther && !o.Pending
}

// endings are the waiting calls that this process is ending. One goroutine at a time ends
// each, however often that is requested while the store is unreachable. The zero value is
// empty.
type endings struct {
	mu   sync.Mutex
	byID map[string]bool
}

// begin marks a call as being ended, until the store has confirmed it. It is false where
// the call is marked already.
func (e *endings) begin(c *execution) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byID[c.ID()] {
		return false
	}
	if e.byID == nil {
		e.byID = map[string]bool{}
	}
	e.byID[c.ID()] = true
	c.onEnded = func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.byID, c.ID())
	}
	return true
}
