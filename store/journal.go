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
		if err != nil && !errors.Is(err, ErrAbsent) {
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

// settled is Settle, after which a call without a key is not needed, unless
// another journal holds an earlier step of it.
func (f *File) settled(id string) {
	f.writer.later(func(t *tables) (func(), error) {
		c, err := t.load(id)
		if err == nil && c.spare() && strings.HasPrefix(c.Owner, f.identity+"/") {
			t.remove(&c)
			return func() { f.uncount(&c) }, nil
		}
		t.delete(owedTable, []byte(id))
		return nil, nil
	})
}

// delivered notes that a result has entered its thread.
func (f *File) delivered(id string) {
	f.writer.later(func(t *tables) (func(), error) {
		c, err := t.load(id)
		if err != nil || c.Step != Ended {
			return nil, err
		}
		was := c
		c.Delivered = true
		t.save(&was, &c)
		return nil, nil
	})
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
