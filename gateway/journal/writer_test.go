package journal

import (
	"context"
	"errors"
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

// A deferred outcome is not waited for, but by Flush; any other is, and one that says what a thread has got.
func TestDeferredOutcomes(t *testing.T) {
	for _, tt := range []struct {
		deferred bool
		turn     uint64
	}{{false, 0}, {true, 0}, {true, 1}} {
		deferred := tt.deferred && tt.turn == 0
		synctest.Test(t, func(t *testing.T) {
			log := &blocked{opened: make(chan struct{})}
			w := NewWriter(log, time.Now, nil, tt.deferred)
			var returned atomic.Bool
			go func() {
				w.Outcome(audit.Record{Turn: tt.turn}, nil)
				returned.Store(true)
			}()
			synctest.Wait()
			if returned.Load() != deferred {
				t.Errorf("deferred %v: returned %v before the record was written", deferred, returned.Load())
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := w.Flush(ctx); (err != nil) != deferred {
				t.Errorf("deferred %v: Flush before the record was written: %v", deferred, err)
			}
			close(log.opened)
			synctest.Wait()
			if err := w.Flush(t.Context()); err != nil || !returned.Load() || log.taken.Load() != 1 {
				t.Errorf("deferred %v: returned %v, written %d times, Flush: %v", deferred, returned.Load(), log.taken.Load(), err)
			}
		})
	}
}

// failing is a log that fails, and panics, before it takes a record.
type failing struct{ attempts, taken atomic.Int32 }

func (f *failing) Append(context.Context, audit.Record) error {
	switch f.attempts.Add(1) {
	case 1, 2:
		return errors.New("the disk is full")
	case 3:
		panic("the log")
	}
	f.taken.Add(1)
	return nil
}

// An outcome that the log does not take is reported, and written again until it does, deferred or not.
func TestOutcomesAreRetried(t *testing.T) {
	for _, deferred := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			log := &failing{}
			var failures atomic.Int32
			w := NewWriter(log, time.Now, func(durable bool, _ time.Duration) {
				if !durable {
					failures.Add(1)
				}
			}, deferred)
			w.Outcome(audit.Record{}, nil)
			if err := w.Flush(t.Context()); err != nil || log.taken.Load() != 1 || failures.Load() != 3 {
				t.Errorf("deferred %v: %v; written %d times, %d failures reported", deferred, err, log.taken.Load(), failures.Load())
			}
		})
	}
}

// No more than maxDeferred outcomes are written in the background, however many calls end.
func TestDeferredOutcomesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &blocked{opened: make(chan struct{})}
		w := NewWriter(log, time.Now, nil, true)
		var returned atomic.Int32
		for range 3 * maxDeferred {
			go func() {
				w.Outcome(audit.Record{}, nil)
				returned.Add(1)
			}()
			synctest.Wait()
		}
		if returned.Load() != maxDeferred {
			t.Errorf("%d outcomes are written in the background, want %d", returned.Load(), maxDeferred)
		}
		close(log.opened)
		synctest.Wait()
		if err := w.Flush(t.Context()); err != nil || log.taken.Load() != 3*maxDeferred {
			t.Errorf("%d outcomes are written, want %d: %v", log.taken.Load(), 3*maxDeferred, err)
		}
	})
}

// TestDigests: each is that of its bytes, and stays so whatever is made after it.
func TestDigests(t *testing.T) {
	var digests Digests
	var made []string
	for i := range 10 {
		made = append(made, digests.Of([]byte{byte(i)}))
	}
	for i, got := range made {
		if want := Digest([]byte{byte(i)}); got != want {
			t.Errorf("digest %d: %s, want %s", i, got, want)
		}
	}
}
