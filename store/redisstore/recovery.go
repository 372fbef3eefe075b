package redisstore

import (
	"context"
	"errors"

	"github.com/callgate/callgate/store"
)

// Recover returns at most limit calls that need to be recovered for the reason: abandoned
// or expired calls of any process.
func (r *Store) Recover(ctx context.Context, reason store.Reason, limit int) ([]store.Call, error) {
	switch reason {
	case store.Abandoned:
		return r.takeOver(ctx, limit)
	case store.Expired:
		return r.expired(ctx, limit)
	}
	return nil, store.ErrNoReason
}

// takeOver takes over abandoned calls and returns at most limit of them.
func (r *Store) takeOver(ctx context.Context, limit int) (calls []store.Call, err error) {
	l, err := r.connection()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	dirty := r.unreported
	r.unreported = true // until all calls that were taken over have been returned
	r.mu.Unlock()
	whole := true
	for i := range l.partitions {
		reply, err := r.runAt(ctx, l, i, 0, takeScript, r.owner, r.journal.Node+"/", max(0, limit))
		if err != nil {
			return calls, err
		}
		n, err := parseCount(reply)
		if err != nil {
			return calls, err
		}
		if n == 0 && !dirty {
			continue
		}
		some, all, err := r.takenOver(ctx, l, i, limit-len(calls))
		calls = append(calls, some...)
		if err != nil {
			return calls, err
		}
		whole = whole && all
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unreported = !whole
	return calls, nil
}

// takenOver returns calls that this process has taken over and that takeOver has not
// returned yet.
func (r *Store) takenOver(ctx context.Context, l *conn, at, limit int) (calls []store.Call, all bool, err error) {
	ids, err := r.runAt(ctx, l, at, 0, unfinishedScript, r.owner)
	if err != nil {
		return nil, false, err
	}
	for _, id := range ids {
		if r.isRunning(id) {
			continue
		}
		if len(calls) >= limit {
			return calls, false, nil
		}
		reply, err := r.runAt(ctx, l, at, 0, getScript, id)
		c, err := r.parseReply(id, reply, err)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return calls, false, err
		}
		if c.Owner != r.owner || !hasField(reply, "taken") || c.Step == store.Ended || !r.adopt(&c) {
			continue
		}
		r.journal.RecordLater(c)
		calls = append(calls, c)
	}
	return calls, true, nil
}

func (r *Store) isRunning(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, mine := r.running[id]
	return mine || r.opened.Get(id) != nil
}

// adopt makes a call this process's own; it reports false if it already was.
func (r *Store) adopt(c *store.Call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, mine := r.running[c.ID]; mine || c.Step == store.Opened {
		return false
	}
	r.running[c.ID] = c.Scope.Principal
	return true
}

// expired returns at most limit waiting calls whose time is over.
func (r *Store) expired(ctx context.Context, limit int) (due []store.Call, err error) {
	l, err := r.connection()
	if err != nil {
		return nil, err
	}
	for i := range l.partitions {
		ids, err := r.runAt(ctx, l, i, 0, dueScript, max(0, limit-len(due)))
		if err != nil {
			return due, err
		}
		for _, id := range ids {
			reply, err := r.runAt(ctx, l, i, 0, getScript, id)
			c, err := r.parseReply(id, reply, err)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return due, err
			}
			due = append(due, c)
		}
	}
	return due, nil
}

// Sweep removes at most limit calls that have ended longer than Retention ago, and
// approvals as SweepApprovals does, and brings a part of the journal up to date.
func (r *Store) Sweep(ctx context.Context, limit int) (swept int, err error) {
	l, err := r.connection()
	if err != nil {
		return 0, err
	}
	for i := range l.partitions {
		reply, err := r.runAt(ctx, l, i, 0, sweepScript, max(0, limit-swept))
		if err != nil {
			return swept, err
		}
		n, err := parseCount(reply)
		if swept += n; err != nil {
			return swept, err
		}
	}
	if _, err := r.journal.Sweep(ctx, limit); err != nil {
		return swept, err
	}
	approvals, err := r.SweepApprovals(ctx, limit-swept)
	if swept += approvals; err != nil {
		return swept, err
	}
	return swept, r.reconcile(ctx, limit)
}

// reconcile brings the unfinished calls of the journal up to date: other processes
// may have finished them.
func (r *Store) reconcile(ctx context.Context, limit int) error {
	r.mu.Lock()
	from := r.reconcileCursor
	r.mu.Unlock()
	calls, err := r.journal.Unfinished(from, limit)
	if err != nil {
		return err
	}
	next := ""
	for _, c := range calls {
		next = c.ID
		if c.Step == store.Dispatched && r.isRunning(c.ID) {
			continue
		}
		now, err := r.Get(ctx, c.ID, store.Of(c.Scope.Principal))
		if errors.Is(err, store.ErrNotFound) || now.Step == store.Ended {
			r.mu.Lock()
			delete(r.running, c.ID)
			r.mu.Unlock()
		}
		switch {
		case errors.Is(err, store.ErrNotFound):
			r.journal.DeleteLater(c.ID)
		case err != nil:
			return err
		case now.Step.Rank() > c.Step.Rank():
			r.journal.RecordLater(now)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reconcileCursor = next
	return nil
}
