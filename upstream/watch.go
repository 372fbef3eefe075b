package upstream

import (
	"context"
	"io"
	"sync"
	"time"
)

// watch gives up an exchange that takes too long in one of its phases: its
// context is cancelled, and the cause says which phase it was.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	cause error
	over  bool
}

func newWatch(parent context.Context) *watch {
	w := &watch{}
	w.ctx, w.cancel = context.WithCancelCause(parent)
	return w
}

// begin starts a phase in place of the one before.
func (w *watch) begin(limit time.Duration, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.cause = cause
	if w.timer == nil {
		w.timer = time.AfterFunc(limit, w.expire)
		return
	}
	w.timer.Reset(limit)
}

func (w *watch) expire() {
	w.mu.Lock()
	cause := w.cause
	w.mu.Unlock()
	w.cancel(cause)
}

// rest ends a phase: nothing is waited for.
func (w *watch) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

// end ends the exchange, and frees what it holds.
func (w *watch) end() {
	w.mu.Lock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.cancel(errClosed)
}

// body is the body of an answer under its bounds: the first read belongs to the
// phase that has begun, each later one has the idle time.
type body struct {
	io.ReadCloser
	watch *watch
	idle  time.Duration
	left  int
	begun bool
	held  *held // where what is read is kept; nil: it is not
	kept  int
}

func (b *body) Read(p []byte) (int, error) {
	if b.begun {
		b.watch.begin(b.idle, errIdle)
	}
	n, err := b.ReadCloser.Read(p)
	if n > 0 || err != nil {
		b.watch.rest()
		b.begun = true
	}
	if b.left -= n; b.left < 0 {
		return 0, errOversize
	}
	if b.held != nil {
		if b.kept += n; !b.held.take(n) {
			return 0, errHeld
		}
	}
	return n, err
}

// close closes it. It may be closed again, but beside a Read only where what is
// read is not kept.
func (b *body) close() {
	if b.held != nil {
		b.held.giveBack(b.kept)
		b.held, b.kept = nil, 0
	}
	b.ReadCloser.Close()
}
