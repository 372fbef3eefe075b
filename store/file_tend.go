package store

import (
	"context"
	"errors"
)

// Watch waits for a change of a call.
func (f *File) Watch(id string) (*Watch, error) { return f.watched.add(id) }

// Recover returns calls without an outcome of the processes that had the file
// before, a limited number at once, each one time.
func (f *File) Recover(_ context.Context, limit int) ([]Call, error) {
	return f.once(&f.left, limit, func(c *Call) bool { return c.Step != Ended })
}

// Unsettled returns calls that ended before this process began and whose outcome may
// not stand in the audit log, a limited number at once, each one time.
func (f *File) Unsettled(_ context.Context, limit int) ([]Call, error) {
	return f.once(&f.owing, limit, func(c *Call) bool { return c.Step == Ended })
}

func (f *File) once(of *[]string, limit int, fit func(*Call) bool) (calls []Call, err error) {
	f.mu.Lock()
	n := min(max(limit, 0), len(*of))
	ids := (*of)[:n:n]
	*of = (*of)[n:]
	f.mu.Unlock()
	for i, id := range ids {
		c, err := f.load(id)
		switch {
		case errors.Is(err, ErrNotFound):
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

// Expired returns waiting calls whose time is over, a limited number at once.
// They wait until they are finished.
func (f *File) Expired(_ context.Context, limit int) (due []Call, err error) {
	err = f.view(func(t *tables) error {
		for _, id := range t.upTo(dueTable, nil, f.now(), limit) {
			c, err := t.load(id)
			if err != nil {
				return unavailable(err)
			}
			due = append(due, c)
		}
		return nil
	})
	return due, err
}

// Sweep forgets calls that ended a day ago, a limited number at once.
func (f *File) Sweep(ctx context.Context, limit int) (int, error) {
	result := make(chan int, 1)
	err := f.writer.do(ctx, func(t *tables) (func(), error) {
		after, n := f.removeAll(t, t.upTo(endedTable, nil, f.now().Add(-Retention), limit))
		result <- n
		return after, nil
	}, nil)
	if err != nil {
		return 0, err
	}
	return <-result, nil
}

// crowd makes room while more is kept than should be: of a principal that has
// too much, its own; else the oldest.
func (f *File) crowd(t *tables) (func(), error) {
	f.mu.Lock()
	var ids []string
	if f.tally.all.excess(f.tally.bounds) {
		ids = t.upTo(spareTable, nil, f.now(), scavenged)
	} else {
		for principal := range f.tally.crowded {
			ids = append(ids, t.upTo(ownTable, principalHash(principal), f.now(), scavenged)...)
		}
	}
	f.mu.Unlock()
	after, _ := f.removeAll(t, ids)
	return after, nil
}

// removeAll forgets calls.
func (f *File) removeAll(t *tables, ids []string) (after func(), n int) {
	var gone []Call
	for _, id := range ids {
		if c, err := t.load(id); err == nil {
			t.remove(&c)
			gone = append(gone, c)
		}
	}
	return func() {
		for i := range gone {
			f.uncount(&gone[i])
		}
	}, len(gone)
}
