package calls

import (
	"context"
	"errors"
	"time"
)

// roomWait is how long a decision waits for a slot: outcomes wait as long for a disk that stands still.
const roomWait = 5 * time.Second

// slots holds a token for each decision that was handed over and whose outcomes are
// not recorded yet.
type slots chan struct{}

// Acquire takes the slot of one decision, and waits a little if none is free.
func (s slots) Acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(roomWait)
	defer late.Stop()
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return errors.New("too many outcomes are not written down yet")
	}
}

// Release gives the slot of a decision back.
func (s slots) Release() { <-s }
