package store

import (
	"context"
	"slices"
)

// Unfinished returns at most limit calls without an outcome whose ids are behind after, in the
// order of their ids. It is for operators: it changes nothing.
func (m *Memory) Unfinished(_ context.Context, after string, limit int) ([]Call, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for id := range m.unfinished {
		if id > after {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var calls []Call
	for _, id := range ids[:min(limit, len(ids))] {
		calls = append(calls, m.unfinished[id].call)
	}
	return calls, nil
}
