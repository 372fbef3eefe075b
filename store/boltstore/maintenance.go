package boltstore

import (
	"context"
	"errors"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/internal/codec"
)

// Watch returns a watch for the next change of a call.
func (f *Store) Watch(id string) (*store.Watch, error) {
	inMemory, lock := f.pin(id)
	defer lock.RUnlock()
	if inMemory {
		return f.brief.Watch(id)
	}
	return f.watchers.Add(id)
}

// Recover returns at most limit calls that need to be recovered for the reason. Calls
// of the processes that had the file before are abandoned or unsettled.
func (f *Store) Recover(_ context.Context, reason store.Reason, limit int) ([]store.Call, error) {
	switch reason {
	case store.Abandoned:
		return f.drain(&f.unrecovered, limit, func(c *store.Call) bool { return c.Step != store.Ended })
	case store.Unsettled:
		return f.drain(&f.unsettled, limit, func(c *store.Call) bool { return c.Step == store.Ended })
	case store.Expired:
		return f.expired(limit)
	}
	return nil, store.ErrNoReason
}

func (f *Store) drain(of *[]string, limit int, fit func(*store.Call) bool) (calls []store.Call, err error) {
	f.mu.Lock()
	n := min(max(limit, 0), len(*of))
	ids := (*of)[:n:n]
	*of = (*of)[n:]
	f.mu.Unlock()
	for i, id := range ids {
		c, err := f.load(id)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			f.mu.Lock()
			*of = append(*of, ids[i:]...)
			f.mu.Unlock()
			return calls, err
		case fit(&c):
			calls = append(calls, c)
		}
	}
	return calls, nil
}

// expired returns at most limit waiting calls whose time is over.
func (f *Store) expired(limit int) (due []store.Call, err error) {
	err = f.view(func(t *tables) error {
		for _, id := range t.upTo(dueTable, nil, f.now(), limit) {
			c, err := t.load(id)
			if err != nil {
				return store.Unavailable(err)
			}
			due = append(due, c)
		}
		return nil
	})
	return due, err
}

// Sweep removes at most limit calls that have ended longer than Retention ago, and approvals
// as SweepApprovals does.
func (f *Store) Sweep(ctx context.Context, limit int) (int, error) {
	swept := 0
	if f.brief != nil {
		swept, _ = f.brief.Sweep(ctx, limit) // which cannot fail
	}
	result := make(chan int, 1)
	err := f.writer.apply(ctx, func(t *tables) (func(), error) {
		after, n := f.removeCalls(t, t.upTo(endedTable, nil, f.now().Add(-store.Retention), limit))
		result <- n
		return after, nil
	}, nil)
	if err != nil {
		return swept, err
	}
	swept += <-result
	approvals, err := f.SweepApprovals(ctx, limit-swept)
	return swept + approvals, err
}

// evict removes calls while more is kept than the bounds say: the oldest of all, or
// those of principals that have more than their share.
func (f *Store) evict(t *tables) (func(), error) {
	f.mu.Lock()
	var ids []string
	if f.quota.Overflows() {
		ids = t.upTo(evictableTable, nil, f.now(), evictBatch)
	} else {
		for principal := range f.quota.Overflowing() {
			ids = append(ids, t.upTo(evictableByPrincipalTable, codec.PrincipalHash(principal), f.now(), evictBatch)...)
		}
	}
	f.mu.Unlock()
	after, _ := f.removeCalls(t, ids)
	return after, nil
}

// removeCalls removes calls.
func (f *Store) removeCalls(t *tables, ids []string) (after func(), n int) {
	var gone []store.Call
	for _, id := range ids {
		if c, err := t.load(id); err == nil {
			t.remove(&c)
			gone = append(gone, c)
		}
	}
	return func() {
		for i := range gone {
			f.subtract(&gone[i])
		}
	}, len(gone)
}
