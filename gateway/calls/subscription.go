package calls

import (
	"context"
	"errors"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// noSubscription is why an event is dropped.
const noSubscription = "an event of no active subscription"

// PublishEvent passes an event to the followers of a call. A repeated event changes nothing
// and is no error, as long as the first is remembered. An event without an active
// subscription is not_found. If another process has the subscription and this one has no
// room for it, the event is refused as overloaded and not kept.
func (e *Executor) PublishEvent(ctx context.Context, p CallbackMessage, event events.Event) error {
	return e.inTurn(ctx, p, func(ctx context.Context) error { return e.publishEvent(ctx, p, event) })
}

func (e *Executor) publishEvent(ctx context.Context, p CallbackMessage, event events.Event) error {
	call, err := e.findCallOf(ctx, p)
	if err != nil {
		return err
	}
	meta := call.Meta
	active := call.Step == store.Ended && meta.Subscribed
	switch {
	case !active && p.Digest != "" && meta.LastEventDigest == p.Digest:
		// The store has it. The writer of it may not know that, so the feed may
		// still be open: its followers read the event from the store when it ends.
		e.events.Close(call.ID)
		return nil
	case !active && p.Digest != "" && e.events.Seen(call.ID, p.Digest):
		return nil
	case !active:
		return refuseNotWaiting(noSubscription)
	}
	sent := event
	event = e.hookEvent(ctx, call, event)
	if event.Final {
		switch err := e.unsubscribe(ctx, call, stored.Metadata{LastEventDigest: p.Digest, LastEvent: &event}); {
		case errors.Is(err, store.ErrConflict): // it has ended meanwhile, perhaps by the same message
			return e.publishEvent(ctx, p, sent)
		case errors.Is(err, store.ErrNotFound):
			return refuseNotWaiting(noSubscription)
		case err != nil:
			return stored.RefuseUnknown(ctx, err)
		}
	}
	begun, err := e.events.Publish(call.Feed(), event, p.Digest, e.now())
	if err != nil {
		refused := refusal.New(refusal.Overloaded, "Too many subscriptions are active here. Send the event again later.").WithCause(err)
		refused.RetryAfterMS = time.Second.Milliseconds()
		return refused
	}
	if begun {
		e.closeStale(ctx, call)
	}
	return nil
}

// closeStale stops the feed of a subscription that has ended since its call was read: the
// process that ended it did not know of this feed.
func (e *Executor) closeStale(ctx context.Context, call *stored.Call) {
	ctx, cancel := context.WithTimeout(ctx, gateway.StoreWait)
	defer cancel()
	now, err := e.calls.Get(ctx, call.ID, store.OfAnyone())
	if errors.Is(err, store.ErrNotFound) || err == nil && !now.Meta.Subscribed {
		e.events.Close(call.ID)
	}
}

// unsubscribe ends the subscription of a call, with the last event of end or without
// one. Only one end is stored: ErrChanged is a subscription that has ended otherwise.
func (e *Executor) unsubscribe(ctx context.Context, call *stored.Call, end stored.Metadata) error {
	ctx, cancel := context.WithTimeout(ctx, gateway.StoreWait)
	defer cancel()
	was := call
	for {
		meta := was.Meta
		meta.Subscribed, meta.LastEventDigest, meta.LastEvent = false, end.LastEventDigest, end.LastEvent
		err := e.calls.SetMetadata(ctx, was, meta)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		if was, err = e.calls.Get(ctx, call.ID, store.OfAnyone()); err != nil {
			return err
		}
		if !was.Meta.Subscribed {
			return store.ErrConflict
		}
	}
}

// Events follows the subscription of a call that has ended, where it has one (see
// events.Hub.Follow). The caller must call the function at the end.
func (f *Follower) Events(status CallStatus) (<-chan events.Event, func(), error) {
	if !status.Ended || status.stored == nil {
		return nil, func() {}, nil
	}
	if !status.Metadata.Subscribed {
		return events.LastEvent(status.Metadata.LastEvent), func() {}, nil
	}
	e := f.executor
	followed, stop, err := e.events.Follow(e.calls, status.stored.Feed(), e.now())
	if err != nil {
		return nil, stop, refuseFollow(context.Background(), err)
	}
	return followed, stop, nil
}

// CheckAccess returns an error if the follower may no longer receive events.
func (f *Follower) CheckAccess(ctx context.Context) error {
	if err := f.admission.Recheck(ctx); err != nil {
		return refusal.From(refusal.Identity, err)
	}
	return nil
}

// hookEvent is an event that the tool of a call sends after the call has ended, as hooks leave it. One
// that they deny says only that: it may be the one that ends the subscription.
func (e *Executor) hookEvent(ctx context.Context, call *stored.Call, event events.Event) events.Event {
	err := safe.Do(func() (err error) {
		event.Text, err = e.executions.Restore(call).Hooks().Early().Text(ctx, event.Text)
		return err
	})
	if err != nil {
		event.Text = "A hook of this gateway does not let the text of this event pass."
	}
	return event
}
