package approvals

import (
	"context"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// recountInterval is how often the votes of an approval that is waited for are counted anew: what
// the configuration and the clock change wakes nobody. The record is read again once it has
// changed, which wakes its watchers, and in any case after so many counts.
const (
	recountInterval = time.Second
	countsOfRecord  = 15
)

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
			return approval.Approval{}, "", refuseRead(err)
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
		err = d.awaitRecord(ctx, watch, &a, was)
		watch.Stop()
		if err != nil {
			return a, was, err
		}
	}
}

// awaitRecord waits until the record of an approval is to be read again: it has changed, or what
// is counted from it has, or its time is over. The error is that of ctx.
func (d *Desk) awaitRecord(ctx context.Context, watch *store.Watch, a *approval.Approval, was approval.State) error {
	recount := time.NewTicker(recountInterval)
	defer recount.Stop()
	for range countsOfRecord {
		select {
		case <-watch.Changed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-recount.C:
			if d.State(a) != was {
				return nil
			}
		}
	}
	return nil
}
