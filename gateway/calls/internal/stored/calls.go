// Package stored keeps calls in the store and reads them from it. A store that is missing, or
// that panics, is an error; the metadata of a call are decoded once.
package stored

import (
	"context"
	"errors"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// Calls are the calls in a store.
type Calls struct{ store Store }

// In returns the calls in a store, which may be nil.
func In(s Store) Calls { return Calls{s} }

// Get returns a call as the store has it.
func (s Calls) Get(ctx context.Context, id string, whose store.Whose) (*Call, error) {
	call, err := ask(s.store, func(s Store) (store.Call, error) { return s.Get(ctx, id, whose) })
	if err != nil {
		return nil, err
	}
	return New(call), nil
}

// Watch tells when something changes about a call.
func (s Calls) Watch(id string) (*store.Watch, error) {
	return ask(s.store, func(s Store) (*store.Watch, error) { return s.Watch(id) })
}

// Update makes one change of a call in the store.
func (s Calls) Update(ctx context.Context, id string, change store.Change) error {
	return tell(s.store, func(s Store) error { return s.Update(ctx, id, change) })
}

// SetMetadata replaces the metadata of a call, if they are still those that were read. Of two that write the
// same at the same time, one alone does.
func (s Calls) SetMetadata(ctx context.Context, was *Call, metadata Metadata) error {
	return s.Update(ctx, was.ID, store.SetMetadata{At: was.Step, Was: was.Metadata, Metadata: metadata.encodeUnique()})
}

// Open stores a call, or returns the earlier call that has its key.
func (s Calls) Open(ctx context.Context, call store.Call) (prior *Call, err error) {
	found, err := ask(s.store, func(s Store) (*store.Call, error) { return s.Open(ctx, call) })
	if err != nil || found == nil {
		return nil, err
	}
	return New(*found), nil
}

// Dispatch stores that the tool of a call is about to be called.
func (s Calls) Dispatch(ctx context.Context, id string, task store.Task) error {
	return tell(s.store, func(s Store) error { return s.Dispatch(ctx, id, task) })
}

// Remove drops a call that is not dispatched.
func (s Calls) Remove(ctx context.Context, id string) error {
	return tell(s.store, func(s Store) error { return s.Settle(ctx, id) })
}

// Finish ends a call. It returns one that is owed, or whose result was counted, and with store.ErrEnded the call as another has ended it.
func (s Calls) Finish(ctx context.Context, id string, ending store.Ending) (*Call, error) {
	found, err := ask(s.store, func(s Store) (store.Call, error) { return s.Finish(ctx, id, ending) })
	if !errors.Is(err, store.ErrEnded) && (err != nil || !found.Owed() && found.Counted.Turn == 0) {
		return nil, err
	}
	return New(found), err
}

// Questions reads the questions of a tool, for the check of answers.
func (s Calls) Questions(ctx context.Context, id, principal string) (*tool.InputRequired, string, error) {
	call, err := s.Get(ctx, id, store.Of(principal))
	if err != nil || call.Step != store.Ended {
		return nil, "", err
	}
	return call.Meta.Questions, call.Meta.QuestionDigest, nil
}

// Subscription reads the subscription of a call: whether it is active, and its last event.
func (s Calls) Subscription(ctx context.Context, id string) (bool, *events.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, gateway.StoreWait)
	defer cancel()
	call, err := s.Get(ctx, id, store.OfAnyone())
	if errors.Is(err, store.ErrNotFound) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	return call.Meta.Subscribed, call.Meta.LastEvent, nil
}

// WaitFor waits until fit accepts a call of the principal, and returns it.
func (s Calls) WaitFor(ctx context.Context, id, principal string, fit func(*Call) bool) (*Call, error) {
	for {
		watch, err := s.Watch(id)
		if err != nil {
			return nil, err
		}
		call, err := s.Get(ctx, id, store.Of(principal))
		if err != nil || fit(call) {
			watch.Stop()
			return call, err
		}
		select {
		case <-watch.Changed:
		case <-ctx.Done():
			watch.Stop()
			return nil, ctx.Err()
		}
		watch.Stop()
	}
}

// MarkDelivered marks an ended call as delivered. With an error the result must not be
// sent.
func (s Calls) MarkDelivered(ctx context.Context, call *Call) error {
	if call.Step != store.Ended || call.Delivered {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, gateway.StoreWait)
	defer cancel()
	err := s.Update(ctx, call.ID, store.Deliver{Principal: call.Scope.Principal})
	if call.Delivered = errors.Is(err, store.ErrDelivered); call.Delivered || err == nil {
		return nil
	}
	return RefuseUnknown(ctx, err)
}

// RefuseUnknown is the refusal for a read that the store cannot answer.
func RefuseUnknown(ctx context.Context, cause error) error {
	refused := refusal.New(refusal.StoreUnavailable, "The state of the call cannot be read now. Ask again later.")
	return refusal.AsCanceled(ctx, refusal.Execute, refused.WithCause(cause))
}

// Recover returns calls that other processes have left.
func (s Calls) Recover(ctx context.Context, reason store.Reason, limit int) ([]store.Call, error) {
	return ask(s.store, func(s Store) ([]store.Call, error) { return s.Recover(ctx, reason, limit) })
}

// Sweep deletes old calls, and returns how many.
func (s Calls) Sweep(ctx context.Context, limit int) (int, error) {
	return ask(s.store, func(s Store) (int, error) { return s.Sweep(ctx, limit) })
}
