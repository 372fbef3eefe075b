package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/store"
)

// Store keeps calls: what an idempotency key has started, what was dispatched,
// and what became of it. It must be safe for concurrent use. What each method
// promises is said by package store, whose stores have them all; a call goes
//
//	Open → its decision is durable → Dispatch → the engine → Finish → its outcome is durable → Settle
type Store interface {
	Open(ctx context.Context, call store.Call) (prior *store.Call, err error)
	Dispatch(ctx context.Context, id string, task store.Task) error
	Redispatch(ctx context.Context, id string) (attempt int, err error)
	Defer(ctx context.Context, id string, until time.Time) error
	Finish(ctx context.Context, id string, ending store.Ending) (store.Call, error)
	SetMetadata(ctx context.Context, id string, at store.Step, was, metadata []byte) error
	Settle(id string)
	Drop(ctx context.Context, id string) error

	Get(ctx context.Context, id, principal string) (store.Call, error)
	Find(ctx context.Context, id string) (store.Call, error)
	Deliver(ctx context.Context, id, principal string) (first bool, err error)
	Watch(id string) (*store.Watch, error)

	Recover(ctx context.Context, limit int) ([]store.Call, error)
	Unsettled(ctx context.Context, limit int) ([]store.Call, error)
	Expired(ctx context.Context, limit int) ([]store.Call, error)
	Sweep(ctx context.Context, limit int) (int, error)
}

// safeStore is a store that is missing, or may panic: then it is unavailable.
type safeStore struct{ of Store }

var errNoStore = errors.New("there is no store")

func (s safeStore) ask(question func(Store) error) (err error) {
	if s.of == nil {
		return errNoStore
	}
	defer safe.Recover(&err)
	return question(s.of)
}

func (s safeStore) Open(ctx context.Context, call store.Call) (prior *store.Call, err error) {
	err = s.ask(func(of Store) (err error) { prior, err = of.Open(ctx, call); return err })
	return prior, err
}

func (s safeStore) Dispatch(ctx context.Context, id string, task store.Task) error {
	return s.ask(func(of Store) error { return of.Dispatch(ctx, id, task) })
}

func (s safeStore) Redispatch(ctx context.Context, id string) (attempt int, err error) {
	err = s.ask(func(of Store) (err error) { attempt, err = of.Redispatch(ctx, id); return err })
	return attempt, err
}

func (s safeStore) Defer(ctx context.Context, id string, until time.Time) error {
	return s.ask(func(of Store) error { return of.Defer(ctx, id, until) })
}

func (s safeStore) Finish(ctx context.Context, id string, ending store.Ending) (call store.Call, err error) {
	err = s.ask(func(of Store) (err error) { call, err = of.Finish(ctx, id, ending); return err })
	return call, err
}

func (s safeStore) SetMetadata(ctx context.Context, id string, at store.Step, was, metadata []byte) error {
	return s.ask(func(of Store) error { return of.SetMetadata(ctx, id, at, was, metadata) })
}

func (s safeStore) Settle(id string) {
	_ = s.ask(func(of Store) error { of.Settle(id); return nil }) // what is not settled is looked up at the next start
}

func (s safeStore) Drop(ctx context.Context, id string) error {
	return s.ask(func(of Store) error { return of.Drop(ctx, id) })
}

func (s safeStore) Get(ctx context.Context, id, principal string) (call store.Call, err error) {
	err = s.ask(func(of Store) (err error) { call, err = of.Get(ctx, id, principal); return err })
	return call, err
}

func (s safeStore) Find(ctx context.Context, id string) (call store.Call, err error) {
	err = s.ask(func(of Store) (err error) { call, err = of.Find(ctx, id); return err })
	return call, err
}

func (s safeStore) Deliver(ctx context.Context, id, principal string) (first bool, err error) {
	err = s.ask(func(of Store) (err error) { first, err = of.Deliver(ctx, id, principal); return err })
	return first, err
}

func (s safeStore) Watch(id string) (watch *store.Watch, err error) {
	err = s.ask(func(of Store) (err error) { watch, err = of.Watch(id); return err })
	return watch, err
}

func (s safeStore) Recover(ctx context.Context, limit int) (calls []store.Call, err error) {
	err = s.ask(func(of Store) (err error) { calls, err = of.Recover(ctx, limit); return err })
	return calls, err
}

func (s safeStore) Unsettled(ctx context.Context, limit int) (calls []store.Call, err error) {
	err = s.ask(func(of Store) (err error) { calls, err = of.Unsettled(ctx, limit); return err })
	return calls, err
}

func (s safeStore) Expired(ctx context.Context, limit int) (calls []store.Call, err error) {
	err = s.ask(func(of Store) (err error) { calls, err = of.Expired(ctx, limit); return err })
	return calls, err
}

func (s safeStore) Sweep(ctx context.Context, limit int) (n int, err error) {
	err = s.ask(func(of Store) (err error) { n, err = of.Sweep(ctx, limit); return err })
	return n, err
}
