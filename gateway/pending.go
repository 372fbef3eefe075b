package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// markPending stores that the tool answers later. If the store fails, that is tried again
// in the background; until then the call looks like a running one.
func (c *execution) markPending(ctx context.Context, output tool.Result, start time.Time) Outcome {
	until := output.Until
	if until.IsZero() {
		until = start.Add(c.tool.Run().Timeout)
	}
	taken := c.trace.start()
	c.trace.add(string(refusal.Execute), start, taken, nil)
	err := c.storePending(ctx, until)
	c.trace.storeStep(ctx, taken, err)
	if errors.Is(err, store.ErrEnded) { // the answer came first
		call, err := c.kernel.find(context.WithoutCancel(ctx), c.id)
		if err == nil && call.Step == store.Ended {
			return c.priorOutcome(context.WithoutCancel(ctx), call)
		}
	} else if err != nil {
		c.kernel.pending.run(func() {
			for err := err; notStored(err); err = c.storePending(ctx, until) {
				time.Sleep(retryInterval)
			}
		})
	}
	return c.pendingOutcome(start, until)
}

func (c *execution) storePending(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	return tell(c.kernel.calls, func(s CallStore) error { return s.Defer(ctx, c.id, until) })
}

// notStored tells whether an error is a failure of the store, not an answer about the call.
func notStored(err error) bool {
	return err != nil && !errors.Is(err, store.ErrEnded) && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDispatched) && !errors.Is(err, store.ErrNotOwner)
}

// refuseNotWaiting refuses a message of a tool about a call that does not wait for it. The
// reason is for the operator alone.
func refuseNotWaiting(why string) *refusal.Error {
	return refusal.New(refusal.NotFound, "There is no such call that waits for an answer.").WithCause(errors.New(why))
}

// isExpired tells whether the time of a waiting call is over.
func (k *Kernel) isExpired(call *storedCall) bool {
	return call.Step == store.Waiting && !k.deps.Now().Before(call.Until)
}

// expire ends a call whose tool has not answered in time, unless it is being ended already.
func (k *Kernel) expire(ctx context.Context, call *storedCall) {
	if c := k.restore(call); k.endings.begin(c) {
		c.expire(ctx)
	}
}

// expire tells whether it was this that has ended the call.
func (c *execution) expire(ctx context.Context) bool {
	c.expired = true
	o := c.finish(ctx, tool.Result{}, c.timeoutRefusal(c.stored.Task.Effect), c.started)
	return !c.endedByOther && !o.Pending
}

// endings are the waiting calls that this process is ending. Each is ended by one
// goroutine at a time, however often it is asked for while the store is away. The zero
// value is empty.
type endings struct {
	mu   sync.Mutex
	byID map[string]bool
}

// begin marks a call as being ended, until the store has confirmed it. It is false where
// the call is marked already.
func (e *endings) begin(c *execution) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byID[c.id] {
		return false
	}
	if e.byID == nil {
		e.byID = map[string]bool{}
	}
	e.byID[c.id] = true
	c.onEnded = func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.byID, c.id)
	}
	return true
}

// pendingWrites counts the work in the background that must be done before a process ends.
type pendingWrites struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when open falls to zero
	slots chan struct{} // holds a token for each decision whose handing over is owed
}

// writeOutcome records an outcome, then calls settle. Where the journal fails, it is tried
// again in the background until it succeeds. Meanwhile the journal refuses new decisions,
// too, so that no more than the calls in flight can pile up.
func (k *Kernel) writeOutcome(r audit.Record, settle func()) {
	if k.write(context.Background(), r) != nil {
		k.writeLater(settle, r)
		return
	}
	settle()
}

// writeLater records outcomes in the background, in their order, then calls done.
func (k *Kernel) writeLater(done func(), records ...audit.Record) {
	k.pending.run(func() {
		defer done()
		for _, r := range records {
			for k.write(context.Background(), r) != nil {
				time.Sleep(retryInterval)
			}
		}
	})
}

// run does work in the background, for which Flush waits.
func (d *pendingWrites) run(work func()) {
	d.mu.Lock()
	if d.count++; d.idle == nil {
		d.idle = make(chan struct{})
	}
	d.mu.Unlock()
	go func() {
		work()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.count--; d.count == 0 {
			close(d.idle)
			d.idle = nil
		}
	}()
}

// Flush waits until every outcome is recorded. It returns an error if ctx ends first.
func (k *Kernel) Flush(ctx context.Context) error {
	k.pending.mu.Lock()
	none := k.pending.idle
	k.pending.mu.Unlock()
	if none == nil {
		return nil
	}
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return refusal.New(refusal.AuditUnavailable, "The outcome of a call could not be recorded.").WithCause(ctx.Err())
	}
}
