package upstream

import (
	"context"
	"io"
	"sync"
	"time"
)

// phaseTimer gives up an exchange that takes too long in one of its phases: its
// context is cancelled, and the cause says which phase it was.
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

// start starts a phase in place of the one before.
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

// pause ends a phase: nothing is waited for.
func (w *phaseTimer) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

// end ends the exchange, and frees what it holds.
func (w *phaseTimer) end() {
	w.mu.Lock()
	w.ended = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.cancel(errClosed)
}

// boundedBody is the body of an answer under its bounds: the first read belongs to the
// phase that has begun, each later one has the idle time.
type boundedBody struct {
	io.ReadCloser
	timeouts  *phaseTimer
	idle      time.Duration
	remaining int
	started   bool
	budget    *memoryBudget // where what is read is kept; nil: it is not
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

// close closes it. It may be closed again, but beside a Read only where what is
// read is not kept.
func (b *boundedBody) close() {
	if b.budget != nil {
		b.budget.release(b.buffered)
		b.budget, b.buffered = nil, 0
	}
	b.ReadCloser.Close()
}
