// Package windows counts budgets by windows of the calendar: in one process or, for gateways that
// share a store, what is known of the counts there, and what each grants while the store is away.
package windows

import (
	"errors"
	"sync"
	"time"

	"github.com/callgate/callgate/ratelimit/budget"
)

// Most is how many windows a table has: some MiB. One cannot be forgotten before its end, so where
// all are in use, a table of one process refuses another subject.
const Most = 1 << 16

var (
	errTooMany = errors.New("every counter is in use, so there is no room for another name")
	errUnknown = errors.New("Redis is away, and this gateway does not know what was spent")
)

// Window counts a budget for one subject in one window.
type Window struct {
	Counter    budget.Counter
	Start, End time.Time
	// StoreKey is its key in a store that gateways share.
	StoreKey string
	// State is all that was counted or, where gateways share a store, what that said last.
	State
	// Owed is the amount that the store has still to be charged with or, if negative, to give back;
	// Sending is the part of it that a request carries now.
	Owed, Sending budget.Amount
}

// State is a count. Open has what is reserved of Spent. A store numbers its changes in an epoch,
// which ends where it loses some of them; without an epoch it has said nothing.
type State struct {
	Epoch       string
	Number      uint64
	Spent, Open budget.Amount
}

// Table has windows. It is safe for concurrent use.
type Table struct {
	clock func() time.Time
	most  int
	keep  time.Duration // beyond the end of a window
	// storeKey returns the key of a window in a store that gateways share; nil: they share none.
	storeKey func(c budget.Counter, start time.Time) string

	mu     sync.Mutex
	rows   map[key]*Window
	free   []*reservation
	latest time.Time // of the clock: time does not run backwards into a window that was left
	swept  time.Time
	lost   time.Time // since when the store is away; zero: it is not
}

type key struct {
	budget.Counter
	start int64
}

// New returns a table of one process.
func New(clock func() time.Time, most int) *Table {
	return &Table{clock: clock, most: most, rows: map[key]*Window{}}
}

// NewShared returns a table of what is known of a store, by its clock and its keys. Windows are kept
// for so long beyond their end.
func NewShared(clock func() time.Time, keep time.Duration, storeKey func(budget.Counter, time.Time) string) *Table {
	t := New(clock, Most)
	t.keep, t.storeKey = keep, storeKey
	return t
}

func (t *Table) shared() bool { return t.storeKey != nil }

// Take takes an amount from the windows of all charges, or from none. Where gateways share a store,
// it takes from the part of one of so many gateways of what is left, as far as that is known. The
// error is a *refusal.Error. Where the windows exist it costs no memory.
func (t *Table) Take(charges []budget.Charge, amount budget.Amount, replicas int) (budget.Reservation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.sweep(now, len(charges))
	r := t.unused()
	missing := 0
	for i := range charges {
		b := charges[i].Budget
		w, known := t.find(&charges[i], now)
		if !known {
			missing++
		}
		r.windows = append(r.windows, w)
		if t.shared() && w.Epoch == "" && (t.lost.IsZero() || w.Start.Before(t.lost)) {
			t.reuse(r)
			return budget.Reservation{}, budget.Unavailable(errUnknown)
		}
		if t.shared() && w.exceedsPart(b, amount, int64(replicas)) || !t.shared() && b.Exceeds(w.Spent, amount) {
			t.reuse(r)
			return budget.Reservation{}, b.Exhausted(amount, now, w.End)
		}
	}
	if len(t.rows)+missing > t.most {
		t.reuse(r)
		return budget.Reservation{}, budget.Unavailable(errTooMany)
	}
	for _, w := range r.windows {
		if missing > 0 {
			t.rows[w.key()] = w
		}
		if t.shared() {
			w.Owed = plus(w.Owed, amount)
		} else {
			w.Spent, w.Open = w.Spent.Add(amount), w.Open.Add(amount)
		}
	}
	r.amount = amount
	return budget.NewReservation(r, r.number), nil
}

func (w *Window) key() key { return key{w.Counter, w.Start.Unix()} }

// find returns the window of a charge at a time, and whether the table has it. t.mu is held.
func (t *Table) find(c *budget.Charge, at time.Time) (w *Window, known bool) {
	counter := c.Counter()
	start, end := c.Budget.Window.Bounds(at, c.Budget.Zone)
	if w = t.rows[key{counter, start.Unix()}]; w != nil {
		return w, true
	}
	w = &Window{Counter: counter, Start: start, End: end}
	if t.shared() {
		w.StoreKey = t.storeKey(counter, start)
	}
	return w, false
}

// exceedsPart reports whether an amount is more than one gateway's part of what is left. What a
// request carries to the store counts too, until it is known whether it has arrived.
func (w *Window) exceedsPart(b *budget.Budget, amount budget.Amount, replicas int64) bool {
	left := b.Limit.Less(w.Spent)
	asked := plus(plus(w.Owed, w.Sending.Less(budget.Amount{})), amount)
	return b.Limit.Tokens > 0 && asked.Tokens > left.Tokens/replicas || b.Limit.Micros > 0 && asked.Micros > left.Micros/replicas
}

// now is the time by the calendar, under the lock. Without Round, a clock that is set back would go
// on: what time.Now returns is compared by how long the process runs. The clock of a store may turn
// out to be behind what was taken for it.
func (t *Table) now() time.Time {
	at := t.clock().Round(0)
	if t.shared() || t.latest.Before(at) {
		t.latest = at
	}
	return t.latest
}

// sweep forgets windows that are over: each minute, and each second while there is no room. A
// reservation in one still has it.
func (t *Table) sweep(now time.Time, more int) {
	every := time.Minute
	if len(t.rows)+more > t.most {
		every = time.Second
	}
	if since := now.Sub(t.swept); 0 <= since && since < every {
		return
	}
	t.swept = now
	for key, w := range t.rows {
		if now.Sub(w.End) >= t.keep {
			delete(t.rows, key)
		}
	}
}

// Read returns the states of charges in their current windows.
func (t *Table) Read(charges []budget.Charge) []budget.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	states := make([]budget.State, len(charges))
	for i := range charges {
		w, _ := t.find(&charges[i], now)
		states[i] = w.Level(w.State)
	}
	return states
}

// Level is what is told of a state of the window.
func (w *Window) Level(s State) budget.State {
	return budget.State{Spent: s.Spent, Reserved: s.Open, Start: w.Start, End: w.End}
}

// Used returns the counters that were charged here in a window that has not ended.
func (t *Table) Used() []budget.Counter {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	var all []budget.Counter
	for _, w := range t.rows {
		if now.Before(w.End) && (!t.shared() || w.Epoch != "" || w.Owed != budget.Amount{}) {
			all = append(all, w.Counter)
		}
	}
	return all
}

// reservation is a reservation in windows. When it has ended it gets another number, and is used
// again.
type reservation struct {
	table   *Table
	number  uint64
	windows []*Window
	amount  budget.Amount
}

// maxUnused is how many reservations are kept to be used again.
const maxUnused = 1 << 10

// unused returns a reservation of nothing, under the lock.
func (t *Table) unused() *reservation {
	last := len(t.free) - 1
	if last < 0 {
		return &reservation{table: t}
	}
	r := t.free[last]
	t.free = t.free[:last]
	return r
}

// reuse ends a reservation, under the lock.
func (t *Table) reuse(r *reservation) {
	r.number++
	clear(r.windows)
	r.windows = r.windows[:0]
	if len(t.free) < maxUnused {
		t.free = append(t.free, r)
	}
}

// Settle implements budget.Settler. A store may have been charged with what was granted while it was
// away: then it is to give back the difference.
func (r *reservation) Settle(number uint64, actual budget.Amount) {
	t := r.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.number != number {
		return
	}
	for _, w := range r.windows {
		if t.shared() {
			w.Owed = plus(w.Owed, minus(actual, r.amount))
		} else {
			w.Spent, w.Open = w.Spent.Less(r.amount).Add(actual), w.Open.Less(r.amount)
		}
	}
	t.reuse(r)
}

// plus adds amounts that may be negative.
func plus(a, b budget.Amount) budget.Amount {
	return budget.Amount{Tokens: a.Tokens + b.Tokens, Micros: a.Micros + b.Micros}
}

func minus(a, b budget.Amount) budget.Amount {
	return budget.Amount{Tokens: a.Tokens - b.Tokens, Micros: a.Micros - b.Micros}
}
