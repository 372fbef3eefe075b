package approvals

import (
	"context"
	"time"

	"github.com/callgate/callgate/approval"
	"github.com/callgate/callgate/store"
)

// recountInterval is how often an approval that is waited for is counted anew: what the
// configuration and the clock change wakes nobody.
const recountInterval = time.Second

// Await waits until an approval is no longer waiting for votes, and returns it and its state
// then. The error is that of ctx, or a *refusal.Error.
func (d *Desk) Await(ctx context.Context, id string) (approval.Approval, approval.State, error) {
	return d.AwaitChange(ctx, id, approval.Waiting)
}

// AwaitChange waits until an approval is no longer in a state.
func (d *Desk) AwaitChange(ctx context.Context, id string, was approval.State) (approval.Approval, approval.State, error) {
	for {
		watch, err := ask(ctx, d, func(_ context.Context, s store.Approvals) (*store.Watch, error) { return s.WatchApproval(id) })
		if err != nil {
			return approval.Approval{}, "", refuseStore(err)
		}
		a, err := d.Get(ctx, id)
		if err != nil {
			watch.Stop()
			return a, "", err
		}
		if state := d.State(&a); state != was {
			watch.Stop()
			return a, state, nil
		}
		recount := time.NewTimer(recountInterval)
		select {
		case <-watch.Changed:
		case <-recount.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
		recount.Stop()
		watch.Stop()
		if err != nil {
			return a, was, err
		}
	}
}
