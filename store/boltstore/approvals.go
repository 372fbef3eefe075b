package boltstore

import (
	"context"
	"errors"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// scanApprovals creates the tables of approvals where a file of an earlier version has none,
// and reads them once.
func (f *Store) scanApprovals(tx *bbolt.Tx) error {
	f.consents = consents{byDigest: map[string]int{}, grants: map[string]approval.Grant{}, byKey: map[string][]string{}}
	for _, name := range approvalTables {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	t := &tables{tx: tx}
	err := tx.Bucket(approvalsTable).ForEach(func(k, _ []byte) error {
		a, err := t.loadApproval(string(k))
		if err == nil {
			f.countDigest(nil, &a)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := f.scanNotices(t); err != nil {
		return err
	}
	return tx.Bucket(grantsTable).ForEach(func(_, v []byte) error {
		g, err := unseal[approval.Grant](v)
		if err == nil {
			f.consents.add(g)
		}
		return err
	})
}

// countDigest brings the count of a digest up to date.
func (f *Store) countDigest(before, after *approval.Approval) {
	for _, c := range []struct {
		of   *approval.Approval
		more int
	}{{before, -1}, {after, 1}} {
		if c.of == nil || string(rowsOfApproval(c.of)[0].table) != string(byDigestTable) {
			continue
		}
		if f.consents.byDigest[c.of.Digest] += c.more; f.consents.byDigest[c.of.Digest] <= 0 {
			delete(f.consents.byDigest, c.of.Digest)
		}
	}
}

// Ask keeps an approval, or joins one.
func (f *Store) Ask(ctx context.Context, a approval.Approval) (kept approval.Approval, joined bool, err error) {
	if err := store.CheckNew(&a); err != nil {
		return kept, false, err
	}
	type answer struct {
		kept   approval.Approval
		joined bool
	}
	result := make(chan answer, 1)
	err = f.writer.apply(ctx, func(t *tables) (func(), error) {
		now := f.now()
		if same, err := t.loadApproval(a.ID); !errors.Is(err, store.ErrNotFound) {
			result <- answer{same, false}
			return nil, errors.Join(err, a.SameQuestion(&same))
		}
		found, err := t.approvalsOf(a.Digest)
		if err != nil {
			return nil, err
		}
		if joined := store.Joined(found, &a, now); joined != nil {
			result <- answer{*joined, true}
			return nil, nil
		}
		if all, own := t.countLive(a.Principal, now); all >= store.MaxLive || own >= store.MaxLiveOfPrincipal {
			return nil, store.ErrFull
		}
		result <- answer{a, false}
		return f.replaced(nil, &a), t.saveApproval(nil, &a)
	}, nil)
	if err != nil {
		return kept, false, err
	}
	got := <-result
	return got.kept, got.joined, nil
}

// replaced is what follows once an approval has durably replaced another.
func (f *Store) replaced(before, after *approval.Approval) func() {
	return func() {
		f.mu.Lock()
		f.countDigest(before, after)
		f.mu.Unlock()
		f.approvalWatchers.Notify(after.ID)
		f.notices.Changed(after.ID, f.now())
	}
}

// changeApproval makes one change of an approval.
func (f *Store) changeApproval(ctx context.Context, id string, change func(*approval.Approval) error) (approval.Approval, error) {
	result := make(chan approval.Approval, 1)
	err := f.writer.apply(ctx, func(t *tables) (func(), error) {
		was, err := t.loadApproval(id)
		if err != nil {
			return nil, err
		}
		a := was
		if err := change(&a); err != nil {
			return nil, err
		}
		result <- a
		if a.Revision == was.Revision {
			return nil, nil
		}
		return f.replaced(&was, &a), t.saveApproval(&was, &a)
	}, nil)
	if err != nil {
		return approval.Approval{}, err
	}
	return <-result, nil
}

// Vote casts a vote.
func (f *Store) Vote(ctx context.Context, id string, v approval.Vote) (approval.Approval, error) {
	return f.changeApproval(ctx, id, func(a *approval.Approval) error {
		_, err := a.Cast(v, f.now())
		return err
	})
}

// EndApproval ends an approval.
func (f *Store) EndApproval(ctx context.Context, id string, e approval.Ending) (approval.Approval, error) {
	return f.changeApproval(ctx, id, func(a *approval.Approval) error { return a.Finish(e, f.now()) })
}

// Approval returns an approval.
func (f *Store) Approval(_ context.Context, id string) (a approval.Approval, err error) {
	err = f.view(func(t *tables) error {
		a, err = t.loadApproval(id)
		return err
	})
	if err == nil && a.Outlived(f.now()) {
		err = store.ErrNotFound
	}
	if err != nil {
		return approval.Approval{}, err
	}
	return a, nil
}

// Approvals returns approvals in the order of their ids.
func (f *Store) Approvals(_ context.Context, filter store.ApprovalFilter) (found []approval.Approval, err error) {
	now := f.now()
	take := func(t *tables, id string) error {
		a, err := t.loadApproval(id)
		if err != nil {
			return store.Unavailable(err)
		}
		if filter.Matches(&a, now) && !a.Outlived(now) {
			found = append(found, a)
		}
		return nil
	}
	err = f.view(func(t *tables) error {
		if filter.Live {
			var ids []string
			c := t.tx.Bucket(closingTable).Cursor()
			for k, _ := c.Seek(timeKey(nil, now, "")); k != nil; k, _ = c.Next() {
				if id := string(k[8:]); id > filter.After {
					ids = append(ids, id)
				}
			}
			slices.Sort(ids)
			for i := 0; i < len(ids) && len(found) < filter.Limit; i++ { // a record may be long
				if err := take(t, ids[i]); err != nil {
					return err
				}
			}
			return nil
		}
		c := t.tx.Bucket(approvalsTable).Cursor()
		for k, _ := c.Seek([]byte(filter.After)); k != nil && len(found) < filter.Limit; k, _ = c.Next() {
			if err := take(t, string(k)); err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// Consents returns the approvals of a digest, and the grants of keys.
func (f *Store) Consents(_ context.Context, principal, digest string, keys []string) (found []approval.Approval, grants []approval.Grant, err error) {
	if err := f.writer.ready(); err != nil {
		return nil, nil, store.Unavailable(err)
	}
	now := f.now()
	f.mu.Lock()
	for _, key := range keys {
		for _, id := range f.consents.byKey[key] {
			if g := f.consents.grants[id]; g.Live(now) {
				grants = append(grants, g)
			}
		}
	}
	indexed := f.consents.byDigest[digest] > 0
	f.mu.Unlock()
	if !indexed {
		return nil, grants, nil
	}
	err = f.view(func(t *tables) error {
		found, err = t.approvalsOf(digest)
		return err
	})
	found = slices.DeleteFunc(found, func(a approval.Approval) bool { return a.Principal != principal || !a.Live(now) && !a.Stands(now) })
	return found, grants, err
}

// LiveApprovals returns which approvals are live, and how many grants.
func (f *Store) LiveApprovals(context.Context) (live []store.LiveApproval, grants int, err error) {
	now := f.now()
	err = f.view(func(t *tables) error {
		c := t.tx.Bucket(closingTable).Cursor()
		for k, _ := c.Seek(timeKey(nil, now, "")); k != nil; k, _ = c.Next() {
			a, err := t.loadApproval(string(k[8:]))
			if err != nil {
				return store.Unavailable(err)
			}
			if a.Live(now) {
				live = append(live, store.LiveApproval{ID: a.ID, Revision: a.Revision})
			}
		}
		return nil
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.consents.grants {
		if g.Live(now) {
			grants++
		}
	}
	return live, grants, err
}

// Lapsed returns approvals that have expired and are not marked, the oldest first.
func (f *Store) Lapsed(_ context.Context, limit int) (lapsed []approval.Approval, err error) {
	err = f.view(func(t *tables) error {
		for _, id := range t.upTo(closingTable, nil, f.now(), limit) {
			a, err := t.loadApproval(id)
			if err != nil {
				return store.Unavailable(err)
			}
			lapsed = append(lapsed, a)
		}
		return nil
	})
	return lapsed, err
}

// WatchApproval returns a watch for the next change of an approval.
func (f *Store) WatchApproval(id string) (*store.Watch, error) { return f.approvalWatchers.Add(id) }

// SweepApprovals removes approvals that are outlived, and grants that are over.
func (f *Store) SweepApprovals(ctx context.Context, limit int) (int, error) {
	if idle, err := f.nothingToSweep(); err != nil || idle || limit <= 0 {
		return 0, err
	}
	result := make(chan int, 1)
	err := f.writer.apply(ctx, func(t *tables) (func(), error) {
		var afters []func()
		now := f.now()
		old := now.Add(-approval.Retention)
		for _, id := range slices.Concat(t.upTo(overTable, nil, old, limit), t.upTo(closingTable, nil, old, limit)) {
			a, err := t.loadApproval(id)
			if err == nil && len(afters) < limit {
				t.removeApproval(&a)
				afters = append(afters, f.removedApproval(&a))
			}
		}
		f.mu.Lock()
		grants := slices.Collect(maps.Values(f.consents.grants))
		f.mu.Unlock()
		for _, g := range grants {
			if len(afters) < limit && !g.Live(now) {
				afters = append(afters, f.removeGrant(t, g))
			}
		}
		result <- len(afters)
		return func() {
			for _, after := range afters {
				after()
			}
		}, nil
	}, nil)
	if err != nil {
		return 0, err
	}
	return <-result, nil
}

// nothingToSweep spares the disk a transaction where there is nothing to remove.
func (f *Store) nothingToSweep() (idle bool, err error) {
	now := f.now()
	f.mu.Lock()
	for _, g := range f.consents.grants {
		if !g.Live(now) {
			f.mu.Unlock()
			return false, nil
		}
	}
	f.mu.Unlock()
	old := now.Add(-approval.Retention)
	err = f.view(func(t *tables) error {
		idle = len(t.upTo(overTable, nil, old, 1))+len(t.upTo(closingTable, nil, old, 1)) == 0
		return nil
	})
	return idle, err
}

func (f *Store) removedApproval(a *approval.Approval) func() {
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.countDigest(a, nil)
		f.notices.Remove(a.ID)
	}
}
