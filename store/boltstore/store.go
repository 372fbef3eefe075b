package boltstore

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// Open records a call that is about to be judged. Where its key has already started
// a call, Open returns that call and records nothing.
func (f *Store) Open(ctx context.Context, call store.Call) (prior *store.Call, err error) {
	if err := f.brief.open(ctx, call); !errors.Is(err, errElsewhere) {
		return nil, err
	}
	return f.Engine.Open(ctx, call)
}

// Dispatch records that the tool of an opened call is about to be called.
func (f *Store) Dispatch(ctx context.Context, id string, task store.Task) error {
	if err := f.brief.dispatch(ctx, id, task); !errors.Is(err, errElsewhere) {
		return err
	}
	return f.Engine.Dispatch(ctx, id, task)
}

// Update makes one change of a call that was dispatched.
func (f *Store) Update(ctx context.Context, id string, change store.Change) (err error) {
	if until, ok := change.(store.Defer); ok {
		err = f.brief.wait(ctx, id, until)
	} else {
		err = f.brief.update(ctx, id, change)
	}
	if !errors.Is(err, errElsewhere) {
		return err
	}
	return f.Engine.Update(ctx, id, change)
}

// Finish ends a call and returns it as it is then. With ErrEnded it returns the call
// as another attempt has finished it.
func (f *Store) Finish(ctx context.Context, id string, ending store.Ending) (store.Call, error) {
	if call, err := f.brief.finish(ctx, id, ending); !errors.Is(err, errElsewhere) {
		return call, err
	}
	return f.Engine.Finish(ctx, id, ending)
}

// Get returns a call; for a call of somebody else, ErrNotFound.
func (f *Store) Get(ctx context.Context, id string, whose store.Whose) (store.Call, error) {
	if call, err := f.brief.get(ctx, id); !errors.Is(err, errElsewhere) {
		return whose.Only(call, err)
	}
	return f.Engine.Get(ctx, id, whose)
}

// Settle removes a call that was not dispatched; its key is free again. Other calls stay.
func (f *Store) Settle(ctx context.Context, id string) error {
	if err := f.brief.settle(ctx, id); !errors.Is(err, errElsewhere) {
		return err
	}
	return f.Engine.Settle(ctx, id)
}

// Consents returns the approvals of a digest, and the grants of keys.
func (f *Store) Consents(ctx context.Context, principal, digest string, keys []string) ([]approval.Approval, []approval.Grant, error) {
	if err := f.writer.ready(); err != nil {
		return nil, nil, store.Unavailable(err)
	}
	return f.Engine.Consents(ctx, principal, digest, keys)
}

// Running passes each call that was dispatched and has no outcome to do: those in memory and those in the file.
func (f *Store) Running(ctx context.Context, do func(*store.Call) (more bool)) error {
	brief := f.brief.unfinished("", math.MaxInt) // first: a call leaves it for the file
	for i := range brief {
		if brief[i].Step == store.Dispatched && !do(&brief[i]) {
			return nil
		}
	}
	return f.Engine.Running(ctx, func(c *store.Call) bool {
		return slices.ContainsFunc(brief, func(b store.Call) bool { return b.ID == c.ID }) || do(c)
	})
}

// Sweep removes at most limit calls that have ended longer than Retention ago, and approvals
// as SweepApprovals does.
func (f *Store) Sweep(ctx context.Context, limit int) (int, error) {
	brief := f.brief.sweep(limit)
	swept, err := f.Engine.Sweep(ctx, limit-brief)
	return brief + swept, err
}

// Unfinished returns at most limit calls without an outcome whose ids are behind after, in the
// order of their ids: those in the file and those in memory. A call that is being judged and has
// a key is in neither. It is for operators: it changes nothing.
func (f *Store) Unfinished(ctx context.Context, after string, limit int) ([]store.Call, error) {
	brief := f.brief.unfinished(after, limit) // first: a call leaves it for the file
	calls, err := f.Engine.Unfinished(ctx, after, limit)
	if err != nil || len(brief) == 0 {
		return calls, err
	}
	calls = append(calls, brief...)
	slices.SortStableFunc(calls, func(a, b store.Call) int { return strings.Compare(a.ID, b.ID) })
	calls = slices.CompactFunc(calls, func(a, b store.Call) bool { return a.ID == b.ID })
	return calls[:min(limit, len(calls))], nil
}
