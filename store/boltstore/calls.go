package boltstore

import (
	"context"
	"errors"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/internal/codec"
)

// Open records a call that is about to be judged. Where its key has already started
// a call, Open returns that call and records nothing.
func (f *Store) Open(ctx context.Context, call store.Call) (prior *store.Call, err error) {
	if f.brief != nil && (call.Key == "" || f.brief.Has(call.ID)) {
		return f.brief.Open(ctx, call)
	}
	return f.open(call)
}

// open is Open for a call that is kept in the file.
func (f *Store) open(call store.Call) (prior *store.Call, err error) {
	if call.ID == "" {
		return nil, store.ErrNoID
	}
	if err := f.writer.ready(); err != nil {
		return nil, store.Unavailable(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if owner := f.opened.Owner(call); owner != nil {
		if owner.ID == call.ID {
			return nil, owner.Reopen(call)
		}
		found := *owner
		return &found, nil
	}
	// A call that leaves opened is in the file by then.
	prior, err = f.findPrior(call)
	if prior != nil || err != nil {
		return prior, err
	}
	if err := f.quota.Admit(call.Scope.Principal); err != nil {
		return nil, err
	}
	c := store.NewOpened(call, f.now())
	f.opened.Add(&c)
	f.quota.Update(c.Scope.Principal, nil, c.Footprint())
	return nil, nil
}

// findPrior returns the call in the file that has the same key.
func (f *Store) findPrior(call store.Call) (prior *store.Call, err error) {
	err = f.view(func(t *tables) error {
		if same, err := t.load(call.ID); !errors.Is(err, store.ErrNotFound) {
			if err == nil {
				err = same.Reopen(call)
			}
			return err
		}
		if call.Key == "" {
			return nil
		}
		id := t.keyOwner(call.Scope, call.Key)
		if id == "" {
			return nil
		}
		c, err := t.load(id)
		if err != nil {
			return store.Unavailable(codec.ErrCorrupt) // a key that refers to nothing is not free
		}
		if !c.Outlived(f.now()) {
			prior = &c
		}
		return nil
	})
	return prior, err
}

// Dispatch records that the tool of an opened call is about to be called.
func (f *Store) Dispatch(ctx context.Context, id string, task store.Task) error {
	switch {
	case !f.inMemory(id):
		return f.dispatch(ctx, id, task)
	case len(task.Using) == 0:
		return f.brief.Dispatch(ctx, id, task)
	}
	return f.dispatchToFile(ctx, id, task)
}

// dispatch is Dispatch for a call that is kept in the file.
func (f *Store) dispatch(ctx context.Context, id string, task store.Task) error {
	f.mu.Lock()
	call := f.opened.Get(id)
	if call == nil {
		f.mu.Unlock()
		return f.dispatchError(id)
	}
	c := *call
	f.mu.Unlock()
	before := c.Footprint()
	if err := c.Dispatch(task, f.epoch); err != nil {
		return err
	}
	var was []approval.Approval // those that it uses, before it does
	return f.writer.apply(ctx, func(t *tables) (func(), error) {
		if _, err := t.load(id); !errors.Is(err, store.ErrNotFound) {
			return nil, errors.Join(store.ErrDispatched, err)
		}
		old, err := f.expiredOwner(t, &c)
		if err != nil {
			return nil, err
		}
		used, after, err := f.useApprovals(t, id, &task)
		if err != nil {
			return nil, err
		}
		was = used
		if old != nil {
			t.remove(old)
		}
		t.save(nil, &c)
		return func() {
			after()
			if old != nil {
				f.subtract(old)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.opened.Remove(id) == nil { // it was dropped meanwhile
				before = nil
			}
			f.quota.Update(c.Scope.Principal, before, c.Footprint())
		}, nil
	}, func(t *tables) (func(), error) {
		removed, err := f.deletion(id)(t)
		if err != nil {
			return nil, err
		}
		released, err := f.release(t, id, was)
		return func() {
			removed()
			released()
		}, err
	})
}

// expiredOwner returns the outlived call that owns the key of c; nil if there is
// none. If the owner is not outlived, c has lost its key: ErrNotOwner.
func (f *Store) expiredOwner(t *tables, c *store.Call) (*store.Call, error) {
	id := t.keyOwner(c.Scope, c.Key)
	if c.Key == "" || id == "" {
		return nil, nil
	}
	old, err := t.load(id)
	if err != nil || !old.Outlived(f.now()) {
		return nil, errors.Join(store.ErrNotOwner, err)
	}
	return &old, nil
}

// subtract removes a call from the quota.
func (f *Store) subtract(c *store.Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.quota.Update(c.Scope.Principal, c.Footprint(), nil)
}

// dispatchError returns why a call that is not opened cannot be dispatched.
func (f *Store) dispatchError(id string) error {
	c, err := f.load(id)
	if err != nil {
		return err
	}
	return c.RequireStep(store.Opened)
}

func (f *Store) load(id string) (c store.Call, err error) {
	err = f.view(func(t *tables) error {
		c, err = t.load(id)
		return err
	})
	return c, err
}

// deletion is the mutation that removes a call, whatever its step.
func (f *Store) deletion(id string) mutation {
	return func(t *tables) (func(), error) {
		c, err := t.load(id)
		if err != nil {
			return nil, err
		}
		t.remove(&c)
		return func() { f.subtract(&c) }, nil
	}
}

// transition makes a transition of a call that was dispatched and is kept in the file.
func (f *Store) transition(ctx context.Context, id string, apply func(*store.Call) (same bool, err error)) error {
	if f.isOpened(id) {
		return store.ErrTooEarly
	}
	return f.writer.apply(ctx, func(t *tables) (func(), error) {
		c, err := t.load(id)
		if err != nil {
			return nil, err
		}
		was := c
		same, err := apply(&c)
		if err != nil || same {
			return nil, err
		}
		t.save(&was, &c)
		return func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.quota.Update(c.Scope.Principal, was.Footprint(), c.Footprint())
		}, nil
	}, nil)
}

func (f *Store) isOpened(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened.Get(id) != nil
}

// Update makes one change of a call that was dispatched.
func (f *Store) Update(ctx context.Context, id string, change store.Change) error {
	if wait, ok := change.(store.Defer); ok && f.inMemory(id) {
		return f.moveToFile(ctx, id, wait)
	}
	inMemory, lock := f.pin(id)
	defer lock.RUnlock()
	if inMemory {
		return f.brief.Update(ctx, id, change)
	}
	return f.update(ctx, id, change)
}

// update is Update for a call that is kept in the file.
func (f *Store) update(ctx context.Context, id string, change store.Change) error {
	err := f.transition(ctx, id, func(c *store.Call) (bool, error) { return change.Apply(c, f.now()) })
	if err == nil {
		f.watchers.Notify(id)
	}
	return err
}

// Finish ends a call and returns it as it is then. With ErrEnded it returns the call
// as another attempt has finished it.
func (f *Store) Finish(ctx context.Context, id string, ending store.Ending) (store.Call, error) {
	inMemory, lock := f.pin(id)
	defer lock.RUnlock()
	if inMemory {
		return f.brief.Finish(ctx, id, ending)
	}
	result := make(chan store.Call, 1)
	err := f.transition(ctx, id, func(c *store.Call) (bool, error) {
		same, err := c.Finish(ending, f.now())
		result <- *c
		return same, err
	})
	if err != nil && !errors.Is(err, store.ErrEnded) {
		return store.Call{}, err
	}
	if err == nil {
		f.watchers.Notify(id)
	}
	return <-result, err
}

// Settle says that the gateway needs nothing more of a call. A call that was not
// dispatched is removed, and its key is free again; of one that has ended, the outcome is
// in the audit log. Other calls stay as they are.
func (f *Store) Settle(ctx context.Context, id string) error {
	if f.inMemory(id) {
		return f.brief.Settle(ctx, id)
	}
	if f.dropOpened(id) {
		return nil
	}
	if unsettled, err := f.isUnsettled(id); err != nil || !unsettled {
		return err
	}
	f.writer.applyLater(func(t *tables) (func(), error) {
		t.delete(unsettledTable, []byte(id))
		return nil, nil
	})
	return nil
}

// isUnsettled reports whether a call has durably ended and is not settled. It is asked
// before a call is settled: a call that ends later, be it before the next transaction, has
// an outcome that Settle does not speak of.
func (f *Store) isUnsettled(id string) (unsettled bool, err error) {
	err = f.view(func(t *tables) error {
		unsettled = t.tx.Bucket(unsettledTable).Get([]byte(id)) != nil
		return nil
	})
	return unsettled, err
}

// dropOpened removes a call if it is opened and was not dispatched.
func (f *Store) dropOpened(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.opened.Remove(id)
	if c == nil {
		return false
	}
	f.quota.Update(c.Scope.Principal, c.Footprint(), nil)
	return true
}

// Get returns a call; for a call of somebody else, ErrNotFound.
func (f *Store) Get(ctx context.Context, id string, whose store.Whose) (store.Call, error) {
	inMemory, lock := f.pin(id)
	defer lock.RUnlock()
	if inMemory {
		return f.brief.Get(ctx, id, whose)
	}
	return whose.Only(f.find(id))
}

// find returns a call that is not kept in memory alone, of any principal.
func (f *Store) find(id string) (store.Call, error) {
	f.mu.Lock()
	call := f.opened.Get(id)
	if call != nil {
		defer f.mu.Unlock()
		return *call, nil
	}
	f.mu.Unlock()
	c, err := f.load(id)
	if err == nil && c.Outlived(f.now()) {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Call{}, err
	}
	return c, nil
}
