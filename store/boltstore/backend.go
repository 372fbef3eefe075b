package boltstore

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/internal/codec"
)

// backend is a file as the back end of an engine.
type backend struct{ *file }

// file has records and rows on the disk, and those that are volatile in memory.
type file struct {
	writer   *writer
	takeBack func(context.Context, *store.Commit) error // a commit that was refused and is done

	mu    sync.Mutex
	quota store.Quota
	// held are records that are volatile, whose revisions are even, and dispatched calls as the file has
	// them, which are about to end.
	held map[store.Key]store.Record
	rev  store.Rev // of the last that was volatile
	// written counts the commits that the file has: what was not in it at one count is not in it at the
	// same one.
	written uint64
}

func isVolatile(rev store.Rev) bool { return rev != 0 && rev&1 == 0 }

// view runs read in a transaction.
func (f *file) view(read func(*tables) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer safe.Catch(func(error) { err = store.Unavailable(codec.ErrCorrupt) })
	return f.writer.db.View(func(tx *bbolt.Tx) error { return read(&tables{tx: tx}) })
}

// View implements store.Backend.
func (f backend) View(_ context.Context, keys []store.Key, _ bool, found []store.Record) ([]store.Record, error) {
	n, missing := len(found), false
	f.mu.Lock()
	written := f.written
	for _, key := range keys {
		record, ok := f.held[key]
		found, missing = append(found, record), missing || !ok
	}
	f.mu.Unlock()
	if !missing {
		return found, nil
	}
	err := f.view(func(t *tables) (err error) {
		for i, key := range keys {
			if at := &found[n+i]; at.Rev == 0 && err == nil {
				*at, err = t.record(key)
				at.Read = written
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Scan implements store.Backend.
func (f backend) Scan(_ context.Context, index store.Index, behind, to store.Row, limit int, rows []store.Row) ([]store.Row, error) {
	most := len(rows) + limit
	err := f.view(func(t *tables) error {
		t.rows(index, behind, to, func(row store.Row) bool {
			if len(rows) < most {
				rows = append(rows, row)
			}
			return len(rows) < most
		})
		return nil
	})
	return rows, err
}

// Commit implements store.Backend.
func (f backend) Commit(ctx context.Context, c *store.Commit) (store.Outcome, error) {
	if c.Volatile {
		return f.commitVolatile(c)
	}
	writes, err := f.writesOf(c)
	if err != nil {
		return store.Conflicted, err
	}
	// The caller may have left, and use c again, before this is written.
	kept := &store.Commit{Changes: slices.Clone(c.Changes), Counts: slices.Clone(c.Counts), Bounds: c.Bounds, Rooms: slices.Clone(c.Rooms)}
	outcome := store.Conflicted
	j := newJob(func(t *tables) (after func(), err error) {
		outcome = f.decide(t, kept)
		if outcome != store.Committed {
			return nil, nil
		}
		t.write(writes)
		return func() { f.committed(kept, writes) }, nil
	})
	if j.then = c.Done; c.Done != nil {
		if !f.writer.queue(j) {
			return store.Full, nil
		}
		return store.Riding, nil
	}
	j.late = func() {
		if outcome == store.Committed {
			f.late(kept)
		}
	}
	if err = f.writer.apply(ctx, j); err != nil {
		return store.Conflicted, err
	}
	c.Own, c.All = kept.Own, kept.All
	return outcome, nil
}

// writesOf returns what a commit writes.
func (f *file) writesOf(c *store.Commit) (writes []write, err error) {
	writes = make([]write, 0, 3*len(c.Changes)+len(c.Remove)+len(c.Add))
	for i := range c.Changes {
		r := &c.Changes[i]
		if r.Now == r.Was.Value {
			continue
		}
		if writes, err = writesOf(r.Key, r.Was.Value, r.Now, writes); err != nil {
			return nil, err
		}
		if isVolatile(r.Was.Rev) { // the file has no rows of it
			writes = rowWrites(store.Entries(r.Now, nil), present, writes)
		}
	}
	return rowWrites(c.Add, present, rowWrites(c.Remove, nil, writes)), nil
}

// decide says what becomes of a commit. What a transaction has written comes before what is held.
func (f *file) decide(t *tables, c *store.Commit) store.Outcome {
	for i := range c.Changes {
		r := &c.Changes[i]
		if rev := revision(t.raw(r.Key)); rev != r.Was.Rev && (rev != 0 || !isVolatile(r.Was.Rev)) {
			return store.Conflicted
		}
	}
	for _, room := range c.Rooms {
		n := 0
		t.rows(room.Index, room.Behind, store.Row{At: 1<<63 - 1}, func(store.Row) bool {
			n++
			return n < room.Max
		})
		if n >= room.Max {
			return store.Full
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range c.Changes {
		if r := &c.Changes[i]; r.Was.Rev&1 == 0 && f.held[r.Key].Rev != r.Was.Rev {
			return store.Conflicted
		}
	}
	if c.Bounds != nil && f.quota.Admit(c.Counts[0].Principal) != nil {
		return store.Full
	}
	return store.Committed
}

// committed follows a commit that is durable: what it has put is no longer volatile, also where what was
// volatile was removed meanwhile, or put anew, since the caller had left.
func (f *file) committed(c *store.Commit, writes []write) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written++
	for i := range c.Changes {
		r := &c.Changes[i]
		if r.Now == r.Was.Value {
			continue
		}
		is := f.held[r.Key]
		delete(f.held, r.Key)
		if call, ok := r.Now.(*store.Call); ok && call.Step == store.Dispatched {
			f.held[r.Key] = store.Record{Rev: revisionOf(r.ID, writes), Value: call}
		}
		if is.Rev == r.Was.Rev {
			continue
		}
		if call, ok := r.Was.Value.(*store.Call); ok && isVolatile(r.Was.Rev) { // which was no longer counted
			f.quota.Add(store.Count{Principal: call.Scope.Principal, Of: call.Usage()})
		}
		if call, ok := is.Value.(*store.Call); ok && isVolatile(is.Rev) {
			f.quota.Add(store.Count{Principal: call.Scope.Principal, Of: store.Usage{}.Minus(call.Usage())})
		}
	}
	c.Own, c.All = f.quota.Add(c.Counts...)
}

// revisionOf returns the revision of a call that was written.
func revisionOf(id string, writes []write) store.Rev {
	i := slices.IndexFunc(writes, func(w write) bool { return &w.table[0] == &callsTable[0] && string(w.key) == id })
	return revision(writes[i].value, nil)
}

// late takes back what was done when nobody waited for it any more.
func (f *file) late(c *store.Commit) {
	for f.takeBack(context.Background(), c) != nil {
		if f.writer.failed.Load() != nil || !f.writer.pause() {
			return
		}
	}
}

// commitVolatile makes a commit in memory. It waits for nothing.
func (f *file) commitVolatile(c *store.Commit) (store.Outcome, error) {
	if c.Bounds != nil {
		if err := f.writer.ready(); err != nil {
			return store.Conflicted, store.Unavailable(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range c.Changes {
		r := &c.Changes[i]
		rev := f.held[r.Key].Rev
		if same := rev == r.Was.Rev && rev != 0; !same && (rev != 0 || isVolatile(r.Was.Rev) || r.Was.Read != f.written) {
			return store.Conflicted, nil
		}
	}
	if c.Bounds != nil && f.quota.Admit(c.Counts[0].Principal) != nil {
		return store.Full, nil
	}
	for i := range c.Changes {
		switch r := &c.Changes[i]; r.Now {
		case r.Was.Value:
		case nil:
			delete(f.held, r.Key)
		default:
			f.rev += 2
			f.held[r.Key] = store.Record{Rev: f.rev, Value: r.Now}
		}
	}
	c.Own, c.All = f.quota.Add(c.Counts...)
	return store.Committed, nil
}
