package store

import (
	"context"
	"errors"
	"strings"
	"time"
)

// A File is also the journal of a process that shares its calls through Redis: it
// holds the calls that the process has dispatched and finished, as Redis had them.
// Redis decides; the journal is read when Redis has lost its data.

// record writes a call as it is, and returns once that is durable.
func (f *File) record(ctx context.Context, c Call) error {
	return f.writer.apply(ctx, f.recording(c), nil)
}

// recording is the mutation that writes a call, unless the file has a later step.
func (f *File) recording(c Call) mutation {
	return func(t *tables) (func(), error) {
		was, err := t.load(c.ID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		before := &was
		switch {
		case err != nil:
			before = nil
		case was.Step.rank() > c.Step.rank(), was.Step == Ended:
			return nil, nil
		}
		t.save(before, &c)
		return func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			var w *footprint
			if before != nil {
				w = before.footprint()
			}
			f.quota.update(c.Scope.Principal, w, c.footprint())
		}, nil
	}
}

// recordMetadata replaces the metadata of a call, if this journal has it. Redis has
// decided, so the metadata that the journal has are not compared.
func (f *File) recordMetadata(ctx context.Context, id string, at Step, note []byte) error {
	err := f.update(ctx, id, func(c *Call) (bool, error) { return c.setMetadata(at, c.Metadata, note) })
	if errors.Is(err, ErrNotFound) || errors.Is(err, errTooEarly) {
		return nil
	}
	return err
}

// recordSettled is Settle. It also removes a call without a key whose answer was
// handed over, unless another journal holds an earlier step of it.
func (f *File) recordSettled(id string) {
	f.writer.applyLater(func(t *tables) (func(), error) {
		c, err := t.load(id)
		if err == nil && c.Delivered && f.disposable(&c) {
			t.remove(&c)
			return func() { f.subtract(&c) }, nil
		}
		t.delete(unsettledTable, []byte(id))
		return nil, nil
	})
}

// recordDelivered records that a result was handed to its thread. It removes a call
// without a key that is settled.
func (f *File) recordDelivered(id string) {
	f.writer.applyLater(func(t *tables) (func(), error) {
		c, err := t.load(id)
		if err != nil || c.Step != Ended {
			return nil, err
		}
		if f.disposable(&c) && t.tx.Bucket(unsettledTable).Get([]byte(id)) == nil {
			t.remove(&c)
			return func() { f.subtract(&c) }, nil
		}
		was := c
		c.Delivered = true
		t.save(&was, &c)
		return nil, nil
	})
}

// disposable reports whether a call can be removed once nobody waits for it: it has
// no key to come back with, and it was dispatched by a process with this journal.
func (f *File) disposable(c *Call) bool {
	return c.evictable() && strings.HasPrefix(c.Owner, f.identity+"/")
}

// unfinished returns at most limit calls without an outcome, in the order of their
// ids.
func (f *File) unfinished(after string, limit int) (calls []Call, err error) {
	err = f.view(func(t *tables) error {
		c := t.tx.Bucket(openTable).Cursor()
		for k, _ := c.Seek([]byte(after)); k != nil && len(calls) < limit; k, _ = c.Next() {
			if string(k) == after {
				continue
			}
			call, err := t.load(string(k))
			if err != nil {
				return unavailable(err)
			}
			calls = append(calls, call)
		}
		return nil
	})
	return calls, err
}

// page returns calls in the order of their ids, to be restored after a loss.
func (f *File) page(after string, limit int, now time.Time) (calls []Call, last string, err error) {
	err = f.view(func(t *tables) error {
		c := t.tx.Bucket(callsTable).Cursor()
		for k, _ := c.Seek([]byte(after)); k != nil && len(calls) < limit; k, _ = c.Next() {
			if string(k) == after {
				continue
			}
			last = string(k)
			call, err := t.load(last)
			if err != nil {
				return unavailable(err)
			}
			if !call.outlived(now) {
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

func (f *File) restoredEpoch(key string) (epoch string, err error) {
	err = f.view(func(t *tables) error {
		epoch = string(t.tx.Bucket(metaTable).Get(epochName(key)))
		return nil
	})
	return epoch, err
}

func (f *File) recordEpoch(ctx context.Context, key, epoch string) error {
	return f.writer.apply(ctx, func(t *tables) (func(), error) {
		t.put(metaTable, epochName(key), []byte(epoch))
		return nil, nil
	}, nil)
}
