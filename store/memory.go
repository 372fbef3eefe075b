package store

import (
	"context"
	"sync"
	"time"
)

// Memory keeps calls in this process alone. They end with it, so there is nothing to
// recover. It is safe for concurrent use.
type Memory struct{ *Engine }

// The bounds of a Memory, by default.
const (
	memoryCalls = 100_000
	memoryBytes = 256 << 20
)

// NewMemory returns an empty store.
func NewMemory(now func() time.Time) *Memory { return NewBoundedMemory(now, Bounds{}) }

// NewBoundedMemory returns an empty store with these bounds; a bound of 0 has its default.
func NewBoundedMemory(now func() time.Time, bounds Bounds) *Memory {
	bounds = bounds.WithDefaults(memoryCalls, memoryBytes)
	return &Memory{NewEngine(newMemory(bounds), Process{}, now, bounds)}
}

// memory is the back end of a process: values as they are.
type memory struct {
	mu      sync.Mutex
	rev     Rev
	records [kinds]map[string]*slot
	indexes [indexNames]memoryIndex
	quota   Quota
}

// slot has a record. Its rev is 0 once it was removed.
type slot struct {
	rev   Rev
	value Value
}

type memoryIndex struct {
	all rows
	of  map[string]*rows
}

func newMemory(bounds Bounds) *memory {
	m := &memory{quota: NewQuota(bounds)}
	for kind := range m.records {
		m.records[kind] = map[string]*slot{}
	}
	return m
}

func (m *memory) View(_ context.Context, keys []Key, _ bool, found []Record) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if s := m.records[key.Kind][key.ID]; s != nil {
			found = append(found, Record{Rev: s.rev, Value: s.value, slot: s})
		} else {
			found = append(found, Record{})
		}
	}
	return found, nil
}

func (m *memory) Commit(_ context.Context, c *Commit) (Outcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range c.Changes {
		r := &c.Changes[i]
		if r.Was.slot != nil && r.Was.slot.rev != r.Was.Rev || r.Was.slot == nil && m.records[r.Kind][r.ID] != nil {
			return Conflicted, nil
		}
	}
	if c.Bounds != nil && m.quota.Admit(c.Counts[0].Principal) != nil {
		return Full, nil
	}
	for _, room := range c.Rooms {
		if r := m.rows(room.Index); r != nil && r.behind(room.Behind, room.Max) >= room.Max {
			return Full, nil
		}
	}
	m.rev++
	for i := range c.Changes {
		switch r := &c.Changes[i]; {
		case r.Now == r.Was.Value:
		case r.Now == nil:
			*r.Was.slot = slot{}
			delete(m.records[r.Kind], r.ID)
		case r.Was.slot == nil:
			m.records[r.Kind][r.ID] = &slot{m.rev, r.Now}
		default:
			*r.Was.slot = slot{m.rev, r.Now}
		}
	}
	for i := range c.Remove {
		e := &c.Remove[i]
		r := m.rows(e.Index)
		if r.remove(e.Row); e.Of != "" && len(r.chunks) == 0 {
			delete(m.indexes[e.Name].of, e.Of)
		}
	}
	for i := range c.Add {
		e := &c.Add[i]
		r := m.rows(e.Index)
		if r == nil {
			if r = new(rows); m.indexes[e.Name].of == nil {
				m.indexes[e.Name].of = map[string]*rows{}
			}
			m.indexes[e.Name].of[e.Of] = r
		}
		r.add(e.Row)
	}
	c.Own, c.All = m.quota.Add(c.Counts...)
	return Committed, nil
}

// rows returns the rows of an index; nil: there are none.
func (m *memory) rows(of Index) *rows {
	if of.Of == "" {
		return &m.indexes[of.Name].all
	}
	return m.indexes[of.Name].of[of.Of]
}

func (m *memory) Scan(_ context.Context, index Index, behind, to Row, limit int, found []Row) ([]Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.rows(index); r != nil {
		found = r.between(behind, to, limit, found)
	}
	return found, nil
}
