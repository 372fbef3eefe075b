package stored

import (
	"context"
	"errors"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/store"
)

// Store keeps calls: their idempotency keys, dispatches and outcomes. It must be safe for
// concurrent use. Package store documents the guarantees of each method; its stores
// implement them all. A call passes these steps:
//
//	Open → its decision is durable → Dispatch → the engine → Finish → its outcome is durable
type Store interface {
	Open(ctx context.Context, call store.Call) (prior *store.Call, err error)
	Dispatch(ctx context.Context, id string, task store.Task) error
	Update(ctx context.Context, id string, change store.Change) error
	Finish(ctx context.Context, id string, ending store.Ending) (store.Call, error)
	Settle(ctx context.Context, id string) error

	// Get and Watch return the status of a call.
	Get(ctx context.Context, id string, whose store.Whose) (store.Call, error)
	Watch(id string) (*store.Watch, error)

	// Recover and Sweep are for the Reconciler.
	Recover(ctx context.Context, reason store.Reason, limit int) ([]store.Call, error)
	Sweep(ctx context.Context, limit int) (int, error)
}

var errNoStore = errors.New("there is no store")

// ask asks a store that may be missing, and contains its panics: either is an error.
func ask[T any](s Store, question func(Store) (T, error)) (answer T, err error) {
	if s == nil {
		return answer, errNoStore
	}
	defer safe.RecoverZero(&answer, &err)
	return question(s)
}

// tell is ask where the store answers nothing but an error.
func tell(s Store, order func(Store) error) error {
	_, err := ask(s, func(s Store) (struct{}, error) { return struct{}{}, order(s) })
	return err
}
