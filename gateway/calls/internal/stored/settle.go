package stored

import (
	"context"

	"github.com/callgate/callgate/store"
)

// Settle tells the store that the outcome of a call is in the journal. Where it fails,
// that is looked up in the journal at the next start.
func (s Calls) Settle(id string) {
	_ = tell(s.store, func(s Store) error { return s.Settle(context.Background(), id) })
}

// Remove drops a call that is not dispatched.
func (s Calls) Remove(ctx context.Context, id string) error {
	return tell(s.store, func(s Store) error { return s.Settle(ctx, id) })
}

// Recover returns calls that other processes have left.
func (s Calls) Recover(ctx context.Context, reason store.Reason, limit int) ([]store.Call, error) {
	return ask(s.store, func(s Store) ([]store.Call, error) { return s.Recover(ctx, reason, limit) })
}

// Sweep deletes old calls.
func (s Calls) Sweep(ctx context.Context, limit int) error {
	_, err := ask(s.store, func(s Store) (int, error) { return s.Sweep(ctx, limit) })
	return err
}
