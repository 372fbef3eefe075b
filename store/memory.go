package store

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Memory keeps calls in this process alone: they end with it, so there is
// nothing to recover. It is safe for concurrent use.
type Memory struct {
	now     func() time.Time
	watched watched

	mu      sync.Mutex
	tally   tally
	byID    map[string]*kept
	byKey   map[scopedKey]*kept
	waiting map[string]*kept
	ended   *list.List            // of *kept, in the order that they ended
	spare   *list.List            // of *kept that may make room, in that order
	spareOf map[string]*list.List // the same, by principal
}

type scopedKey struct {
	scope Scope
	key   string
}

type kept struct {
	call                  Call
	ended, spare, spareOf *list.Element
}

// The bounds of a Memory, by default.
const (
	memoryCalls = 100_000
	memoryBytes = 256 << 20
)

// NewMemory returns an empty store.
func NewMemory(now func() time.Time) *Memory { return newMemory(now, Bounds{}) }

func newMemory(now func() time.Time, bounds Bounds) *Memory {
	return &Memory{
		now: now, tally: newTally(bounds.or(memoryCalls, memoryBytes)), byID: map[string]*kept{}, byKey: map[scopedKey]*kept{},
		waiting: map[string]*kept{}, ended: list.New(), spare: list.New(), spareOf: map[string]*list.List{},
	}
}

// Open notes a call that is about to be judged. Where its key has started one
// already, that one is returned, and nothing is noted.
func (m *Memory) Open(_ context.Context, call Call) (prior *Call, err error) {
	if call.ID == "" {
		return nil, errNoID
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(sweepAtOnce)
	if k := m.byKey[scopedKey{call.Scope, call.Key}]; call.Key != "" && k != nil && k.call.ID != call.ID {
		if !k.call.over(m.now()) {
			found := k.call
			return &found, nil
		}
		m.remove(k)
	}
	if k := m.byID[call.ID]; k != nil {
		return nil, k.call.reopen(call)
	}
	if err := m.tally.room(call.Scope.Principal); err != nil {
		return nil, err
	}
	k := &kept{call: opened(call, m.now())}
	m.byID[call.ID] = k
	if call.Key != "" {
		m.byKey[scopedKey{call.Scope, call.Key}] = k
	}
	m.tally.change(call.Scope.Principal, nil, k.call.weight())
	m.makeRoom(call.Scope.Principal)
	return nil, nil
}

// opened is a call at its start.
func opened(c Call, now time.Time) Call {
	return Call{ID: c.ID, Scope: c.Scope, Key: c.Key, Digest: c.Digest, State: Pending, Step: Opened, Opened: now}
}

// change makes one transition of a call.
func (m *Memory) change(id string, transition func(*kept) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.byID[id]
	if k == nil {
		return ErrNotFound
	}
	before := k.call.weight()
	if err := transition(k); err != nil {
		return err
	}
	m.tally.change(k.call.Scope.Principal, before, k.call.weight())
	m.makeRoom(k.call.Scope.Principal)
	return nil
}

// Dispatch notes that the tool of an opened call is about to be called.
func (m *Memory) Dispatch(_ context.Context, id string, task Task) error {
	return m.change(id, func(k *kept) error { return k.call.dispatch(task, "") })
}

// Redispatch notes that the tool of a call is about to be called once more, and
// returns for which time. A call whose effect is once is refused.
func (m *Memory) Redispatch(_ context.Context, id string) (attempt int, err error) {
	err = m.change(id, func(k *kept) error {
		err := k.call.again()
		attempt = k.call.Attempts
		return err
	})
	return attempt, err
}

// Defer notes that the tool answers later, and until when that is waited for.
func (m *Memory) Defer(_ context.Context, id string, until time.Time) error {
	err := m.change(id, func(k *kept) error {
		err := k.call.pend(until)
		if err == nil {
			m.waiting[id] = k
		}
		return err
	})
	if err == nil {
		m.watched.tell(id)
	}
	return err
}

// Finish ends a call, and returns it as it stands then. With ErrEnded that is
// the call as another has finished it.
func (m *Memory) Finish(_ context.Context, id string, ending Ending) (call Call, err error) {
	err = m.change(id, func(k *kept) error {
		before, err := k.call.finish(ending, m.now())
		call = k.call
		if err != nil || before {
			return err
		}
		delete(m.waiting, id)
		k.ended = m.ended.PushBack(k)
		if k.call.spare() {
			of := m.spareOf[k.call.Scope.Principal]
			if of == nil {
				of = list.New()
				m.spareOf[k.call.Scope.Principal] = of
			}
			k.spare, k.spareOf = m.spare.PushBack(k), of.PushBack(k)
		}
		return nil
	})
	if err == nil {
		m.watched.tell(id)
	}
	return call, err
}

// SetMetadata replaces the note of a call, which waits or has ended, as at says. A call
// whose note is neither was nor the new one is refused with ErrConflict: of two that
// have read the same note, one replaces it.
func (m *Memory) SetMetadata(_ context.Context, id string, at Step, was, note []byte) error {
	err := m.change(id, func(k *kept) error {
		_, err := k.call.note(at, was, note)
		return err
	})
	if err == nil {
		m.watched.tell(id)
	}
	return err
}

// Settle notes that the outcome of a call stands in the audit log. Here that is
// of no use.
func (*Memory) Settle(string) {}

// Drop forgets a call that was not dispatched; its key is free again. Others
// stay.
func (m *Memory) Drop(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.byID[id]; k != nil && k.call.Step == Opened {
		m.remove(k)
	}
	return nil
}

// Get returns a call of a principal. Another's is absent.
func (m *Memory) Get(ctx context.Context, id, principal string) (Call, error) {
	return owned(m.Find(ctx, id))(principal)
}

// owned returns a call to its principal alone.
func owned(c Call, err error) func(principal string) (Call, error) {
	return func(principal string) (Call, error) {
		switch {
		case err != nil:
			return Call{}, err
		case c.Scope.Principal != principal:
			return Call{}, ErrNotFound
		}
		return c, nil
	}
}

// Find returns a call, whosever it is.
func (m *Memory) Find(_ context.Context, id string) (Call, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.byID[id]
	if k == nil || k.call.over(m.now()) {
		return Call{}, ErrNotFound
	}
	return k.call, nil
}

// Deliver notes that the result of a principal's call enters its thread, and
// tells whether it does so for the first time.
func (m *Memory) Deliver(_ context.Context, id, principal string) (first bool, err error) {
	err = m.change(id, func(k *kept) error {
		if k.call.Scope.Principal != principal {
			return ErrNotFound
		}
		first, err = k.call.deliver()
		return err
	})
	return first, err
}

// Watch waits for a change of a call.
func (m *Memory) Watch(id string) (*Watch, error) { return m.watched.add(id) }

// Recover returns calls whose process has gone: here there are none.
func (*Memory) Recover(context.Context, int) ([]Call, error) { return nil, nil }

// Unsettled returns calls whose outcome may not stand in the audit log: here there
// are none, as no call is older than the process.
func (*Memory) Unsettled(context.Context, int) ([]Call, error) { return nil, nil }

// Expired returns waiting calls whose time is over, a limited number at once.
// They wait until they are finished.
func (m *Memory) Expired(_ context.Context, limit int) (due []Call, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, k := range m.waiting {
		if len(due) < limit && !k.call.Until.After(now) {
			due = append(due, k.call)
		}
	}
	return due, nil
}

// sweepAtOnce is how many calls are swept along with another transition.
const sweepAtOnce = 16

// Sweep forgets calls that ended a day ago, a limited number at once.
func (m *Memory) Sweep(_ context.Context, limit int) (swept int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sweep(limit), nil
}

func (m *Memory) sweep(limit int) (swept int) {
	now := m.now()
	for e := m.ended.Front(); e != nil && swept < limit && e.Value.(*kept).call.over(now); e = m.ended.Front() {
		m.remove(e.Value.(*kept))
		swept++
	}
	return swept
}

// makeRoom forgets what may be forgotten, until the bounds hold: a principal's
// own first.
func (m *Memory) makeRoom(principal string) {
	for m.tally.crowded[principal] {
		m.remove(m.spareOf[principal].Front().Value.(*kept))
	}
	for m.tally.all.excess(m.tally.bounds) {
		m.remove(m.spare.Front().Value.(*kept))
	}
}

func (m *Memory) remove(k *kept) {
	delete(m.byID, k.call.ID)
	delete(m.waiting, k.call.ID)
	if k.call.Key != "" {
		delete(m.byKey, scopedKey{k.call.Scope, k.call.Key})
	}
	if k.ended != nil {
		m.ended.Remove(k.ended)
	}
	if k.spare != nil {
		m.spare.Remove(k.spare)
		of := m.spareOf[k.call.Scope.Principal]
		if of.Remove(k.spareOf); of.Len() == 0 {
			delete(m.spareOf, k.call.Scope.Principal)
		}
	}
	m.tally.change(k.call.Scope.Principal, k.call.weight(), nil)
}
