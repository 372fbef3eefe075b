package upstream

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/callgate/callgate/internal/deadline"
)

// errClosed is the cause of a cancelled exchange that its caller has closed.
var errClosed = errors.New("the exchange was closed")

// phaseTimer cancels the context of an exchange when one of its phases, or all of it, takes too
// long; the cause says which. It uses the client's one timer: a phase ends long before its time.
type phaseTimer struct {
	context.Context
	cancel context.CancelCauseFunc
	alarms *deadline.Alarms
	alarm  deadline.Alarm

	mu      sync.Mutex
	latest  time.Duration // the end of all phases, by alarms.Now
	ends    time.Duration // likewise, or what shorten has made of it
	lateAll error         // the cause if they take longer
	cause   error         // of the phase
	ended   bool
}

// begin begins the time of an exchange that ends at a time of alarms.Now. No phase has begun.
func (w *phaseTimer) begin(parent context.Context, alarms *deadline.Alarms, ends time.Duration) {
	w.alarms, w.latest, w.ends, w.lateAll, w.cause = alarms, ends, ends, errTotal, errTotal
	w.Context, w.cancel = context.WithCancelCause(parent)
	w.alarm.Call = w.expire
	alarms.Add(&w.alarm)
}

// start ends the current phase and starts the next.
func (w *phaseTimer) start(limit time.Duration, cause error) {
	at := w.alarms.Now() + limit
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends < at {
		at, cause = w.ends, w.lateAll
	}
	w.set(at, cause)
}

// set sets the alarm, under the lock.
func (w *phaseTimer) set(at time.Duration, cause error) {
	if !w.ended {
		w.cause = cause
		w.alarms.Set(&w.alarm, at)
	}
}

func (w *phaseTimer) expire() {
	w.mu.Lock()
	cause := w.cause
	w.mu.Unlock()
	w.alarms.Remove(&w.alarm)
	w.cancel(cause)
}

// pause ends the current phase without starting another.
func (w *phaseTimer) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(w.ends, w.lateAll)
}

// shorten ends all phases after a time, if they do not end before.
func (w *phaseTimer) shorten(limit time.Duration, cause error) {
	at := w.alarms.Now() + limit
	w.mu.Lock()
	defer w.mu.Unlock()
	if at < w.ends {
		w.ends, w.lateAll = at, cause
		w.set(at, cause)
	}
}

// restore takes back what shorten did.
func (w *phaseTimer) restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends, w.lateAll = w.latest, errTotal
	w.set(w.ends, w.lateAll)
}

// end ends the exchange and releases its resources. It is safe to call twice.
func (w *phaseTimer) end() {
	w.mu.Lock()
	again := w.ended
	w.ended = true
	w.mu.Unlock()
	if !again {
		w.alarms.Remove(&w.alarm)
		w.cancel(errClosed)
	}
}

// boundedBody enforces the bounds of an answer's body: size, memory budget, and the idle
// timeout for each read after the first, which still belongs to the phase before.
type boundedBody struct {
	io.ReadCloser
	timeouts  *phaseTimer
	idle      time.Duration
	remaining int
	started   bool
	budget    *memoryBudget // nil if the bytes read are not kept
	buffered  int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.started {
		b.timeouts.start(b.idle, errIdle)
	}
	n, err := b.ReadCloser.Read(p)
	if n > 0 || err != nil {
		b.timeouts.pause()
		b.started = true
	}
	if b.remaining -= n; b.remaining < 0 {
		return 0, errOversize
	}
	if b.budget != nil {
		if b.buffered += n; !b.budget.take(n) {
			return 0, errBudget
		}
	}
	return n, err
}

// close closes the body. It is safe to call twice, but concurrently with Read only without a
// budget.
func (b *boundedBody) close() {
	if b.budget != nil {
		b.budget.release(b.buffered)
		b.budget, b.buffered = nil, 0
	}
	b.ReadCloser.Close()
}
