package boltstore

import (
	"context"
	"slices"
	"strings"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// Open records a call that is about to be judged. Where its key has already started
// a call, Open returns that call and records nothing.
func (f *Store) Open(ctx context.Context, call store.Call) (prior *store.Call, err error) {
	if f.brief != nil && (call.Key == "" || f.brief.Has(call.ID)) {
		return f.brief.Open(ctx, call)
	}
	return f.Engine.Open(ctx, call)
}

// Dispatch records that the tool of an opened call is about to be called.
func (f *Store) Dispatch(ctx context.Context, id string, task store.Task) error {
	switch {
	case !f.inMemory(id):
		return f.Engine.Dispatch(ctx, id, task)
	case len(task.Using) == 0:
		return f.brief.Dispatch(ctx, id, task)
	}
	return f.dispatchToFile(ctx, id, task)
}

// Update makes one change of a call that was dispatched.
func (f *Store) Update(ctx context.Context, id string, change store.Change) error {
	if wait, ok := change.(store.Defer); ok && f.inMemory(id) {
		return f.moveToFile(ctx, id, wait)
	}
	of, lock := f.pin(id)
	defer lock.RUnlock()
	return of.Update(ctx, id, change)
}

// Finish ends a call and returns it as it is then. With ErrEnded it returns the call
// as another attempt has finished it.
func (f *Store) Finish(ctx context.Context, id string, ending store.Ending) (store.Call, error) {
	of, lock := f.pin(id)
	defer lock.RUnlock()
	return of.Finish(ctx, id, ending)
}

// Get returns a call; for a call of somebody else, ErrNotFound.
func (f *Store) Get(ctx context.Context, id string, whose store.Whose) (store.Call, error) {
	of, lock := f.pin(id)
	defer lock.RUnlock()
	return of.Get(ctx, id, whose)
}

// Watch returns a watch for the next change of a call.
func (f *Store) Watch(id string) (*store.Watch, error) {
	of, lock := f.pin(id)
	defer lock.RUnlock()
	return of.Watch(id)
}

// Settle removes a call that was not dispatched; its key is free again. Other calls stay.
func (f *Store) Settle(ctx context.Context, id string) error {
	if f.inMemory(id) {
		return f.brief.Settle(ctx, id)
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

// Sweep removes at most limit calls that have ended longer than Retention ago, and approvals
// as SweepApprovals does.
func (f *Store) Sweep(ctx context.Context, limit int) (int, error) {
	brief := 0
	if f.brief != nil {
		brief, _ = f.brief.Sweep(ctx, limit) // which cannot fail
	}
	swept, err := f.Engine.Sweep(ctx, limit)
	return brief + swept, err
}

// Unfinished returns at most limit calls without an outcome whose ids are behind after, in the
// order of their ids: those in the file and those in memory. A call that is being judged and has
// a key is in neither. It is for operators: it changes nothing.
func (f *Store) Unfinished(ctx context.Context, after string, limit int) ([]store.Call, error) {
	calls, err := f.Engine.Unfinished(ctx, after, limit)
	if err != nil || f.brief == nil {
		return calls, err
	}
	brief, err := f.brief.Unfinished(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	calls = append(calls, brief...)
	slices.SortFunc(calls, func(a, b store.Call) int { return strings.Compare(a.ID, b.ID) })
	// A call that moves to the file meanwhile may have been read in both.
	calls = slices.CompactFunc(calls, func(a, b store.Call) bool { return a.ID == b.ID })
	return calls[:min(limit, len(calls))], nil
}
