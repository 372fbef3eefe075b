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

// Local is the limiter of one process. What was spent is forgotten with it.
type Local struct {
	clock func() time.Time

	mu       sync.Mutex
	counters map[counterKey]*counter
	most     int
	latest   time.Time // of the clock: time does not run backwards into a window that was left
	swept    time.Time
}

type counterKey struct {
	Counter
	start int64
}

// counter is one counter in one window.
type counter struct {
	spent Amount
	end   time.Time
}

var _ Limiter = (*Local)(nil)

// NewLocal returns a limiter that has counted nothing yet.
func NewLocal(clock func() time.Time) *Local {
	return &Local{clock: clock, counters: map[counterKey]*counter{}, most: maxCounters}
}

// Reserve implements Limiter.
func (l *Local) Reserve(ctx context.Context, _ *Set, charges []Charge, amount Amount) (Reservation, error) {
	if err := ctx.Err(); err != nil {
		return nil, Unavailable(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.sweep(now, len(charges))
	taken := make([]*counter, len(charges))
	keys := make([]counterKey, len(charges))
	missing := 0
	for i := range charges {
		b := charges[i].Budget
		start, end := b.Window.Bounds(now, b.Zone)
		keys[i] = counterKey{charges[i].Counter(), start.Unix()}
		if taken[i] = l.counters[keys[i]]; taken[i] == nil {
			taken[i] = &counter{end: end}
			missing++
		}
		if b.Exceeds(taken[i].spent, amount) {
			return nil, b.Exhausted(amount, now, end)
		}
	}
	if len(l.counters)+missing > l.most {
		return nil, Unavailable(errTooMany)
	}
	for i, c := range taken {
		c.spent = c.spent.Add(amount)
		l.counters[keys[i]] = c
	}
	return &localReservation{limiter: l, counters: taken, amount: amount}, nil
}

// now is the time, under the lock.
func (l *Local) now() time.Time {
	if at := l.clock(); l.latest.Before(at) {
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
			states[i].Spent = c.spent
		}
	}
	return states, nil
}

// localReservation is a reservation in the counters of a Local.
type localReservation struct {
	limiter  *Local
	counters []*counter
	amount   Amount
	settled  bool
}

// Settle implements Reservation.
func (r *localReservation) Settle(actual Amount) {
	r.limiter.mu.Lock()
	defer r.limiter.mu.Unlock()
	if r.settled {
		return
	}
	r.settled = true
	for _, c := range r.counters {
		c.spent = c.spent.Less(r.amount).Add(actual)
	}
}
