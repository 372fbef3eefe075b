package store

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Memory keeps calls in this process alone: they end with it. It is safe for
// concurrent use.
type Memory struct {
	now   func() time.Time
	calls int // most that are kept
	bytes int // most that their results take

	mu    sync.Mutex
	byID  map[string]*list.Element
	byKey map[scopedKey]*list.Element
	order *list.List // of *kept, oldest first
	held  int        // bytes of results
}

type scopedKey struct {
	scope Scope
	key   string
}

type kept struct {
	call   Call
	opened time.Time
}

// The bounds of a Memory.
const (
	memoryCalls = 100_000
	memoryBytes = 256 << 20
)

// NewMemory returns an empty store.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{
		now: now, calls: memoryCalls, bytes: memoryBytes,
		byID: map[string]*list.Element{}, byKey: map[scopedKey]*list.Element{}, order: list.New(),
	}
}

// Open notes a call that is about to be judged. Where its key has started one
// already, that one is returned, and nothing is noted.
func (m *Memory) Open(_ context.Context, call Call) (prior *Call, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	if call.Key != "" {
		if e, taken := m.byKey[scopedKey{call.Scope, call.Key}]; taken {
			found := e.Value.(*kept).call
			return &found, nil
		}
	}
	if !m.makeRoom() {
		return nil, ErrFull
	}
	call.State = Pending
	e := m.order.PushBack(&kept{call, m.now()})
	m.byID[call.ID] = e
	if call.Key != "" {
		m.byKey[scopedKey{call.Scope, call.Key}] = e
	}
	return nil, nil
}

// Close notes what became of a call.
func (m *Memory) Close(_ context.Context, id string, state State, answer Answer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byID[id]
	if !ok {
		return ErrAbsent
	}
	k := e.Value.(*kept)
	m.held += len(answer.Result) - len(k.call.Answer.Result)
	k.call.State, k.call.Answer = state, answer
	m.makeRoom()
	return nil
}

// Drop forgets a call that was not dispatched; its key is free again.
func (m *Memory) Drop(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byID[id]; ok {
		m.remove(e)
	}
	return nil
}

// Get returns a call of a scope. A call of another scope is absent.
func (m *Memory) Get(_ context.Context, id string, principal string) (Call, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	e, ok := m.byID[id]
	if !ok || e.Value.(*kept).call.Scope.Principal != principal {
		return Call{}, ErrAbsent
	}
	return e.Value.(*kept).call, nil
}

// expire forgets what need not be kept any longer.
func (m *Memory) expire() {
	for e := m.order.Front(); e != nil; {
		k, next := e.Value.(*kept), e.Next()
		if m.now().Sub(k.opened) < Keep {
			return
		}
		if k.call.State != Pending {
			m.remove(e)
		}
		e = next
	}
}

// makeRoom forgets the oldest calls that have ended and that no key needs, until
// one more fits.
func (m *Memory) makeRoom() bool {
	for e := m.order.Front(); e != nil && (m.order.Len() >= m.calls || m.held > m.bytes); {
		k, next := e.Value.(*kept), e.Next()
		if k.call.Key == "" && k.call.State != Pending {
			m.remove(e)
		}
		e = next
	}
	return m.order.Len() < m.calls && m.held <= m.bytes
}

func (m *Memory) remove(e *list.Element) {
	k := e.Value.(*kept)
	delete(m.byID, k.call.ID)
	if k.call.Key != "" {
		delete(m.byKey, scopedKey{k.call.Scope, k.call.Key})
	}
	m.held -= len(k.call.Answer.Result)
	m.order.Remove(e)
}
