package store

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"
	"time"
)

// Memory keeps calls in this process alone. They end with it, so there is nothing to
// recover. It is safe for concurrent use.
type Memory struct {
	now      func() time.Time
	watchers Watchers

	mu          sync.Mutex
	approvals   memoryApprovals
	quota       Quota
	byID        map[string]*entry
	byKey       map[scopedKey]*entry
	waiting     map[string]*entry
	unfinished  map[string]*entry     // without an outcome
	ended       *list.List            // of *kept, in the order that they ended
	evictable   *list.List            // of *kept that may make room, in that order
	evictableOf map[string]*list.List // the same, by principal
}

type scopedKey struct {
	scope Scope
	key   string
}

type entry struct {
	call                          Call
	ended, evictable, ofPrincipal *list.Element
}

// The bounds of a Memory, by default.
const (
	memoryCalls = 100_000
	memoryBytes = 256 << 20
)

// NewMemory returns an empty store.
func NewMemory(now func() time.Time) *Memory { return NewBoundedMemory(now, Bounds{}) }

// NewBoundedMemory returns an empty store with these bounds; a bound of 0 has its default.
func NewBoundedMemory(now func() time.Time, bounds Bounds) *Memory {
	return &Memory{
		now: now, quota: NewQuota(bounds.WithDefaults(memoryCalls, memoryBytes)), byID: map[string]*entry{}, byKey: map[scopedKey]*entry{},
		waiting: map[string]*entry{}, unfinished: map[string]*entry{}, ended: list.New(), evictable: list.New(), evictableOf: map[string]*list.List{},
		approvals: newMemoryApprovals(),
	}
}

// Open records a call that is about to be judged. Where its key has already started
// a call, Open returns that call and records nothing.
func (m *Memory) Open(_ context.Context, call Call) (prior *Call, err error) {
	if call.ID == "" {
		return nil, ErrNoID
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(sweepBatch)
	if k := m.byKey[scopedKey{call.Scope, call.Key}]; call.Key != "" && k != nil && k.call.ID != call.ID {
		if !k.call.Outlived(m.now()) {
			found := k.call
			return &found, nil
		}
		m.remove(k)
	}
	if k := m.byID[call.ID]; k != nil {
		return nil, k.call.Reopen(call)
	}
	if err := m.quota.Admit(call.Scope.Principal); err != nil {
		return nil, err
	}
	k := &entry{call: NewOpened(call, m.now())}
	m.byID[call.ID], m.unfinished[call.ID] = k, k
	if call.Key != "" {
		m.byKey[scopedKey{call.Scope, call.Key}] = k
	}
	m.quota.Update(call.Scope.Principal, nil, k.call.Footprint())
	m.makeRoom(call.Scope.Principal)
	return nil, nil
}

// NewOpened returns a call at its first step.
func NewOpened(c Call, now time.Time) Call {
	return Call{ID: c.ID, Scope: c.Scope, Key: c.Key, Digest: c.Digest, State: Pending, Step: Opened, Opened: now}
}

// change makes one transition of a call.
func (m *Memory) change(id string, transition func(*entry) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.byID[id]
	if k == nil {
		return ErrNotFound
	}
	before := k.call.Footprint()
	if err := transition(k); err != nil {
		return err
	}
	m.quota.Update(k.call.Scope.Principal, before, k.call.Footprint())
	m.makeRoom(k.call.Scope.Principal)
	return nil
}

// Dispatch records that the tool of an opened call is about to be called.
func (m *Memory) Dispatch(_ context.Context, id string, task Task) error {
	return m.change(id, func(k *entry) error {
		dispatched := k.call
		if err := dispatched.Dispatch(task, ""); err != nil {
			return err
		}
		if err := m.useApprovals(id, &task); err != nil {
			return err
		}
		dispatched.Task.Spends = nil
		k.call = dispatched
		return nil
	})
}

// Update makes one change of a call that was dispatched.
func (m *Memory) Update(_ context.Context, id string, change Change) error {
	err := m.change(id, func(k *entry) error {
		_, err := change.Apply(&k.call, m.now())
		if k.call.Step == Waiting {
			m.waiting[id] = k
		}
		return err
	})
	if err == nil {
		m.watchers.Notify(id)
	}
	return err
}

// Finish ends a call and returns it as it is then. With ErrEnded it returns the call
// as another attempt has finished it.
func (m *Memory) Finish(_ context.Context, id string, ending Ending) (call Call, err error) {
	err = m.change(id, func(k *entry) error {
		_, err := k.call.Finish(ending, m.now())
		call = k.call
		if err != nil || k.ended != nil {
			return err
		}
		delete(m.waiting, id)
		delete(m.unfinished, id)
		k.ended = m.ended.PushBack(k)
		if k.call.Evictable() {
			of := m.evictableOf[k.call.Scope.Principal]
			if of == nil {
				of = list.New()
				m.evictableOf[k.call.Scope.Principal] = of
			}
			k.evictable, k.ofPrincipal = m.evictable.PushBack(k), of.PushBack(k)
		}
		return nil
	})
	if err == nil {
		m.watchers.Notify(id)
	}
	return call, err
}

// Settle removes a call that was not dispatched; its key is free again. Other calls stay.
func (m *Memory) Settle(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.byID[id]; k != nil && k.call.Step == Opened {
		m.remove(k)
	}
	return nil
}

// Get returns a call; for a call of somebody else, ErrNotFound.
func (m *Memory) Get(_ context.Context, id string, whose Whose) (Call, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.byID[id]
	if k == nil || k.call.Outlived(m.now()) {
		return Call{}, ErrNotFound
	}
	return whose.Only(k.call, nil)
}

// Watch returns a watch for the next change of a call.
func (m *Memory) Watch(id string) (*Watch, error) { return m.watchers.Add(id) }

// Recover returns at most limit calls that need to be recovered for the reason. No call
// outlives the process, so none is abandoned or unsettled.
func (m *Memory) Recover(_ context.Context, reason Reason, limit int) ([]Call, error) {
	switch reason {
	case Abandoned, Unsettled:
		return nil, nil
	case Expired:
		return m.expired(limit), nil
	}
	return nil, ErrNoReason
}

func (m *Memory) expired(limit int) (due []Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, k := range m.waiting {
		if !k.call.Until.After(now) {
			due = append(due, k.call)
		}
	}
	slices.SortFunc(due, func(a, b Call) int { return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.ID, b.ID)) })
	return due[:min(len(due), max(0, limit))]
}

// sweepBatch is how many calls each Open sweeps as well.
const sweepBatch = 16

// Sweep removes at most limit calls that have ended longer than Retention ago, and approvals
// as SweepApprovals does.
func (m *Memory) Sweep(ctx context.Context, limit int) (swept int, err error) {
	m.mu.Lock()
	swept = m.sweep(limit)
	m.mu.Unlock()
	approvals, err := m.SweepApprovals(ctx, limit-swept)
	return swept + approvals, err
}

func (m *Memory) sweep(limit int) (swept int) {
	now := m.now()
	for e := m.ended.Front(); e != nil && swept < limit && e.Value.(*entry).call.Outlived(now); e = m.ended.Front() {
		m.remove(e.Value.(*entry))
		swept++
	}
	return swept
}

// makeRoom evicts calls until the bounds hold: the principal's own first.
func (m *Memory) makeRoom(principal string) {
	for m.quota.PrincipalOverflows(principal) {
		m.remove(m.evictableOf[principal].Front().Value.(*entry))
	}
	for m.quota.Overflows() {
		m.remove(m.evictable.Front().Value.(*entry))
	}
}

func (m *Memory) remove(k *entry) {
	delete(m.byID, k.call.ID)
	delete(m.waiting, k.call.ID)
	delete(m.unfinished, k.call.ID)
	if k.call.Key != "" {
		delete(m.byKey, scopedKey{k.call.Scope, k.call.Key})
	}
	if k.ended != nil {
		m.ended.Remove(k.ended)
	}
	if k.evictable != nil {
		m.evictable.Remove(k.evictable)
		of := m.evictableOf[k.call.Scope.Principal]
		if of.Remove(k.ofPrincipal); of.Len() == 0 {
			delete(m.evictableOf, k.call.Scope.Principal)
		}
	}
	m.quota.Update(k.call.Scope.Principal, k.call.Footprint(), nil)
}

// Has reports whether the call is kept here.
func (m *Memory) Has(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byID[id] != nil
}

// Forget removes a call, whatever its step, and notifies those who watch it.
func (m *Memory) Forget(id string) {
	m.mu.Lock()
	if k := m.byID[id]; k != nil {
		m.remove(k)
	}
	m.mu.Unlock()
	m.watchers.Notify(id)
}
