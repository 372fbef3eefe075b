package calls

import (
	"context"
	"errors"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// Lookup returns the status of a call of the principal. A call that does not exist, and
// one of another principal, is not_found. Only the credential and the caller of the
// request are checked.
//
// Lookup marks the result of an ended call as delivered; Delivered reports whether it was
// delivered before.
func (e *Executor) Lookup(ctx context.Context, request gateway.Request, id string) (CallStatus, error) {
	principal, err := e.principalOf(ctx, request)
	if err != nil {
		return CallStatus{}, err
	}
	return e.lookup(ctx, id, principal)
}

// lookup is Lookup for an admitted principal.
func (e *Executor) lookup(ctx context.Context, id, principal string) (CallStatus, error) {
	call, err := e.get(ctx, id, store.Of(principal))
	if errors.Is(err, store.ErrNotFound) {
		return e.askedStatus(ctx, id, principal)
	}
	if err != nil {
		return CallStatus{}, refuseUnknown(ctx, err)
	}
	if err := e.markDelivered(ctx, call); err != nil {
		return CallStatus{}, err
	}
	return call.status(), nil
}

// markDelivered marks an ended call as delivered. With an error the result must not be
// sent.
func (e *Executor) markDelivered(ctx context.Context, call *storedCall) error {
	if call.Step != store.Ended || call.Delivered {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, gateway.StoreWait)
	defer cancel()
	err := e.update(ctx, call.ID, store.Deliver{Principal: call.Scope.Principal})
	if call.Delivered = errors.Is(err, store.ErrDelivered); call.Delivered || err == nil {
		return nil
	}
	return refuseUnknown(ctx, err)
}

// refuseUnknown is the refusal for a read that the store cannot answer.
func refuseUnknown(ctx context.Context, cause error) error {
	refused := refusal.New(refusal.StoreUnavailable, "The state of the call cannot be read now. Ask again later.")
	return refusal.AsCanceled(ctx, refusal.Execute, refused.WithCause(cause))
}
