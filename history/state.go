package history

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// State is what is kept of one thread, or of one caller. Nobody changes one: Apply and the others return another, or the
// same where nothing changes. nil is that of which nothing is kept.
type State struct {
	// Turn is the number of the last change. The first one is the time in microseconds at which the state began, so that no
	// later state of the same thread has it again; each further change adds one, or two where one is the time of the change:
	// Fold tells by that which the first one is.
	Turn uint64
	// Began is when the first call was added, and Last when the last one was.
	Began, Last time.Time
	// Closed says that no call may be added any more.
	Closed bool
	// Partial says that what was added before Began is not known.
	Partial bool
	// Stub says that its counts and sums are over, and that only labels are kept.
	Stub bool

	labels []Label
	cells  []cell // in their order
	gaps   []span // turns before Turn that Fold has not seen
	missed uint64 // beyond Turn: up to it, turns may have been lost that Fold will see. The next change leaves them out

	calls         int64  // that were let through, where they are counted
	made, results []made // the last calls and results, in their order
}

// Label is a label of a thread, with the call that has added it first.
type Label struct {
	Name, Call string
	n          int64 // calls that have added it, less those that were undone
}

// cell is the value of a term, for one list of values of its keys and one step of its window. Of a term with keys, the
// cell with the key 0 says that values are missing which were added in that step.
type cell struct {
	term ID
	key  uint64
	step int64
	n    int64
}

// span is turns, from the first to the last.
type span struct{ first, last uint64 }

// The bounds of a State.
const (
	maxKeyed = 1024  // cells of a term with keys
	maxCells = 4096  // beyond which a term gets no cell for a key that has none
	maxGaps  = 65536 // spans
)

// before is the order of cells.
func (c *cell) before(term ID, key uint64, step int64) bool {
	switch {
	case c.term != term:
		return c.term < term
	case c.key != key:
		return c.key < key
	}
	return c.step < step
}

// Begin returns the state of a thread, or a caller, that has added nothing yet.
func Begin(now time.Time) *State {
	now = now.Truncate(time.Microsecond)
	return &State{Began: now, Last: now}
}

// Unknown returns the state of one that may have added anything before a time.
func Unknown(began time.Time) *State {
	s := Begin(began)
	s.Partial = true
	return s
}

// Losing returns the state where what was kept up to a time may have been lost; the zero time: nothing was.
func (s *State) Losing(lost time.Time) *State {
	if lost.IsZero() || !s.Began.Before(lost) {
		return s
	}
	next := *s
	next.Partial, next.Began = true, lost
	return &next
}

// clockSkew is by how much the clocks of two instances of a store may differ.
const clockSkew = time.Minute

// Missing returns the state where the turns before a loss are still being put back: nothing is known of it until Settle, and the turns of
// its changes begin behind all that was lost.
func (s *State) Missing(loss time.Time) *State {
	if last := uint64(max(1, loss.Add(clockSkew).UnixMicro())); s.Turn <= last {
		next := *s
		next.missed = last
		return &next
	}
	return s
}

// misses reports whether turns are missing that Fold may see yet.
func (s *State) misses() bool { return len(s.gaps) > 0 || s.missed > s.Turn }

// Labels are the labels of the thread, sorted by name. Nobody changes them.
func (s *State) Labels() []Label {
	if s == nil {
		return nil
	}
	return s.labels
}

// Apply adds what a call, or its result, adds to the thread, or to the caller.
func (s *State) Apply(a Adds, caller bool) *State {
	next := s.with(&a, caller, 1)
	next.Turn = next.nextTurn(&a)
	return next
}

// Undo takes away what a call has added, or what is left of it, once at most for each call: labels that others have added
// as well stay. Where nothing of that time is left, it returns the same state.
func (s *State) Undo(a Adds, caller bool) *State {
	if s == nil || s.Stub || a.At.Truncate(time.Microsecond).Before(s.Began) {
		return s
	}
	next := s.with(&a, caller, -1)
	next.Turn = next.nextTurn(&a)
	return next
}

// Close returns the state without room for further calls. Each closing has its turn, also of a state that is closed.
func (s *State) Close(now time.Time) *State { return s.closed(now, true) }

// Reopen is the state before the closing of a turn that was not recorded, unless something has changed since.
func (s *State) Reopen(turn uint64) *State {
	if s == nil || s.Turn != turn {
		return s
	}
	return s.closed(s.Last, false)
}

func (s *State) closed(at time.Time, closed bool) *State {
	a := Adds{At: at}
	next := s.with(&a, false, 1)
	next.Turn, next.Closed = next.nextTurn(&a), closed
	return next
}

// Touch notes that a thread was asked at a time and nothing was added, where that has not been noted for some while.
func (s *State) Touch(now time.Time, every time.Duration) *State {
	if s == nil || now.Sub(s.Last) < every {
		return s
	}
	return s.with(&Adds{At: now}, false, 1)
}

// nextTurn is the turn of a change.
func (s *State) nextTurn(a *Adds) uint64 {
	at := uint64(max(1, a.At.UnixMicro()))
	switch {
	case s.Turn == 0:
		return at
	case s.Turn+1 == at:
		return s.Turn + 2
	}
	return s.Turn + 1
}

// Aged is the state at a time: its counts and sums are over once it was idle for so long; its labels, and that it is closed,
// are kept for longer. nil: nothing is left.
func (s *State) Aged(now time.Time, idle, keep time.Duration) *State {
	if s == nil {
		return nil
	}
	switch quiet := now.Sub(s.Last); {
	case quiet < idle:
		return s
	case quiet >= max(idle, keep) || len(s.labels) == 0 && !s.Closed && !s.Partial:
		return nil
	case s.Stub:
		return s
	}
	return &State{Turn: s.Turn, Began: s.Began, Last: s.Last, Closed: s.Closed, Partial: s.Partial, Stub: true, labels: s.labels,
		gaps: s.gaps}
}

// with returns the state with what a call adds; of sign -1, without it.
func (s *State) with(a *Adds, caller bool, sign int64) *State {
	at := a.At.Truncate(time.Microsecond)
	next := &State{Began: at, Last: at}
	if s != nil {
		*next = *s
		if at.After(s.Last) {
			next.Last = at
		}
		if s.Stub {
			next.Stub, next.Began = false, at
		}
		if s.missed > s.Turn { // the turn behind them is that of no record
			next.gaps = append(slices.Clip(s.gaps), span{s.Turn + 1, s.missed})
			next.Turn, next.missed = s.missed+1, 0
		}
	}
	next.count(a, caller, sign)
	if !caller && len(a.Labels) > 0 {
		next.label(a, sign)
	}
	if !caller && a.Equal != 0 {
		next.note(a, sign)
	}
	return next
}

// count replaces the cells.
func (s *State) count(a *Adds, caller bool, sign int64) {
	if !a.Changes(caller) {
		return
	}
	room := len(s.cells)
	if room == 0 {
		room = len(a.amounts)
	}
	s.cells = append(make([]cell, 0, room), s.cells...)
	for i := range a.amounts {
		if add := &a.amounts[i]; add.Caller == caller {
			s.add(add, add.step(a.At), sign)
		}
	}
	if cap(s.cells) > len(s.cells) { // states are kept for days
		s.cells = append(make([]cell, 0, len(s.cells)), s.cells...)
	}
}

// find returns where a cell is, or would be.
func (s *State) find(term ID, key uint64, step int64) (int, bool) {
	from, to := 0, len(s.cells)
	for from < to {
		if middle := (from + to) / 2; s.cells[middle].before(term, key, step) {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from, from < len(s.cells) && s.cells[from].term == term && s.cells[from].key == key && s.cells[from].step == step
}

// of returns where the cells of a term begin and end.
func (s *State) of(term ID) (from, to int) {
	from, _ = s.find(term, 0, math.MinInt64)
	to = from
	for to < len(s.cells) && s.cells[to].term == term {
		to++
	}
	return from, to
}

// add adds an amount to its cell, of which this state alone has the place.
func (s *State) add(a *amount, step, sign int64) {
	from, to := s.of(a.id)
	if a.Window > 0 {
		oldest := a.step(s.Last) - steps
		if step < oldest {
			return
		}
		kept := from
		for i := from; i < to; i++ {
			if s.cells[i].step >= oldest {
				s.cells[kept] = s.cells[i]
				kept++
			}
		}
		s.cells, to = slices.Delete(s.cells, kept, to), kept
	}
	i, found := s.find(a.id, a.key, step)
	switch {
	case a.n == 0 || !found && sign < 0:
	case found:
		c := &s.cells[i]
		c.n = sum(c.n, a.n, sign)
		if c.n == 0 {
			s.cells = slices.Delete(s.cells, i, i+1)
		}
	case a.key == 0:
		s.cells = slices.Insert(s.cells, i, cell{a.id, 0, step, a.n})
	case to-from >= maxKeyed || len(s.cells) >= maxCells || to > from && s.cells[from].key == 0:
		if i, found := s.find(a.id, 0, step); !found {
			s.cells = slices.Insert(s.cells, i, cell{a.id, 0, step, 1})
		}
	default:
		s.cells = slices.Insert(s.cells, i, cell{a.id, a.key, step, a.n})
	}
}

// sum adds to a value, or takes away from it. What cannot be known stays so.
func sum(n, more, sign int64) int64 {
	if n == inexact || more == inexact {
		if n != inexact && sign < 0 {
			return n
		}
		return inexact
	}
	if n += sign * more; n > maxSum || n < 0 {
		return inexact
	}
	return n
}

// label replaces the labels.
func (s *State) label(a *Adds, sign int64) {
	labels := append(make([]Label, 0, len(s.labels)+len(a.Labels)), s.labels...)
	for _, name := range a.Labels {
		i, found := slices.BinarySearchFunc(labels, name, func(l Label, name string) int { return cmp.Compare(l.Name, name) })
		switch {
		case found:
			if labels[i].n += sign; labels[i].n == 0 {
				labels = slices.Delete(labels, i, i+1)
			}
		case sign < 0:
		case len(labels) >= MaxLabels || name == "" || len(name) > maxLabel:
			s.Partial, s.Began = true, s.Last
		default:
			labels = slices.Insert(labels, i, Label{name, a.Call, 1})
		}
	}
	s.labels = labels
}

// value is what is kept of a term for the digest of the values of its keys. ok is false where that is not known.
func (s *State) value(c *counted, key uint64, now time.Time) (n int64, ok bool) {
	if s.Last.After(now) {
		now = s.Last
	}
	from, to := s.of(c.id)
	oldest := int64(math.MinInt64)
	if c.Window > 0 {
		oldest = c.step(now) - steps
	}
	present, missing := false, false
	for _, cell := range s.cells[from:to] {
		switch {
		case cell.key == key:
			present = true
			if cell.step < oldest {
				continue
			}
			if n = sum(n, cell.n, 1); n == inexact {
				return 0, false
			}
		case cell.key == 0 && cell.step >= oldest:
			missing = true
		}
	}
	if key != 0 && (missing && (c.Window > 0 || !present) || !present && (to-from >= maxKeyed || len(s.cells) >= maxCells)) {
		return 0, false
	}
	return n, true
}

// Size is about how many bytes it takes in memory.
func (s *State) Size() int64 {
	n := 192 + 32*cap(s.cells) + 16*len(s.gaps) + 24*(cap(s.made)+cap(s.results))
	for i := range s.labels {
		n += 40 + len(s.labels[i].Name) + len(s.labels[i].Call)
	}
	return int64(n)
}
