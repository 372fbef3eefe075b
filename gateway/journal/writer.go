// Package journal records decisions and outcomes. A decision that cannot be written is an
// error, and nothing is executed. An outcome is written after the call has ended, so the
// write is repeated until it succeeds, and a process waits for that before it ends (Flush).
// A log that blocks refuses new decisions, too, so that the outcomes of the calls in flight
// wait, and no more. A log that is overloaded, and takes some records, can leave a few times
// as many waiting.
package journal

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
)

// RetryInterval is how often what could not be written is tried again.
const RetryInterval = 250 * time.Millisecond

// Log stores decisions and outcomes. Append returns nil once the record is durable; with an
// error, the record is not in the log.
type Log interface {
	Append(context.Context, audit.Record) error
}

// Writer writes to a log, and counts the work in the background that must be done before
// the process ends. It is safe for concurrent use.
type Writer struct {
	log      Log
	now      func() time.Time
	recorded func(durable bool, took time.Duration)
	deferred bool // outcomes are written in the background

	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when count falls to zero
}

// NewWriter returns a writer to a log. recorded is called with the result of each write,
// except for one that was abandoned because its request was canceled; it may be nil. With
// deferOutcomes, Outcome does not wait for the log.
func NewWriter(log Log, now func() time.Time, recorded func(durable bool, took time.Duration), deferOutcomes bool) *Writer {
	return &Writer{log: log, now: now, recorded: recorded, deferred: deferOutcomes}
}

// Write appends a record.
func (w *Writer) Write(ctx context.Context, r audit.Record) error {
	if w.recorded == nil {
		return w.append(ctx, r)
	}
	before := w.now()
	err := w.append(ctx, r)
	if !refusal.GaveUp(ctx, err) {
		w.recorded(err == nil, w.now().Sub(before))
	}
	return err
}

// append appends a record; a log that panics has not written it.
func (w *Writer) append(ctx context.Context, r audit.Record) (err error) {
	defer safe.Catch(func(panicked error) { err = refusal.From(refusal.Log, panicked) })
	return w.log.Append(ctx, r)
}

// Outcome records an outcome. Where the log fails, it is tried again in the background until
// it succeeds. Deferred outcomes are written there at once, unless
// maxDeferred already are: a log that is slower than the calls, or that takes the outcomes
// of many lost calls at a start, is waited for. So it is for the turn of a thread, which a start knows by its record alone. done, where it
// is not nil, is called once the outcome is durable.
func (w *Writer) Outcome(r audit.Record, done func()) {
	if done == nil {
		done = func() {}
	}
	if r.Turn == 0 && w.mayDefer() || w.Write(context.Background(), r) != nil {
		w.Later(done, r)
		return
	}
	done()
}

// maxDeferred bounds the outcomes that nobody waits for.
const maxDeferred = 1024

func (w *Writer) mayDefer() bool {
	if !w.deferred {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count < maxDeferred
}

// Later records outcomes in the background, in their order, then calls done.
func (w *Writer) Later(done func(), records ...audit.Record) {
	w.Go(func() {
		defer done()
		for _, r := range records {
			_ = Retry(context.Background(), RetryInterval, func() error { return w.Write(context.Background(), r) })
		}
	})
}

// Retry makes attempts, with a pause after each that fails, until one succeeds. It returns an
// error if ctx ends first.
func Retry(ctx context.Context, pause time.Duration, attempt func() error) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, attempt() },
		backoff.WithBackOff(backoff.NewConstantBackOff(pause)), backoff.WithMaxElapsedTime(0))
	return err
}

// Go does work in the background, for which Flush waits.
func (w *Writer) Go(work func()) {
	w.mu.Lock()
	if w.count++; w.idle == nil {
		w.idle = make(chan struct{})
	}
	w.mu.Unlock()
	go func() {
		work()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.count--; w.count == 0 {
			close(w.idle)
			w.idle = nil
		}
	}()
}

// Flush waits until every outcome is recorded. It returns an error if ctx ends first.
func (w *Writer) Flush(ctx context.Context) error {
	w.mu.Lock()
	idle := w.idle
	w.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return refusal.New(refusal.AuditUnavailable, "The outcome of a call could not be recorded.").WithCause(ctx.Err())
	}
}
