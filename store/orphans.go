package store

import (
	"context"
	"errors"
)

// Strays are calls without an outcome that stand in Redis under this process's name,
// and that it does not run. A question can arrive long after it was given up, behind
// the one that took the call back; a replica that is promoted may know of the call
// and not of its being taken back; and a journal may have been read in while a
// dispatch stood there that was then refused. Left alone, they would hold their keys
// for as long as this process lives.

// orphanBatch is how many calls are looked at in one round. They are drawn, so that
// a stray is found among many that run.
const orphanBatch = 256

// retractOrphans gives strays back. Whatever was not refused is in the journal: Redis
// then has an earlier state of it, and is told what became of the call.
func (r *Redis) retractOrphans() {
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

func (r *Redis) retractOrphan(ctx context.Context, l *conn, at int, id string) error {
	c, err := r.journal.Find(ctx, id)
	switch {
	case err == nil && c.Step == Ended:
		return r.restoreCall(ctx, &l.partitions[at], &c)
	case err == nil:
		return nil // it was refused a moment ago, and is forgotten soon
	case !errors.Is(err, ErrNotFound):
		return err
	}
	_, err = r.runAt(ctx, l, at, 0, orphanScript, id, r.owner)
	return err
}

// isKnown tells whether a call is being opened or dispatched, or runs. What Redis held
// when it was asked was known here before that, or it has gone on since.
func (r *Redis) isKnown(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, mine := r.running[id]
	return mine || r.opening[id] || r.opened.byID[id] != nil
}
