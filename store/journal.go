package store

import (
	"context"
	"errors"
	"strings"
	"time"
)

// A File is also the journal of a process that shares its calls through Redis:
// it holds what that process has dispatched and finished, as Redis knew it. What
// is decided, is decided in Redis; the journal is read when Redis has lost it.

// note writes a call down as it stands, and returns once that is durable.
func (f *File) note(ctx context.Context, c Call) error {
	return f.writer.do(ctx, f.noting(c), nil)
}

// noting writes a call down, unless it has come further there.
func (f *File) noting(c Call) change {
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
			var w *weight
			if before != nil {
				w = before.weight()
			}
			f.tally.change(c.Scope.Principal, w, c.weight())
		}, nil
	}
}

// annotate is Note, where this journal has the call. What Redis has decided holds,
// whatever note stands here.
func (f *File) annotate(ctx context.Context, id string, at Step, note []byte) error {
	err := f.change(ctx, id, func(c *Call) (bool, error) { return c.note(at, c.Metadata, note) })
	if errors.Is(err, ErrNotFound) || errors.Is(err, errEarly) {
		return nil
	}
	return err
}

// settled is Settle, after which a call without a key is not needed where its answer
// was handed over, unless another journal holds an earlier step of it.
func (f *File) settled(id string) {
	f.writer.later(func(t *tables) (func(), error) {
		c, err := t.load(id)
		if err == nil && c.Delivered && f.brief(&c) {
			t.remove(&c)
			return func() { f.uncount(&c) }, nil
		}
		t.delete(owedTable, []byte(id))
		return nil, nil
	})
}

// delivered notes that a result has entered its thread. Where it is settled, a call
// without a key is not needed any more.
func (f *File) delivered(id string) {
	f.writer.later(func(t *tables) (func(), error) {
		c, err := t.load(id)
		if err != nil || c.Step != Ended {
			return nil, err
		}
		if f.brief(&c) && t.tx.Bucket(owedTable).Get([]byte(id)) == nil {
			t.remove(&c)
			return func() { f.uncount(&c) }, nil
		}
		was := c
		c.Delivered = true
		t.save(&was, &c)
		return nil, nil
	})
}

// brief tells whether a call can be forgotten once nobody waits for it: nobody comes
// back for it with a key, and it was dispatched here.
func (f *File) brief(c *Call) bool {
	return c.spare() && strings.HasPrefix(c.Owner, f.identity+"/")
}

// unfinished returns calls without an outcome, a limited number in the order of
// their ids.
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

// page returns calls in the order of their ids, to be read in after a loss.
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
			if !call.over(now) {
				calls = append(calls, call)
			}
		}
		return nil
	})
	return calls, last, err
}

// The epoch that a journal was last read into stands in it, so that a process
// that starts need not read it in again.

func epochName(key string) []byte { return []byte("epoch " + key) }

func (f *File) seededInto(key string) (epoch string, err error) {
	err = f.view(func(t *tables) error {
		epoch = string(t.tx.Bucket(aboutTable).Get(epochName(key)))
		return nil
	})
	return epoch, err
}

func (f *File) noteEpoch(ctx context.Context, key, epoch string) error {
	return f.writer.do(ctx, func(t *tables) (func(), error) {
		t.put(aboutTable, epochName(key), []byte(epoch))
		return nil, nil
	}, nil)
}
