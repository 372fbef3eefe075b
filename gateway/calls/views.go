package calls

import (
	"context"
	"time"

	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// PutView shows a view of a tool to those who follow a call of the thread. Only a call that
// waits, or whose subscription is active, may show one: any other is not_found. Where there is
// no room it is refused as overloaded and not kept; one that a hook does not let pass is hook_denied.
func (e *Executor) PutView(ctx context.Context, p CallbackMessage, view events.View) error {
	return e.inTurn(ctx, p, func(ctx context.Context) error {
		call, err := e.findCallOf(ctx, p)
		switch {
		case err != nil:
			return err
		case call.Expired(e.now()), call.Step == store.Ended && !call.Meta.Subscribed:
			return refuseNotWaiting(tooLate)
		}
		// A view that hooks would redact is not shown at all: a program draws it.
		if err := safe.Do(func() error {
			return e.executions.Restore(call).Hooks().Early().Beside(ctx, view.Type,
				view.Content)
		}); err != nil {
			return err
		}
		if !e.views.Put(call.Feed(), view, e.now()) {
			refused := refusal.New(refusal.Overloaded, "Too many views are kept here. Send the view again later.")
			refused.RetryAfterMS = time.Second.Milliseconds()
			return refused
		}
		return nil
	})
}

// ViewFollower follows the views of a call's thread.
type ViewFollower = events.ViewFollower

// Views follows the views of the call's thread; nil for a call that was not made.
func (f *Follower) Views(status CallStatus) *ViewFollower {
	if status.stored == nil {
		return nil
	}
	return f.executor.views.Follow(status.stored.Feed())
}
