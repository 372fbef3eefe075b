package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/refusal"
)

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

// acquire takes the room of one decision, and waits a little where there is none.
func (d *pendingWrites) acquire(ctx context.Context) error {
	select {
	case d.slots <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(roomWait)
	defer late.Stop()
	select {
	case d.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return errors.New("too many outcomes are not written down yet")
	}
}

func (d *pendingWrites) release() { <-d.slots }
