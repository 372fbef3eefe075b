package gateway

import (
	"context"
	"errors"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// Ledger keeps what threads and callers have done. It must be safe for concurrent use. Package store documents the
// guarantees of each method.
type Ledger interface {
	Past(ctx context.Context, of store.ThreadKeys, latest bool) (history.Past, error)
	Reserve(ctx context.Context, of store.ThreadKeys, decide func(history.Past) ([]history.Adds, error)) ([]store.Reserved, error)
	Release(ctx context.Context, of store.ThreadKeys, adds history.Adds) (store.Reserved, error)
	EndResult(ctx context.Context, of store.ThreadKeys, adds history.Adds) (store.Reserved, error)
	CloseThread(ctx context.Context, of store.ThreadKeys) (store.Closing, error)
	ReopenThread(ctx context.Context, of store.ThreadKeys, turn uint64) error
}

var errNoLedger = errors.New("nothing keeps what threads have done")

// askLedger asks the ledger, which may be missing, and contains its panics. An error that is no refusal is that the ledger
// could not say.
func askLedger[T any](ctx context.Context, k *Kernel, question func(Ledger) (T, error)) (answer T, err error) {
	ledger := k.deps.Ledger
	if ledger == nil {
		return answer, refuse.ThreadsUnavailable(errNoLedger)
	}
	defer func() {
		var refused *refusal.Error
		switch {
		case err == nil, errors.As(err, &refused):
		case errors.Is(err, store.ErrThreadClosed):
			err = refuse.ThreadClosed()
		case errors.Is(err, store.ErrFull):
			err = refuse.ThreadsFull(err)
		default:
			err = refusal.AsCanceled(ctx, refusal.Permission, refuse.ThreadsUnavailable(err))
		}
	}()
	defer safe.RecoverZero(&answer, &err)
	return question(ledger)
}
