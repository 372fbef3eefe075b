package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// rereadInterval is the least time between two reads of a call for one follower of its
// subscription: a store may report a change where there was none.
const rereadInterval = time.Second

// Events follows the subscription of a call that has ended, where it has one: the
// latest events that this gateway keeps, then those that come to it, and at the end
// the last one. Whether the subscription has ended, and with which event, is read from
// the store alone, so that no follower misses that event: not one who came after it,
// nor one at another gateway, nor one whose gateway was not told that it was stored.
//
// The channel ends with the subscription, or where the follower is too far behind. The
// caller must call the function at the end.
func (f *Follower) Events(status CallStatus) (<-chan events.Event, func(), error) {
	if !status.Ended || status.stored == nil {
		return nil, func() {}, nil
	}
	k := f.admission.kernel
	if !status.Metadata.Subscribed {
		return k.lastEvent(status.Metadata), func() {}, nil
	}
	call := status.stored
	// First register, then read: what ends the subscription from here on is seen.
	feed, leave := k.events.Subscribe(call.feed(), k.deps.Now())
	if feed == nil {
		return nil, func() {}, refuseFollow(context.Background(), store.ErrFull)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &subscriber{kernel: k, id: call.ID, feed: feed, events: make(chan events.Event)}
	changed, unwatch, err := s.watch()
	if err == nil {
		err = s.refresh(ctx)
	}
	if err != nil {
		unwatch()
		leave()
		cancel()
		return nil, func() {}, refuseFollow(ctx, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.events)
		defer leave()
		s.run(ctx, changed, unwatch)
	}()
	return s.events, sync.OnceFunc(func() { cancel(); <-done }), nil
}

// lastEvent is the channel of a subscription that has ended; nil where no event ended
// it.
func (k *Kernel) lastEvent(meta Metadata) <-chan events.Event {
	if meta.LastEvent == nil {
		return nil
	}
	last := make(chan events.Event, 1)
	last <- *meta.LastEvent
	close(last)
	return last
}

// subscriber is one follower of one subscription.
type subscriber struct {
	kernel *Kernel
	id     string
	feed   <-chan events.Event // nil once it has been closed
	events chan events.Event
	// ended tells that the store has no such subscription any more; last is the event
	// that ended it, if one did.
	ended bool
	last  *events.Event
}

// watch returns a channel that is closed when the store has something new about the
// call.
func (s *subscriber) watch() (changed <-chan struct{}, stop func(), err error) {
	watch, err := s.kernel.watch(s.id)
	if err != nil {
		return nil, func() {}, err
	}
	return watch.Changed, watch.Stop, nil
}

// refresh reads the stored state of the subscription.
func (s *subscriber) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	call, err := s.kernel.find(ctx, s.id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err == nil && call.meta.Subscribed {
		return nil
	}
	s.ended = true
	if err == nil {
		s.last = call.meta.LastEvent
	}
	s.kernel.events.Close(s.id)
	return nil
}

// run passes events on until the subscription has ended and its last event was passed
// on. A store that is away is asked again: the follower waits meanwhile.
func (s *subscriber) run(ctx context.Context, changed <-chan struct{}, unwatch func()) {
	earliest := time.Now()
	for !s.ended {
		told := s.forward(ctx, changed, earliest)
		unwatch()
		if told {
			return
		}
		earliest = time.Now().Add(rereadInterval)
		var unwatched error
		changed, unwatch, unwatched = s.watch()
		err := s.refresh(ctx)
		if err == nil && !s.ended && s.feed == nil {
			unwatch()
			return // too far behind
		}
		if err != nil || unwatched != nil {
			changed = closedChannel() // look again without waiting for a change
		}
	}
	unwatch()
	s.drain(ctx)
}

func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// forward passes events on until the store is to be read again, and not before earliest
// unless the feed is closed. It returns true once the last event was passed on, or
// nobody takes events any more.
func (s *subscriber) forward(ctx context.Context, changed <-chan struct{}, earliest time.Time) (told bool) {
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return true
		case <-changed:
			changed, due = nil, time.After(max(0, time.Until(earliest)))
		case <-due:
			return false
		case e, open := <-s.feed:
			if !open {
				s.feed = nil
				return false
			}
			if !s.send(ctx, e) || e.Final {
				return true
			}
		}
	}
}

// drain passes on what the feed still holds, and then the last event.
func (s *subscriber) drain(ctx context.Context) {
	for s.feed != nil {
		select {
		case e, open := <-s.feed:
			if !open {
				s.feed = nil
			} else if !s.send(ctx, e) || e.Final {
				return
			}
		default:
			s.feed = nil
		}
	}
	if s.last != nil {
		s.send(ctx, *s.last)
	}
}

func (s *subscriber) send(ctx context.Context, e events.Event) bool {
	select {
	case s.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// CheckAccess tells whether who follows may still be told something.
func (f *Follower) CheckAccess(ctx context.Context) error {
	_, err := f.admission.kernel.admitRequest(ctx, f.admission.request, f.admission)
	if err != nil {
		return refusal.From(refusal.Identity, err)
	}
	return nil
}
