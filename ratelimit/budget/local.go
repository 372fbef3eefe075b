package budget

import (
	"context"
	"errors"
	"sync"
	"time"
)

// maxCounters is how many counters are kept: some MiB. A counter cannot be forgotten before its
// window ends, so where all are in use, another subject is refused.
const maxCounters = 1 << 16

var errTooMany = errors.New("every counter is in use, so there is no room for another name")

// Local is the limiter of one process. The counters are forgotten with it.
type Local struct {
	clock func() time.Time

	mu       sync.Mutex
	counters map[counterKey]*counter
	most     int
	free     []*reservation
	latest   time.Time // of the clock: time does not run backwards into a window that was left
	swept    time.Time
}

type counterKey struct {
	Counter
	start int64
}

// counter is one counter in one window. Open reservations are part of what is spent.
type counter struct {
	spent, open Amount
	end         time.Time
}

var _ Limiter = (*Local)(nil)

// NewLocal returns a limiter that has counted nothing yet.
func NewLocal(clock func() time.Time) *Local {
	return &Local{clock: clock, counters: map[counterKey]*counter{}, most: maxCounters}
}

// Reserve implements Limiter. Where the counters exist it costs no memory.
func (l *Local) Reserve(ctx context.Context, _ *Set, charges []Charge, amount Amount) (Reservation, error) {
	if err := ctx.Err(); err != nil {
		return Reservation{}, Unavailable(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.sweep(now, len(charges))
	r := l.unused()
	missing := 0
	for i := range charges {
		b := charges[i].Budget
		start, end := b.Window.Bounds(now, b.Zone)
		key := counterKey{charges[i].Counter(), start.Unix()}
		c := l.counters[key]
		if c == nil {
			c = &counter{end: end}
			missing++
		}
		r.keys, r.counters = append(r.keys, key), append(r.counters, c)
		if b.Exceeds(c.spent, amount) {
			l.reuse(r)
			return Reservation{}, b.Exhausted(amount, now, end)
		}
	}
	if len(l.counters)+missing > l.most {
		l.reuse(r)
		return Reservation{}, Unavailable(errTooMany)
	}
	for i, c := range r.counters {
		c.spent, c.open = c.spent.Add(amount), c.open.Add(amount)
		if missing > 0 {
			l.counters[r.keys[i]] = c
		}
	}
	r.amount = amount
	return NewReservation(r, r.number), nil
}

// now is the time by the calendar, under the lock. Without Round, a clock that is set back would go
// on: what time.Now returns is compared by how long the process runs.
func (l *Local) now() time.Time {
	if at := l.clock().Round(0); l.latest.Before(at) {
		l.latest = at
	}
	return l.latest
}

// sweep forgets counters whose window has ended: each minute, and each second while there is no
// room. A reservation in one still has it.
func (l *Local) sweep(now time.Time, more int) {
	every := time.Minute
	if len(l.counters)+more > l.most {
		every = time.Second
	}
	if now.Sub(l.swept) < every {
		return
	}
	l.swept = now
	for key, c := range l.counters {
		if !now.Before(c.end) {
			delete(l.counters, key)
		}
	}
}

// Read implements Limiter.
func (l *Local) Read(_ context.Context, charges []Charge) ([]State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	states := make([]State, len(charges))
	for i := range charges {
		b := charges[i].Budget
		start, end := b.Window.Bounds(now, b.Zone)
		states[i] = State{Start: start, End: end}
		if c := l.counters[counterKey{charges[i].Counter(), start.Unix()}]; c != nil {
			states[i].Spent, states[i].Reserved = c.spent, c.open
		}
	}
	return states, nil
}

// Used implements Limiter.
func (l *Local) Used() []Counter {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var all []Counter
	for key, c := range l.counters {
		if now.Before(c.end) {
			all = append(all, key.Counter)
		}
	}
	return all
}

// reservation is a reservation in the counters of a Local. When it has ended it gets another number,
// and is used again.
type reservation struct {
	limiter  *Local
	number   uint64
	keys     []counterKey
	counters []*counter
	amount   Amount
}

// maxUnused is how many reservations are kept to be used again.
const maxUnused = 1 << 10

// unused returns a reservation of nothing, under the lock.
func (l *Local) unused() *reservation {
	last := len(l.free) - 1
	if last < 0 {
		return &reservation{limiter: l}
	}
	r := l.free[last]
	l.free = l.free[:last]
	return r
}

// reuse ends a reservation, under the lock.
func (l *Local) reuse(r *reservation) {
	r.number++
	clear(r.keys)
	clear(r.counters)
	r.keys, r.counters = r.keys[:0], r.counters[:0]
	if len(l.free) < maxUnused {
		l.free = append(l.free, r)
	}
}

// Settle implements Settler.
func (r *reservation) Settle(number uint64, actual Amount) {
	r.limiter.mu.Lock()
	defer r.limiter.mu.Unlock()
	if r.number != number {
		return
	}
	for _, c := range r.counters {
		c.spent, c.open = c.spent.Less(r.amount).Add(actual), c.open.Less(r.amount)
	}
	r.limiter.reuse(r)
}
