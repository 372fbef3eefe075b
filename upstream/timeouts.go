package upstream

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// errClosed is the cause of a cancelled exchange that its caller has closed.
var errClosed = errors.New("the exchange was closed")

// phaseTimer cancels the context of an exchange when one of its phases takes too long; the
// cause says which phase.
type phaseTimer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	cause error
	ended bool
}

func newPhaseTimer(parent context.Context) *phaseTimer {
	w := &phaseTimer{}
	w.ctx, w.cancel = context.WithCancelCause(parent)
	return w
}

// start ends the current phase and starts the next.
func (w *phaseTimer) start(limit time.Duration, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.cause = cause
	if w.timer == nil {
		w.timer = time.AfterFunc(limit, w.expire)
		return
	}
	w.timer.Reset(limit)
}

func (w *phaseTimer) expire() {
	w.mu.Lock()
	cause := w.cause
	w.mu.Unlock()
	w.cancel(cause)
}

// pause ends the current phase without starting another.
func (w *phaseTimer) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

// end ends the exchange and releases its resources.
func (w *phaseTimer) end() {
	w.mu.Lock()
	w.ended = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.cancel(errClosed)
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
