package journal

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/audit"
)

// blocked is a log that takes records once it is opened.
type blocked struct {
	opened chan struct{}
	taken  atomic.Int32
}

func (b *blocked) Append(context.Context, audit.Record) error {
	<-b.opened
	b.taken.Add(1)
	return nil
}

// A deferred outcome is not waited for, but by Flush; any other is.
func TestDeferredOutcomes(t *testing.T) {
	for _, deferred := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			log := &blocked{opened: make(chan struct{})}
			w := NewWriter(log, time.Now, nil, deferred)
			var settled, returned atomic.Bool
			go func() {
				w.Outcome(audit.Record{}, func() { settled.Store(log.taken.Load() == 1) })
				returned.Store(true)
			}()
			synctest.Wait()
			if returned.Load() != deferred || settled.Load() {
				t.Errorf("deferred %v: returned %v, done called %v, before the record was written", deferred, returned.Load(), settled.Load())
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := w.Flush(ctx); (err != nil) != deferred {
				t.Errorf("deferred %v: Flush before the record was written: %v", deferred, err)
			}
			close(log.opened)
			synctest.Wait()
			if err := w.Flush(t.Context()); err != nil || !returned.Load() || !settled.Load() {
				t.Errorf("deferred %v: returned %v, done called behind the record %v, Flush: %v", deferred, returned.Load(), settled.Load(), err)
			}
		})
	}
}
