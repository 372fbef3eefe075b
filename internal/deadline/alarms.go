package deadline

import (
	"sync"
	"sync/atomic"
	"time"
)

// Alarms calls functions at times that mostly move on before they come, such as the end of
// each phase of an exchange. One timer serves all of them: it is changed only for an alarm
// before the time that it is set to, and looks at all alarms when it rings. It is safe for
// concurrent use.
type Alarms struct {
	begun time.Time
	rings atomic.Int64 // when the timer rings; 0: it is not set

	mu    sync.Mutex
	timer *time.Timer
	first *Alarm
}

// NewAlarms returns no alarms.
func NewAlarms() *Alarms { return &Alarms{begun: time.Now()} }

// Alarm is one function that may be called. It belongs to one piece of work at a time.
type Alarm struct {
	Call           func()       // must not block; it may still be called while Set or Remove runs
	at             atomic.Int64 // 0: it is not set
	previous, next *Alarm
}

// Now is the time, as Set takes it.
func (a *Alarms) Now() time.Duration { return time.Since(a.begun) }

// At is a time as Set takes it.
func (a *Alarms) At(t time.Time) time.Duration { return t.Sub(a.begun) }

// Add adds an alarm that is not set.
func (a *Alarms) Add(x *Alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x.next = a.first; x.next != nil {
		x.next.previous = x
	}
	a.first = x
}

// Remove takes an alarm off, if it is on.
func (a *Alarms) Remove(x *Alarm) {
	x.at.Store(0)
	a.mu.Lock()
	defer a.mu.Unlock()
	if x.next != nil {
		x.next.previous = x.previous
	}
	if x.previous != nil {
		x.previous.next = x.next
	} else if a.first == x {
		a.first = x.next
	}
	x.previous, x.next = nil, nil
}

// Set sets an alarm to a time, in place of the one before. It is called once then.
func (a *Alarms) Set(x *Alarm, at time.Duration) {
	n := max(int64(at), 1)
	x.at.Store(n)
	if rings := a.rings.Load(); rings != 0 && rings <= n {
		return // ring clears rings before it looks at the alarms, and so sees this one
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if rings := a.rings.Load(); rings == 0 || n < rings {
		a.ringAt(n)
	}
}

// ringAt sets the timer, under the lock.
func (a *Alarms) ringAt(n int64) {
	a.rings.Store(n)
	after := time.Duration(n) - a.Now()
	if a.timer == nil {
		a.timer = time.AfterFunc(after, a.ring)
		return
	}
	a.timer.Reset(after)
}

// ring calls the alarms whose time has come.
func (a *Alarms) ring() {
	var due []*Alarm
	a.mu.Lock()
	a.rings.Store(0)
	now, next := int64(a.Now()), int64(0)
	for x := a.first; x != nil; x = x.next {
		switch at := x.at.Load(); {
		case at == 0:
		case at <= now:
			if x.at.CompareAndSwap(at, 0) {
				due = append(due, x)
			}
		case next == 0 || at < next:
			next = at
		}
	}
	if next != 0 {
		a.ringAt(next)
	}
	a.mu.Unlock()
	for _, x := range due {
		x.Call()
	}
}
