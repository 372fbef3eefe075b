package gateway

import (
	"context"
	"errors"

	"github.com/callgate/callgate/refusal"
)

// clientLeft is the message for a client that has left; it is only logged.
const clientLeft = "The client left before this request was done, so it was given up. Nothing was executed."

// asCanceled makes err the refusal canceled where a part gave up because ctx, the
// request's own, was canceled: its client has left. A part that failed by itself, or
// whose own time was over, keeps its refusal, so that nobody is alarmed by clients and
// nobody misses a fault.
func asCanceled(ctx context.Context, stage refusal.Stage, err error) error {
	if !gaveUp(ctx, err) {
		return err
	}
	// The operator reads why, and not the code of a fault that was none.
	var refused *refusal.Error
	if errors.As(err, &refused) && refused.Cause != nil {
		err = refused.Cause
	}
	return refusal.At(stage, refusal.Canceled, clientLeft).WithCause(err)
}

// gaveUp tells whether err came of the cancellation of ctx.
func gaveUp(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled)
}
