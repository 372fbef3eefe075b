package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// maxConflicts bounds how often a change of an approval is made anew since others have
// changed it meanwhile. Each time one of them was successful.
const maxConflicts = 4 * approval.MaxVotes

// Ask keeps an approval, or joins one.
func (r *Store) Ask(ctx context.Context, a approval.Approval) (kept approval.Approval, joined bool, err error) {
	if err := store.CheckNew(&a); err != nil {
		return kept, false, err
	}
	record, err := encodeApproval(a)
	if err != nil {
		return kept, false, err
	}
	restores := r.restores.Load()
	reply, err := r.run(ctx, a.Principal, askScript, a.ID, record, a.Arguments, principalHash(a.Principal), a.Digest, approvalKey(&a), a.Closes().UnixMilli(),
		store.MaxLive, store.MaxLiveOfPrincipal, a.Revision)
	if err != nil {
		return kept, false, err
	}
	found, _, err := parseApprovals(reply)
	if err != nil || len(found) != 1 || found[0].Digest != a.Digest || found[0].Principal != a.Principal {
		return kept, false, cmp.Or(err, store.Unavailable(errForeignReply))
	}
	kept = found[0]
	if kept.ID != a.ID {
		return kept, true, nil
	}
	if err := a.SameQuestion(&kept); err != nil {
		return approval.Approval{}, false, err
	}
	return kept, false, r.journalApproval(ctx, kept, restores)
}

// journalApproval writes an approval to the journal, after Redis has decided. If the journal
// was restored since, it was perhaps read before the change was in it.
func (r *Store) journalApproval(ctx context.Context, a approval.Approval, restores uint64) error {
	if err := r.journal.RecordApproval(ctx, a); err != nil {
		return err
	}
	if r.restores.Load() != restores {
		return store.Unavailable(errRestoredMeanwhile)
	}
	return nil
}

// findApproval returns an approval from whatever partition has it.
func (r *Store) findApproval(ctx context.Context, l *conn, id string) (a approval.Approval, at int, now time.Time, err error) {
	for i := range l.partitions {
		reply, err := r.runAt(ctx, l, i, 0, approvalsScript, id)
		if err != nil {
			return a, 0, now, err
		}
		found, now, err := parseApprovals(reply)
		if err != nil {
			return a, 0, now, err
		}
		if len(found) == 1 && found[0].ID == id {
			return found[0], i, now, nil
		}
	}
	return a, 0, now, store.ErrNotFound
}

// changeApproval makes one change of an approval, by the clock of Redis.
func (r *Store) changeApproval(ctx context.Context, id string, change func(*approval.Approval, time.Time) error) (approval.Approval, error) {
	l, err := r.connection()
	if err != nil {
		return approval.Approval{}, err
	}
	for range maxConflicts {
		restores := r.restores.Load()
		was, at, now, err := r.findApproval(ctx, l, id)
		if err != nil {
			return approval.Approval{}, err
		}
		a := was
		if err := change(&a, now); err != nil {
			return approval.Approval{}, err
		}
		if a.Revision == was.Revision {
			return a, r.journalApproval(ctx, a, restores)
		}
		err = r.writeApproval(ctx, l, at, &was, &a)
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return approval.Approval{}, err
		}
		r.approvalWatchers.Notify(id)
		return a, r.journalApproval(ctx, a, restores)
	}
	return approval.Approval{}, store.Unavailable(errors.New("too many changes of one approval at once"))
}

// writeApproval replaces an approval; ErrConflict: it was changed meanwhile.
func (r *Store) writeApproval(ctx context.Context, l *conn, at int, was, a *approval.Approval) error {
	args, err := changeArgs(was, a)
	if err == nil {
		_, err = r.runAt(ctx, l, at, 0, changeScript, args...)
	}
	return err
}

// Vote casts a vote.
func (r *Store) Vote(ctx context.Context, id string, v approval.Vote) (approval.Approval, error) {
	return r.changeApproval(ctx, id, func(a *approval.Approval, now time.Time) error {
		_, err := a.Cast(v, now)
		return err
	})
}

// EndApproval ends an approval.
func (r *Store) EndApproval(ctx context.Context, id string, e approval.Ending) (approval.Approval, error) {
	return r.changeApproval(ctx, id, func(a *approval.Approval, now time.Time) error { return a.Finish(e, now) })
}

// Approval returns an approval.
func (r *Store) Approval(ctx context.Context, id string) (approval.Approval, error) {
	l, err := r.connection()
	if err != nil {
		return approval.Approval{}, err
	}
	a, _, now, err := r.findApproval(ctx, l, id)
	if err == nil && a.Outlived(now) {
		err = store.ErrNotFound
	}
	if err != nil {
		return approval.Approval{}, err
	}
	return a, nil
}

// listBatch is how many approvals one request reads.
const listBatch = 64

// Approvals returns approvals in the order of their ids.
func (r *Store) Approvals(ctx context.Context, f store.ApprovalFilter) (found []approval.Approval, err error) {
	l, err := r.connection()
	if err != nil {
		return nil, err
	}
	live := ""
	if f.Live {
		live = "1"
	}
	var ids []approvalAt
	for i := range l.partitions {
		reply, err := r.runAt(ctx, l, i, 0, approvalIDsScript, live)
		if err != nil {
			return nil, err
		}
		for _, id := range reply {
			if id > f.After {
				ids = append(ids, approvalAt{id, i})
			}
		}
	}
	slices.SortFunc(ids, func(a, b approvalAt) int { return cmp.Compare(a.id, b.id) })
	for len(ids) > 0 && len(found) < f.Limit {
		batch := ids[:min(len(ids), listBatch)]
		ids = ids[len(batch):]
		some, err := r.readApprovals(ctx, l, batch)
		if err != nil {
			return nil, err
		}
		for i := range some {
			if len(found) < f.Limit && f.Matches(&some[i].Approval, some[i].now) && !some[i].Outlived(some[i].now) {
				found = append(found, some[i].Approval)
			}
		}
	}
	return found, nil
}

// approvalAt is the id of an approval and its partition.
type approvalAt struct {
	id string
	at int
}

// readApproval is an approval, and the time at which it was read by the clock of Redis.
type readApproval struct {
	approval.Approval
	now time.Time
}

// readApprovals returns those of some approvals that are there, in the order of their ids.
func (r *Store) readApprovals(ctx context.Context, l *conn, batch []approvalAt) (all []readApproval, err error) {
	byPartition := map[int][]any{}
	for _, a := range batch {
		byPartition[a.at] = append(byPartition[a.at], a.id)
	}
	for at, ids := range byPartition {
		reply, err := r.runAt(ctx, l, at, 0, approvalsScript, ids...)
		if err != nil {
			return nil, err
		}
		found, now, err := parseApprovals(reply)
		if err != nil {
			return nil, err
		}
		for _, a := range found {
			all = append(all, readApproval{a, now})
		}
	}
	slices.SortFunc(all, func(a, b readApproval) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// Consents returns the approvals of a digest, and the grants of keys.
func (r *Store) Consents(ctx context.Context, principal, digest string, keys []string) (found []approval.Approval, grants []approval.Grant, err error) {
	args := []any{digest}
	for _, key := range keys {
		args = append(args, key)
	}
	reply, err := r.run(ctx, principal, consentsScript, args...)
	if err != nil {
		return nil, nil, err
	}
	if len(reply) == 0 {
		return nil, nil, store.Unavailable(errForeignReply)
	}
	n, err := strconv.Atoi(reply[0])
	if err != nil || n < 0 || n >= len(reply) {
		return nil, nil, store.Unavailable(errForeignReply)
	}
	if grants, err = parseGrants(reply[1 : 1+n]); err != nil {
		return nil, nil, err
	}
	found, _, err = parseApprovals(reply[1+n:])
	slices.SortFunc(found, func(a, b approval.Approval) int { return cmp.Compare(a.ID, b.ID) })
	return slices.DeleteFunc(found, func(a approval.Approval) bool { return a.Principal != principal }), grants, err
}

// LiveApprovals returns which approvals are live, and how many grants.
func (r *Store) LiveApprovals(ctx context.Context) (live []store.LiveApproval, grants int, err error) {
	l, err := r.connection()
	if err != nil {
		return nil, 0, err
	}
	for at := range l.partitions {
		reply, err := r.runAt(ctx, l, at, 0, liveApprovalsScript)
		if err != nil {
			return nil, 0, err
		}
		if len(reply)%2 != 1 {
			return nil, 0, store.Unavailable(errForeignReply)
		}
		n, err := parseCount(reply[:1])
		if err != nil {
			return nil, 0, err
		}
		grants += n
		for one := range slices.Chunk(reply[1:], 2) {
			revision, err := parseCount(one[1:])
			if err != nil {
				return nil, 0, err
			}
			live = append(live, store.LiveApproval{ID: one[0], Revision: revision})
		}
	}
	return live, grants, nil
}

// Lapsed returns approvals that have expired and are not marked.
func (r *Store) Lapsed(ctx context.Context, limit int) (lapsed []approval.Approval, err error) {
	l, err := r.connection()
	if err != nil {
		return nil, err
	}
	for i := range l.partitions {
		reply, err := r.runAt(ctx, l, i, 0, lapsedScript, max(0, limit-len(lapsed)))
		if err != nil {
			return nil, err
		}
		found, _, err := parseApprovals(reply)
		if err != nil {
			return nil, err
		}
		lapsed = append(lapsed, found...)
	}
	return lapsed, nil
}

// WatchApproval returns a watch for the next change of an approval. Changes by another
// process are seen within a second.
func (r *Store) WatchApproval(id string) (*store.Watch, error) { return r.approvalWatchers.Add(id) }

// pollApprovals notifies those who watch an approval that another process has changed. seen
// are the revisions of the poll before; it returns those of this one.
func (r *Store) pollApprovals(seen map[string]string) map[string]string {
	l, err := r.connection()
	if err != nil {
		return seen
	}
	now := map[string]string{}
	for ids := range slices.Chunk(r.approvalWatchers.IDs(), watchBatch) {
		args := make([]any, len(ids))
		for i, id := range ids {
			args[i] = id
		}
		for at := range l.partitions {
			revisions, err := r.runAt(r.ctx, l, at, 0, revisionsScript, args...)
			if err != nil || len(revisions) != len(ids) {
				return seen
			}
			for i, revision := range revisions {
				if revision == "" {
					continue
				}
				// Whether it has changed before the first poll is not known: then its watchers
				// are notified once.
				if now[ids[i]] = revision; seen[ids[i]] != revision {
					r.approvalWatchers.Notify(ids[i])
				}
			}
		}
	}
	return now
}

// SweepApprovals removes approvals that are outlived, and grants that are over.
func (r *Store) SweepApprovals(ctx context.Context, limit int) (swept int, err error) {
	l, err := r.connection()
	if err != nil || limit <= 0 {
		return 0, err
	}
	for i := range l.partitions {
		reply, err := r.runAt(ctx, l, i, 0, sweepApprovalsScript, max(0, limit-swept))
		if err != nil {
			return swept, err
		}
		n, err := parseCount(reply)
		if swept += n; err != nil {
			return swept, err
		}
	}
	_, err = r.journal.SweepApprovals(ctx, limit)
	return swept, err
}
