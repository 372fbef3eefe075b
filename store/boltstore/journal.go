package boltstore

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// Journal is a Store that a process keeps beside calls that it shares through Redis:
// it holds the calls that the process has dispatched and finished, as Redis had them.
// Redis decides; the journal is read when Redis has lost its data.
type Journal struct {
	*Store
	Node string // the same for every process with this journal, and for no other
}

// Owner names this process and its journal: the node, a slash, and a name of the process.
func (f Journal) Owner() string { return f.Node + "/" + f.epoch }

// RecordLater is Record that does not wait; a crash may lose it.
func (f Journal) RecordLater(c store.Call) { f.writer.applyLater(f.recording(c)) }

// DeleteLater removes a call, whatever its step, and does not wait; a crash may lose
// that.
func (f Journal) DeleteLater(id string) {
	f.writer.applyLater(func(t *tables) (func(), error) {
		c, err := t.call(id)
		if err != nil || c == nil {
			return nil, err
		}
		return f.replace(t, c, nil), nil
	})
}

// Record writes a call as it is, and returns once that is durable.
func (f Journal) Record(ctx context.Context, c store.Call) error {
	if err := f.writer.apply(ctx, newJob(f.recording(c))); err != nil {
		return err
	}
	f.mu.Lock()
	own, all := f.quota.Add(store.Count{Principal: c.Scope.Principal})
	f.mu.Unlock()
	f.MakeRoom(c.Scope.Principal, own, all)
	return nil
}

// recording is the mutation that writes a call, unless the file has a later step. Of a call that
// has ended it writes only that its ending has not delivered the result, which it may have been
// told otherwise before.
func (f Journal) recording(c store.Call) mutation {
	return func(t *tables) (func(), error) {
		before, err := t.call(c.ID)
		switch {
		case err != nil:
			return nil, err
		case before == nil:
		case before.Step == store.Ended && before.DeliveredByEnding && before.FinishedBy == c.FinishedBy && !c.Delivered:
		case before.Step == store.Ended || before.Step.Rank() > c.Step.Rank():
			return nil, nil
		case c.Delivered && f.disposable(&c):
			return f.replace(t, before, nil), nil
		default:
			// Of two records of one step that are on their way, the older may come last.
			c.Attempts = max(c.Attempts, before.Attempts)
		}
		return f.replace(t, before, &c), nil
	}
}

// replace writes a call in the place of before, or removes it; nil: there is none.
func (f Journal) replace(t *tables, before, after *store.Call) (counted func()) {
	of := cmp.Or(after, before)
	count := store.Count{Principal: of.Scope.Principal}
	key := store.Key{Kind: store.CallRecord, ID: of.ID}
	var was, now store.Value
	started := []byte(nil)
	if before != nil {
		was, count.Of = before, store.Usage{}.Minus(before.Usage())
	}
	if after != nil {
		now, count.Of, started = after, after.Usage().Minus(store.Usage{}.Minus(count.Of)), []byte(after.ID)
	}
	t.write(rowWrites(store.Entries(was, nil), nil, nil))
	writes, _ := writesOf(key, was, now, nil) // a call can be encoded
	if of.Key != "" {
		name := store.KeyHash(of.Scope, of.Key)
		if owner := string(t.get(keysTable, string(name))); owner == "" || owner == of.ID {
			writes = append(writes, write{keysTable, name, started})
		}
	}
	t.write(rowWrites(store.Entries(now, nil), present, writes))
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.written++
		delete(f.held, key)
		f.quota.Add(count)
	}
}

// RecordMetadata replaces the metadata of a call, if this journal has it. Redis has
// decided, so the metadata that the journal has are not compared.
func (f Journal) RecordMetadata(ctx context.Context, id string, at store.Step, note []byte) error {
	err := f.Update(ctx, id, recordedMetadata{at, note})
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrTooEarly) {
		return nil
	}
	return err
}

type recordedMetadata struct {
	at   store.Step
	note []byte
}

// Apply makes the change.
func (r recordedMetadata) Apply(c *store.Call, now time.Time) (same bool, err error) {
	return store.SetMetadata{At: r.at, Was: c.Metadata, Metadata: r.note}.Apply(c, now)
}

// RecordDelivered records that a result was handed to its thread. It removes a call
// without a key.
func (f Journal) RecordDelivered(id string) {
	f.writer.applyLater(func(t *tables) (func(), error) {
		c, err := t.call(id)
		if err != nil || c == nil || c.Step != store.Ended {
			return nil, err
		}
		if f.disposable(c) {
			return f.replace(t, c, nil), nil
		}
		now := *c
		now.Delivered, now.DeliveredByEnding = true, false
		return f.replace(t, c, &now), nil
	})
}

// disposable reports whether a call can be removed once nobody waits for it: it has
// no key to come back with, and it was dispatched by a process with this journal.
func (f Journal) disposable(c *store.Call) bool {
	return c.Evictable() && strings.HasPrefix(c.Owner, f.Node+"/")
}

// Unfinished returns at most limit calls without an outcome, in the order of their
// ids.
func (f Journal) Unfinished(after string, limit int) (calls []store.Call, err error) {
	return f.Engine.Unfinished(context.Background(), after, limit)
}

// Page returns calls in the order of their ids, to be restored after a loss.
func (f Journal) Page(after string, limit int, now time.Time) (calls []store.Call, last string, err error) {
	err = f.view(func(t *tables) error {
		c := t.tx.Bucket(callsTable).Cursor()
		for k, _ := c.Seek([]byte(after)); k != nil && len(calls) < limit; k, _ = c.Next() {
			if string(k) == after {
				continue
			}
			last = string(k)
			call, err := t.call(last)
			if err != nil {
				return err
			}
			if !call.Outlived(now) {
				calls = append(calls, *call)
			}
		}
		return nil
	})
	return calls, last, err
}

// RecordApproval writes an approval as it is, unless the journal has a later revision, and
// returns once that is durable.
func (f Journal) RecordApproval(ctx context.Context, a approval.Approval) error {
	return f.writer.apply(ctx, newJob(func(t *tables) (func(), error) {
		key := store.Key{Kind: store.AskRecord, ID: a.ID}
		before, err := t.record(key)
		if err != nil {
			return nil, err
		}
		if was, ok := before.Value.(*store.Asked); ok && was.Revision >= a.Revision {
			return nil, nil
		}
		now := &store.Asked{Approval: a}
		writes, err := writesOf(key, before.Value, now, rowWrites(store.Entries(before.Value, nil), nil, nil))
		if err != nil {
			return nil, err
		}
		writes = append(writes, write{byDigestTable, []byte(a.Digest + a.ID), present})
		t.write(rowWrites(store.Entries(now, nil), present, writes))
		return nil, nil
	}))
}

// PageOfApprovals returns approvals in the order of their ids, to be restored after a loss.
func (f Journal) PageOfApprovals(ctx context.Context, after string, limit int) ([]approval.Approval, error) {
	return f.Approvals(ctx, store.ApprovalFilter{After: after, Limit: limit})
}

// The journal holds the epoch that it was last restored into, so that a process that
// starts need not restore it again.

func epochName(key string) []byte { return []byte("epoch " + key) }

// RestoredEpoch returns the epoch of Redis into which the calls under a key were restored last.
func (f Journal) RestoredEpoch(key string) (epoch string, err error) {
	err = f.view(func(t *tables) error {
		epoch = string(t.tx.Bucket(metaTable).Get(epochName(key)))
		return nil
	})
	return epoch, err
}

// RecordEpoch records that the calls under a key were restored into an epoch of Redis.
func (f Journal) RecordEpoch(ctx context.Context, key, epoch string) error {
	return f.writer.apply(ctx, newJob(func(t *tables) (func(), error) {
		t.put(metaTable, epochName(key), []byte(epoch))
		return nil, nil
	}))
}
