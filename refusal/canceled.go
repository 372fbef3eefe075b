package refusal

import (
	"context"
	"errors"
)

// clientLeft is the message for a client that has left; it is only logged.
const clientLeft = "The client left before this request was done, so it was given up. Nothing was executed."

// AsCanceled makes err the refusal Canceled where a part gave up because ctx, the
// request's own, was canceled: its client has left. A part that failed by itself, or
// whose own time was over, keeps its refusal, so that nobody is alarmed by clients and
// nobody misses a fault.
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

// GaveUp tells whether err came of the cancellation of ctx.
func GaveUp(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled)
}
