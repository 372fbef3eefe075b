package turns

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/callgate/callgate/internal/deadline"
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
	r.beginWait(note)
	return r.endWait(contained(do))
}

// beginWait and endWait are Wait for an operation that is contained already.
func (r *Run) beginWait(note string) {
	if r.KeepAlive != nil {
		r.heartbeat.start(r.sentAt, r.KeepAlive, note)
	}
}

// endWait returns the error of the operation, or that of the sign of life that failed.
func (r *Run) endWait(err error) error {
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

// heartbeat sends signs of life from a goroutine of an alarm, one at a time. A run waits again and again, mostly for less
// than an interval, so that the alarm moves on with each wait, and the runs of a face share one timer.
type heartbeat struct {
	interval time.Duration
	alarms   *deadline.Alarms
	alarm    deadline.Alarm

	mu     sync.Mutex // held while a sign of life is sent
	added  bool       // the alarm is among the alarms
	due    time.Duration
	send   func(note string) // nil: nothing is waited for
	note   string
	failed error // of the sign of life that was the last
}

// start sends signs of life until pause is called. The time of sentAt never goes back.
func (b *heartbeat) start(sentAt time.Time, send func(note string), note string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.alarms == nil {
		b.alarms = deadline.NewAlarms()
	}
	if !b.added {
		b.added, b.alarm.Call = true, func() { go b.beat() }
		b.alarms.Add(&b.alarm)
	}
	b.send, b.note, b.failed = send, note, nil
	b.ringAt(b.alarms.Now() - time.Since(sentAt) + b.interval)
}

// ringAt sets the alarm, under the lock.
func (b *heartbeat) ringAt(due time.Duration) {
	b.due = due
	b.alarms.Set(&b.alarm, due)
}

func (b *heartbeat) beat() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.send == nil || b.alarms.Now() < b.due { // it has moved since
		return
	}
	if b.failed = contained(func() error { b.send(b.note); return nil }); b.failed == nil {
		b.ringAt(b.alarms.Now() + b.interval)
	}
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
	if b.send = nil; b.added {
		b.added = false
		b.alarms.Remove(&b.alarm)
	}
}
