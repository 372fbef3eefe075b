package turns

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/callgate/callgate/internal/safe"
)

var errPanicked = errors.New("the awaited work broke off")

// Wait runs a long operation. Where the answer is a stream it sends signs of life meanwhile, each time that
// nothing was sent for an interval, with a note of what is waited for; the operation must not write to the stream. A
// panic of the operation, or of a sign of life, becomes an error. Where the answer is one body, the
// operation is just called.
//
// The operation stays on the caller's goroutine: most end long before the first sign of life, and
// handing them to another goroutine and back would cost the first token more than anything else here.
func (r *Run) Wait(note string, do func() error) error {
	if r.KeepAlive == nil {
		return do()
	}
	b := &heartbeat{interval: r.options.Heartbeat, send: func() error { r.KeepAlive(note); return nil }}
	b.start(r.options.Heartbeat - time.Since(r.sentAt))
	err := contained(do)
	if failed := b.stop(); failed != nil {
		return failed
	}
	return err
}

// contained calls a function, and turns its panic into an error.
func contained(do func() error) (err error) {
	defer safe.Catch(func(panicked error) { err = fmt.Errorf("%w: %w", errPanicked, panicked) })
	return do()
}

// heartbeat sends signs of life from a goroutine of a timer, one at a time.
type heartbeat struct {
	interval time.Duration
	send     func() error

	mu      sync.Mutex // held while a sign of life is sent
	timer   *time.Timer
	stopped bool
	failed  error // of the sign of life that was the last
}

func (b *heartbeat) start(first time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(first, b.beat)
}

func (b *heartbeat) beat() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	if b.failed = contained(b.send); b.failed == nil {
		b.timer.Reset(b.interval)
	}
}

// stop ends the signs of life. Once it has returned, none is being sent. Its error is that of one
// that failed.
func (b *heartbeat) stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	b.timer.Stop()
	return b.failed
}
