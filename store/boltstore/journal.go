package boltstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/callgate/callgate/store"
)

// Journal is a Store that a process keeps beside calls that it shares through Redis:
// it holds the calls that the process has dispatched and finished, as Redis had them.
// Redis decides; the journal is read when Redis has lost its data.
type Journal struct{ *Store }

// Owner names this process and its journal: the identity of the file, a slash, and a
// name of the process.
func (f Journal) Owner() string { return f.identity + "/" + f.epoch }

// RecordLater is Record that does not wait; a crash may lose it.
func (f Journal) RecordLater(c store.Call) { f.writer.applyLater(f.recording(c)) }

// DeleteLater removes a call, whatever its step, and does not wait; a crash may lose
// that.
func (f Journal) DeleteLater(id string) { f.writer.applyLater(f.deletion(id)) }

// Record writes a call as it is, and returns once that is durable.
func (f Journal) Record(ctx context.Context, c store.Call) error {
	return f.writer.apply(ctx, f.recording(c), nil)
}

// recording is the mutation that writes a call, unless the file has a later step. Of a call that
// has ended it writes only that its ending has not delivered the result, which it may have been
// told otherwise before.
func (f Journal) recording(c store.Call) mutation {
	return func(t *tables) (func(), error) {
		before, err := ifFound(t.load(c.ID))
		switch {
		case err != nil:
			return nil, err
		case before == nil:
		case before.Step == store.Ended && before.DeliveredByEnding && before.FinishedBy == c.FinishedBy && !c.Delivered:
		case before.Step == store.Ended || before.Step.Rank() > c.Step.Rank():
			return nil, nil
		default:
			// Of two records of one step that are on their way, the older may come last.
			c.Attempts = max(c.Attempts, before.Attempts)
		}
		t.save(before, &c)
		return func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			var w *store.Footprint
			if before != nil {
				w = before.Footprint()
			}
			f.quota.Update(c.Scope.Principal, w, c.Footprint())
		}, nil
	}
}

// RecordMetadata replaces the metadata of a call, if this journal has it. Redis has
// decided, so the metadata that the journal has are not compared.
func (f Journal) RecordMetadata(ctx context.Context, id string, at store.Step, note []byte) error {
	err := f.transition(ctx, id, func(c *store.Call) (bool, error) {
		return store.SetMetadata{At: at, Was: c.Metadata, Metadata: note}.Apply(c, f.now())
	})
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrTooEarly) {
		return nil
	}
	return err
}

// RecordSettled is Settle for a call that has ended; other calls stay as they are. It also
// removes a call without a key whose answer was handed over, unless another journal holds
// an earlier step of it.
func (f Journal) RecordSettled(id string) error {
	if unsettled, err := f.isUnsettled(id); err != nil || !unsettled {
		return err
	}
	f.writer.applyLater(func(t *tables) (func(), error) {
		c, err := t.load(id)
		if err == nil && c.Delivered && f.disposable(&c) {
			t.remove(&c)
			return func() { f.subtract(&c) }, nil
		}
		t.delete(unsettledTable, []byte(id))
		return nil, nil
	})
	return nil
}

// RecordDelivered records that a result was handed to its thread. It removes a call
// without a key that is settled.
func (f Journal) RecordDelivered(id string) {
	f.writer.applyLater(func(t *tables) (func(), error) {
		c, err := t.load(id)
		if err != nil || c.Step != store.Ended {
			return nil, err
		}
		if f.disposable(&c) && t.tx.Bucket(unsettledTable).Get([]byte(id)) == nil {
			t.remove(&c)
			return func() { f.subtract(&c) }, nil
		}
		was := c
		c.Delivered, c.DeliveredByEnding = true, false
		t.save(&was, &c)
		return nil, nil
	})
}

// disposable reports whether a call can be removed once nobody waits for it: it has
// no key to come back with, and it was dispatched by a process with this journal.
func (f Journal) disposable(c *store.Call) bool {
	return c.Evictable() && strings.HasPrefix(c.Owner, f.identity+"/")
}

// Unfinished returns at most limit calls without an outcome, in the order of their
// ids.
func (f Journal) Unfinished(after string, limit int) (calls []store.Call, err error) {
	err = f.view(func(t *tables) error {
		c := t.tx.Bucket(openTable).Cursor()
		for k, _ := c.Seek([]byte(after)); k != nil && len(calls) < limit; k, _ = c.Next() {
			if string(k) == after {
				continue
			}
			call, err := t.load(string(k))
			if err != nil {
				return store.Unavailable(err)
			}
			calls = append(calls, call)
		}
		return nil
	})
	return calls, err
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
			call, err := t.load(last)
			if err != nil {
				return store.Unavailable(err)
			}
			if !call.Outlived(now) {
				calls = append(calls, call)
			}
		}
		return nil
	})
	return calls, last, err
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
	return f.writer.apply(ctx, func(t *tables) (func(), error) {
		t.put(metaTable, epochName(key), []byte(epoch))
		return nil, nil
	}, nil)
}
