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
	r.heartbeat.start(r.options.Heartbeat, r.sentAt, func() error { r.KeepAlive(note); return nil })
	err := contained(do)
	if failed := r.heartbeat.pause(); failed != nil {
		return failed
	}
	return err
}

// contained calls a function, and turns its panic into an error.
func contained(do func() error) (err error) {
	defer safe.Catch(func(panicked error) { err = fmt.Errorf("%w: %w", errPanicked, panicked) })
	return do()
}

// heartbeat sends signs of life from a goroutine of a timer, one at a time. A run waits again and again, mostly for less
// than an interval, so that it keeps one timer: that rings where the first wait was due, and is set on from there.
type heartbeat struct {
	mu       sync.Mutex // held while a sign of life is sent
	timer    *time.Timer
	set      bool // the timer is going to ring
	interval time.Duration
	due      time.Time    // of the next sign of life
	send     func() error // nil: nothing is waited for
	failed   error        // of the sign of life that was the last
}

// start sends signs of life until pause is called. The time of sentAt never goes back.
func (b *heartbeat) start(interval time.Duration, sentAt time.Time, send func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.interval, b.due, b.send, b.failed = interval, sentAt.Add(interval), send, nil
	if !b.set {
		b.ring()
	}
}

// ring sets the timer, under the lock.
func (b *heartbeat) ring() {
	b.set = true
	if in := time.Until(b.due); b.timer == nil {
		b.timer = time.AfterFunc(in, b.beat)
	} else {
		b.timer.Reset(in)
	}
}

func (b *heartbeat) beat() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set = false
	if b.send == nil {
		return
	}
	if time.Until(b.due) <= 0 {
		if b.failed = contained(b.send); b.failed != nil {
			return
		}
		b.due = time.Now().Add(b.interval)
	}
	b.ring()
}

// pause ends the signs of life. Once it has returned, none is being sent. Its error is that of one
// that failed.
func (b *heartbeat) pause() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.send = nil
	return b.failed
}

// stop is called once nothing more is waited for.
func (b *heartbeat) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
	b.set = false
}
