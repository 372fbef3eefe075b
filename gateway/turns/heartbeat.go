package turns

import (
	"errors"
	"fmt"
	"time"

	"github.com/callgate/callgate/internal/safe"
)

var errPanicked = errors.New("what was waited for broke off")

// Wait runs a long operation in a goroutine of its own. Where the answer is a stream it sends
// signs of life at intervals meanwhile, with a note of what is waited for. A panic of the
// operation becomes an error. Where the answer is one body, the operation is just called.
func (r *Run) Wait(note string, do func() error) error {
	if r.KeepAlive == nil {
		return do()
	}
	done := make(chan error, 1)
	go func() {
		err := errPanicked
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%w: %w", errPanicked, safe.PanicError(p))
			}
			done <- err
		}()
		err = do()
	}()
	beat := time.NewTicker(r.options.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-beat.C:
			r.KeepAlive(note)
		}
	}
}
