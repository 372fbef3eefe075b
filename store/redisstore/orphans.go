package redisstore

import (
	"context"
	"errors"

	"github.com/callgate/callgate/store"
)

// Orphans are calls without an outcome that Redis holds under this process's name and
// that this process does not run. A request can arrive long after its sender gave it
// up, behind the one that retracted the call; a replica that is promoted may have the
// call and not its retraction; and a journal may have been restored while it held a
// dispatch that was then refused. Left alone, orphans would hold their keys for as
// long as this process lives.

// orphanBatch is how many calls are examined in one round. They are drawn at random,
// so that an orphan is found among many calls that run.
const orphanBatch = 256

// retractOrphans removes orphans from Redis. A call that was not refused is in the
// journal: then Redis has an earlier step of it, and gets its end.
func (r *Store) retractOrphans() {
	l, err := r.connection()
	if err != nil {
		return
	}
	for i := range l.partitions {
		ids, err := r.runAt(r.ctx, l, i, 0, sampleScript, r.owner, orphanBatch)
		if err != nil {
			return
		}
		for _, id := range ids {
			if r.isKnown(id) {
				continue
			}
			if err := r.retractOrphan(r.ctx, l, i, id); err != nil {
				return
			}
		}
	}
}

func (r *Store) retractOrphan(ctx context.Context, l *conn, at int, id string) error {
	c, err := r.journal.Get(ctx, id, store.OfAnyone())
	switch {
	case err == nil && c.Step == store.Ended:
		return r.restoreCall(ctx, &l.partitions[at], &c)
	case err == nil:
		return nil // it was refused a moment ago, and is removed from the journal soon
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	_, err = r.runAt(ctx, l, at, 0, orphanScript, id, r.owner)
	return err
}

// isKnown reports whether a call is being opened or dispatched, or runs. Every call
// that Redis held when it was asked, and is no orphan, was known here before that.
func (r *Store) isKnown(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, mine := r.running[id]
	return mine || r.beingOpened[id] || r.opened.Get(id) != nil
}
