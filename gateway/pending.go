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

// markPending notes that the tool answers later. Where that cannot be noted yet it is
// owed: until it is noted, the call looks like one that runs.
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

// notStored tells errors of a store that cannot be asked from those that say how a
// call stands.
func notStored(err error) bool {
	return err != nil && !errors.Is(err, store.ErrEnded) && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDispatched) && !errors.Is(err, store.ErrNotOwner)
}

// refuseNotWaiting is the refusal for what a tool says of a call that does not wait for it.
// Why is for the operator alone.
func refuseNotWaiting(why string) *refusal.Error {
	return refusal.New(refusal.NotFound, "There is no such call that waits for an answer.").WithCause(errors.New(why))
}

// isExpired tells whether a call has waited for long enough.
func (k *Kernel) isExpired(call *storedCall) bool {
	return call.Step == store.Waiting && !k.deps.Now().Before(call.Until)
}

// expire ends a call whose tool has not answered in time, unless somebody does so.
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

// endings are calls that wait, and that are being ended here: each once at a time, so
// that what asks for it again and again, while the store is away, leaves no more
// than one behind. The zero value has none.
type endings struct {
	mu   sync.Mutex
	byID map[string]bool
}

// begin notes that a call is being ended, until that is told.
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

// pendingWrites are outcomes that are not written down yet.
type pendingWrites struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when open falls to zero
	slots chan struct{} // holds a token for each decision whose handing over is owed
}

// writeOutcome writes an outcome down, and settles what that settles. The call has ended,
// so it is owed: where the journal refuses, it is tried again until it is there.
// Meanwhile the journal refuses new decisions too, so the debts are no more than
// the calls in flight.
func (k *Kernel) writeOutcome(r audit.Record, settle func()) {
	if k.write(context.Background(), r) != nil {
		k.writeLater(settle, r)
		return
	}
	settle()
}

// writeLater writes outcomes down beside the caller, in their order, and says when that
// is done.
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

// run does beside the caller what must be done.
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

// Flush waits until every outcome is written down. Its error says that some
// are not, when ctx ends before.
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
