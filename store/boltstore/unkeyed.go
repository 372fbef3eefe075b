package boltstore

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/callgate/callgate/store"
)

// With UnkeyedInMemory, a Store writes only the calls that somebody may come back
// for after a crash: calls with a key, which their caller repeats, and calls whose
// tool answers later. All others are brief: they are kept in memory until they have
// ended and are swept, or until they wait, and then move to the file.

// inMemory reports whether a call is kept in memory alone.
func (f *Store) inMemory(id string) bool { return f.brief != nil && f.brief.Has(id) }

// pin keeps a call where it is, in memory or in the file, until the lock is released.
func (f *Store) pin(id string) (where *store.Engine, lock *sync.RWMutex) {
	lock = f.lockOf(id)
	lock.RLock()
	if f.inMemory(id) {
		return f.brief.Engine, lock
	}
	return f.Engine, lock
}

var movingSeed = maphash.MakeSeed()

func (f *Store) lockOf(id string) *sync.RWMutex {
	return &f.moving[maphash.String(movingSeed, id)%uint64(len(f.moving))]
}

// moveToFile defers a call that is kept in memory: it is written to the file as a call
// that waits.
func (f *Store) moveToFile(ctx context.Context, id string, wait store.Defer) error {
	lock := f.lockOf(id)
	lock.Lock()
	defer lock.Unlock()
	call, err := f.brief.Get(ctx, id, store.OfAnyone())
	if err == nil {
		_, err = wait.Apply(&call, time.Time{})
	}
	if err != nil {
		return err
	}
	call.Owner = f.epoch
	if err := f.Adopt(ctx, call); err != nil {
		return err
	}
	f.brief.Forget(id)
	return nil
}

// dispatchToFile dispatches a call that is kept in memory and uses approvals. It is written to
// the file, so that both are one transition.
func (f *Store) dispatchToFile(ctx context.Context, id string, task store.Task) error {
	lock := f.lockOf(id)
	lock.Lock()
	defer lock.Unlock()
	call, err := f.brief.Get(ctx, id, store.OfAnyone())
	if err == nil {
		err = call.RequireStep(store.Opened)
	}
	if err != nil {
		return err
	}
	if _, err := f.Engine.Open(ctx, call); err != nil {
		return err
	}
	if err := f.Engine.Dispatch(ctx, id, task); err != nil {
		_ = f.Engine.Settle(ctx, id) // which leaves a call that is dispatched to TakeBack
		return err
	}
	f.brief.Forget(id)
	return nil
}
