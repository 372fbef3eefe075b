package redisstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/callgate/callgate/approval"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/internal/codec"
)

// maxConflicts bounds how often a change of an approval is made anew since others have
// changed it meanwhile. Each time one of them was successful.
const maxConflicts = 4 * approval.MaxVotes

// approvalFields are the number of strings in a reply for each approval.
const approvalFields = 6

// parseApprovals reads approvals from a reply, and the time by the clock of Redis.
func parseApprovals(reply []string) (found []approval.Approval, now time.Time, err error) {
	if len(reply)%approvalFields != 0 {
		return nil, now, store.Unavailable(errForeignReply)
	}
	for ; len(reply) > 0; reply = reply[approvalFields:] {
		a, bad := approval.Decode[approval.Approval]([]byte(reply[0]))
		revision, badRevision := strconv.Atoi(reply[4])
		ms, badNow := strconv.ParseInt(reply[5], 10, 64)
		if err := errors.Join(bad, badRevision, badNow); err != nil {
			return nil, now, store.Unavailable(errForeignReply)
		}
		if now = time.UnixMilli(ms); reply[2] != "" {
			ran, err := strconv.ParseInt(reply[3], 10, 64)
			if err != nil {
				return nil, now, store.Unavailable(errForeignReply)
			}
			a.Ran, a.RanAt = reply[2], time.UnixMilli(ran).UTC()
		} else if reply[1] != "" {
			a.Arguments = []byte(reply[1])
		}
		a.Revision = revision
		found = append(found, a)
	}
	return found, now, nil
}

// encodeApproval returns the record of an approval without the parts that have fields of
// their own.
func encodeApproval(a approval.Approval) ([]byte, error) {
	a.Arguments, a.Ran, a.RanAt = nil, "", time.Time{}
	return approval.Encode(a)
}

// endFields are the times in Redis of an approval: when it closes, from when it is kept for
// Retention, and until when it stands as a denial; the latter two are empty where that is not so.
func endFields(a *approval.Approval) (closes int64, over, stands string) {
	closes = a.Closes().UnixMilli()
	if a.Ended.End == "" && a.Ran == "" {
		return closes, "", ""
	}
	if until := a.StandsUntil(); !until.IsZero() {
		stands = strconv.FormatInt(until.UnixMilli(), 10)
	}
	return closes, strconv.FormatInt(a.Over().UnixMilli(), 10), stands
}

func approvalKey(a *approval.Approval) string {
	sum := sha256.Sum256([]byte(a.Key()))
	return hex.EncodeToString(sum[:])
}

func principalHash(principal string) string {
	return hex.EncodeToString(codec.PrincipalHash(principal))
}

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
		if a.Revision > was.Revision {
			err = r.writeApproval(ctx, l, at, &was, &a)
		}
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

func changeArgs(was, a *approval.Approval) ([]any, error) {
	record, err := encodeApproval(*a)
	closes, over, stands := endFields(a)
	return []any{a.ID, was.Revision, record, a.Revision, closes, over, stands}, err
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

func parseGrants(records []string) (grants []approval.Grant, err error) {
	for _, record := range records {
		g, err := approval.Decode[approval.Grant]([]byte(record))
		if err != nil {
			return nil, store.Unavailable(errForeignReply)
		}
		grants = append(grants, g)
	}
	return grants, nil
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

// AddGrant keeps a grant. No journal has it: if Redis is emptied, people are asked anew.
func (r *Store) AddGrant(ctx context.Context, g approval.Grant) error {
	if !store.IsGrant(g.ID) {
		return store.ErrNoID
	}
	record, err := approval.Encode(g)
	if err != nil {
		return err
	}
	_, err = r.run(ctx, g.Principal, addGrantScript, g.ID, record, g.Key, g.Until.UnixMilli(), store.MaxGrants)
	return err
}

// Grants returns live grants in the order of their ids.
func (r *Store) Grants(ctx context.Context, after string, limit int) (grants []approval.Grant, err error) {
	l, err := r.connection()
	if err != nil {
		return nil, err
	}
	for i := range l.partitions {
		reply, err := r.runAt(ctx, l, i, 0, grantsScript)
		if err != nil {
			return nil, err
		}
		some, err := parseGrants(reply)
		if err != nil {
			return nil, err
		}
		grants = append(grants, some...)
	}
	grants = slices.DeleteFunc(grants, func(g approval.Grant) bool { return g.ID <= after })
	slices.SortFunc(grants, func(a, b approval.Grant) int { return cmp.Compare(a.ID, b.ID) })
	return grants[:min(len(grants), max(0, limit))], nil
}

// RevokeGrant removes a grant.
func (r *Store) RevokeGrant(ctx context.Context, id string) (g approval.Grant, err error) {
	l, err := r.connection()
	if err != nil {
		return g, err
	}
	for i := range l.partitions {
		reply, err := r.runAt(ctx, l, i, 0, grantScript, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return g, err
		}
		grants, err := parseGrants(reply)
		if err != nil || len(grants) != 1 {
			return g, cmp.Or(err, store.Unavailable(errForeignReply))
		}
		_, err = r.runAt(ctx, l, i, 0, revokeGrantScript, id)
		return grants[0], err
	}
	return g, store.ErrNotFound
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

// restoreApproval restores an approval of the journal: Redis has, after that, the votes and
// the end of both.
func (r *Store) restoreApproval(ctx context.Context, p *partition, a approval.Approval) error {
	for range maxConflicts {
		record, err := encodeApproval(a)
		if err != nil {
			return err
		}
		closes, over, stands := endFields(&a)
		code, reply, err := r.eval(ctx, p, 0, restoreApprovalScript, []any{a.ID, record, a.Arguments, principalHash(a.Principal), a.Digest, approvalKey(&a), closes, over, stands, a.Revision})
		if err != nil || code != "ok" {
			return cmp.Or(err, errForeignReply)
		}
		found, _, err := parseApprovals(reply)
		if err != nil || len(found) == 0 {
			return err
		}
		merged := approval.Merge(found[0], a)
		if merged.Revision == found[0].Revision || found[0].Ran != "" {
			return nil
		}
		args, err := changeArgs(&found[0], &merged)
		if err != nil {
			return err
		}
		if code, _, err = r.eval(ctx, p, 0, restoreChangeScript, args); err != nil || code == "ok" {
			return err
		}
	}
	return errForeignReply
}

// restoreUse marks the approvals that a call of the journal has used.
func (r *Store) restoreUse(ctx context.Context, p *partition, c *store.Call) error {
	args := []any{c.ID}
	for _, id := range c.Task.Using {
		if !store.IsGrant(id) {
			args = append(args, id)
		}
	}
	if len(args) == 1 {
		return nil
	}
	code, _, err := r.eval(ctx, p, 0, restoreUseScript, args)
	if err == nil && code != "ok" {
		err = errForeignReply
	}
	return err
}
