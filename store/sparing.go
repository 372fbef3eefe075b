package store

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"
	"time"
)

// Sparing keeps in its file what somebody may come back for after a crash: calls
// of a key, which their caller repeats, and calls whose tool answers later. All
// others are kept in this process alone. Whoever waits for one of those has lost
// it with the process; that it was dispatched, and that its outcome is not known,
// the audit log says. So a call without a key costs no write beside its two
// records there. It is safe for concurrent use.
type Sparing struct {
	*File
	brief *Memory
	// moving is held while a call goes from the memory to the file, so that it is
	// in exactly one of them for everybody else. Others, of which each has one of
	// these, do not wait for its writes.
	moving [256]sync.RWMutex
}

// Spare returns a store that spares a file.
func Spare(file *File) *Sparing { return &Sparing{File: file, brief: NewMemory(file.now)} }

// of is the lock of a call.
func (s *Sparing) of(id string) *sync.RWMutex {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // a hash takes everything
	return &s.moving[h.Sum32()%uint32(len(s.moving))]
}

// has tells whether a call is kept in memory.
func (m *Memory) has(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byID[id] != nil
}

// forget lets a call go, however far it has come, and wakes those who watch it.
func (m *Memory) forget(id string) {
	m.mu.Lock()
	if k := m.byID[id]; k != nil {
		m.remove(k)
	}
	m.mu.Unlock()
	m.watchers.notify(id)
}

// Open notes a call that is about to be judged. Where its key has started one
// already, that one is returned, and nothing is noted.
func (s *Sparing) Open(ctx context.Context, call Call) (prior *Call, err error) {
	if call.Key == "" || s.brief.has(call.ID) {
		return s.brief.Open(ctx, call)
	}
	return s.File.Open(ctx, call)
}

// Dispatch notes that the tool of an opened call is about to be called.
func (s *Sparing) Dispatch(ctx context.Context, id string, task Task) error {
	if s.brief.has(id) {
		return s.brief.Dispatch(ctx, id, task)
	}
	return s.File.Dispatch(ctx, id, task)
}

// Redispatch notes that the tool of a call is about to be called once more, and
// returns for which time. A call whose effect is once is refused.
func (s *Sparing) Redispatch(ctx context.Context, id string) (attempt int, err error) {
	s.of(id).RLock()
	defer s.of(id).RUnlock()
	if s.brief.has(id) {
		return s.brief.Redispatch(ctx, id)
	}
	return s.File.Redispatch(ctx, id)
}

// Defer notes that the tool answers later, and until when that is waited for. From
// then on the call is in the file.
func (s *Sparing) Defer(ctx context.Context, id string, until time.Time) error {
	if !s.brief.has(id) {
		return s.File.Defer(ctx, id, until)
	}
	s.of(id).Lock()
	defer s.of(id).Unlock()
	call, err := s.brief.Find(ctx, id)
	if err == nil {
		err = call.requireStep(Dispatched)
	}
	if err != nil {
		return err
	}
	if err := s.move(ctx, call, until); err != nil {
		return err
	}
	s.brief.forget(id)
	return nil
}

// move puts a dispatched call into the file, as one that waits.
func (s *Sparing) move(ctx context.Context, call Call, until time.Time) error {
	// What an attempt before has left there, which could not be told, goes on.
	if _, err := s.File.Open(ctx, call); err != nil && !errors.Is(err, ErrDispatched) {
		return err
	}
	if err := s.File.Dispatch(ctx, call.ID, call.Task); err != nil && !errors.Is(err, ErrDispatched) {
		return errors.Join(err, s.File.Drop(ctx, call.ID))
	}
	return s.File.Defer(ctx, call.ID, until)
}

// Finish ends a call, and returns it as it stands then. With ErrEnded that is
// the call as another has finished it.
func (s *Sparing) Finish(ctx context.Context, id string, ending Ending) (Call, error) {
	s.of(id).RLock()
	defer s.of(id).RUnlock()
	if s.brief.has(id) {
		return s.brief.Finish(ctx, id, ending)
	}
	return s.File.Finish(ctx, id, ending)
}

// Settle notes that the outcome of a call stands in the audit log. A crash may
// lose that.
func (s *Sparing) Settle(id string) {
	if !s.brief.has(id) {
		s.File.Settle(id)
	}
}

// SetMetadata replaces the note of a call, which waits or has ended, as at says. A call
// whose note is neither was nor the new one is refused with ErrConflict: of two that
// have read the same note, one replaces it.
func (s *Sparing) SetMetadata(ctx context.Context, id string, at Step, was, note []byte) error {
	s.of(id).RLock()
	defer s.of(id).RUnlock()
	if s.brief.has(id) {
		return s.brief.SetMetadata(ctx, id, at, was, note)
	}
	return s.File.SetMetadata(ctx, id, at, was, note)
}

// Drop forgets a call that was not dispatched; its key is free again. Others
// stay.
func (s *Sparing) Drop(ctx context.Context, id string) error {
	if s.brief.has(id) {
		return s.brief.Drop(ctx, id)
	}
	return s.File.Drop(ctx, id)
}

// Get returns a call of a principal. Another's is absent.
func (s *Sparing) Get(ctx context.Context, id, principal string) (Call, error) {
	return owned(s.Find(ctx, id))(principal)
}

// Find returns a call, whosever it is.
func (s *Sparing) Find(ctx context.Context, id string) (Call, error) {
	s.of(id).RLock()
	defer s.of(id).RUnlock()
	if call, err := s.brief.Find(ctx, id); !errors.Is(err, ErrNotFound) {
		return call, err
	}
	return s.File.Find(ctx, id)
}

// Deliver notes that the result of a principal's call enters its thread, and
// tells whether it does so for the first time.
func (s *Sparing) Deliver(ctx context.Context, id, principal string) (first bool, err error) {
	s.of(id).RLock()
	defer s.of(id).RUnlock()
	if s.brief.has(id) {
		return s.brief.Deliver(ctx, id, principal)
	}
	return s.File.Deliver(ctx, id, principal)
}

// Watch waits for a change of a call.
func (s *Sparing) Watch(id string) (*Watch, error) {
	s.of(id).RLock()
	defer s.of(id).RUnlock()
	if s.brief.has(id) {
		return s.brief.Watch(id)
	}
	return s.File.Watch(id)
}

// Sweep forgets calls that ended a day ago, a limited number at once.
func (s *Sparing) Sweep(ctx context.Context, limit int) (int, error) {
	brief, _ := s.brief.Sweep(ctx, limit) // which cannot fail
	swept, err := s.File.Sweep(ctx, limit)
	return brief + swept, err
}
