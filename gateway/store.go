package gateway

import (
	"context"
	"errors"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/store"
)

// Store keeps calls: what an idempotency key has started, what was dispatched,
// and what became of it. It must be safe for concurrent use. What each method
// promises is said by package store, whose stores have them all. The three interfaces
// are for the three parts of this package that use a store.
type Store interface {
	CallStore
	StatusStore
	RecoveryStore
}

// CallStore takes one call from its start to its end:
//
//	Open → its decision is durable → Dispatch → the engine → Finish → its outcome is durable → Settle
type CallStore interface {
	Open(ctx context.Context, call store.Call) (prior *store.Call, err error)
	Dispatch(ctx context.Context, id string, task store.Task) error
	Update(ctx context.Context, id string, change store.Change) error
	Finish(ctx context.Context, id string, ending store.Ending) (store.Call, error)
	Settle(ctx context.Context, id string) error
}

// StatusStore tells how a call stands.
type StatusStore interface {
	Get(ctx context.Context, id string, whose store.Whose) (store.Call, error)
	Watch(id string) (*store.Watch, error)
}

// RecoveryStore gives the Reconciler the calls that need it.
type RecoveryStore interface {
	Recover(ctx context.Context, reason store.Reason, limit int) ([]store.Call, error)
	Sweep(ctx context.Context, limit int) (int, error)
}

var errNoStore = errors.New("there is no store")

// ask asks a store that may be missing, and contains its panics: either is an error.
func ask[S, T any](s S, question func(S) (T, error)) (answer T, err error) {
	if any(s) == nil {
		return answer, errNoStore
	}
	defer safe.RecoverZero(&answer, &err)
	return question(s)
}

// tell is ask where the store answers nothing but an error.
func tell[S any](s S, order func(S) error) error {
	_, err := ask(s, func(s S) (struct{}, error) { return struct{}{}, order(s) })
	return err
}
