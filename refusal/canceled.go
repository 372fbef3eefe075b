package refusal

import (
	"context"
	"errors"
)

// clientLeft is the message for a client that has left; it is only logged.
const clientLeft = "The client left before this request was done, so it was given up. Nothing was executed."

// AsCanceled makes err the refusal Canceled if a component stopped because ctx, the
// request's own, was canceled: its client has disconnected. A component that failed by
// itself, or by its own timeout, keeps its refusal, so that clients cause no alarm and no
// failure is hidden.
func AsCanceled(ctx context.Context, stage Stage, err error) error {
	if !GaveUp(ctx, err) {
		return err
	}
	// The operator reads why, and not the code of a fault that was none.
	var refused *Error
	if errors.As(err, &refused) && refused.Cause != nil {
		err = refused.Cause
	}
	return At(stage, Canceled, clientLeft).WithCause(err)
}

// GaveUp reports whether the cancellation of ctx caused err.
func GaveUp(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled)
}
