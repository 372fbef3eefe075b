package events

import (
	"context"
	"sync"
	"time"

	"github.com/callgate/callgate/store"
)

// rereadInterval is the least time between two reads of a call for one follower of its
// subscription: a store may report a change where there was none.
const rereadInterval = time.Second

// Source reads the stored state of a subscription. It must be safe for concurrent use.
type Source interface {
	// Watch tells when something changes about a call.
	Watch(id string) (*store.Watch, error)
	// Subscription reports whether a call has an active subscription, and which event ended
	// it, if one did. For an unknown call it returns neither, and no error.
	Subscription(ctx context.Context, id string) (active bool, last *Event, err error)
}

// Follow follows an active subscription: the latest events that this process keeps, then
// those that come to it, and at the end the last one. Whether the subscription has ended,
// and with which event, is read from the source alone, so that no follower misses that
// event: neither one that came after it, nor one at another gateway, nor one whose gateway
// was not notified that it was stored.
//
// The channel ends with the subscription, or where the follower is too far behind. The
// caller must call the function at the end. The error is ErrFull or one of the source.
func (f *Hub) Follow(source Source, call Call, now time.Time) (<-chan Event, func(), error) {
	// First register, then read: what ends the subscription from here on is seen.
	feed, disconnect := f.Subscribe(call, now)
	if feed == nil {
		return nil, func() {}, ErrFull
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &subscriber{hub: f, source: source, id: call.ID, feed: feed, events: make(chan Event)}
	changed, unwatch, err := s.watch()
	if err == nil {
		err = s.refresh(ctx)
	}
	if err != nil {
		unwatch()
		disconnect()
		cancel()
		return nil, func() {}, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.events)
		defer disconnect()
		s.run(ctx, changed, unwatch)
	}()
	return s.events, sync.OnceFunc(func() { cancel(); <-done }), nil
}

// LastEvent is the channel of a subscription that has ended; nil where no event ended it.
func LastEvent(e *Event) <-chan Event {
	if e == nil {
		return nil
	}
	last := make(chan Event, 1)
	last <- *e
	close(last)
	return last
}

// subscriber is one follower of one subscription.
type subscriber struct {
	hub    *Hub
	source Source
	id     string
	feed   <-chan Event // nil once it has been closed
	events chan Event
	// ended tells that the store has no such subscription any more; last is the event
	// that ended it, if one did.
	ended bool
	last  *Event
}

// watch returns a channel that is closed when the store has something new about the
// call.
func (s *subscriber) watch() (changed <-chan struct{}, stop func(), err error) {
	watch, err := s.source.Watch(s.id)
	if err != nil {
		return nil, func() {}, err
	}
	return watch.Changed, watch.Stop, nil
}

// refresh reads the stored state of the subscription.
func (s *subscriber) refresh(ctx context.Context) error {
	active, last, err := s.source.Subscription(ctx, s.id)
	if err != nil || active {
		return err
	}
	s.ended, s.last = true, last
	s.hub.Close(s.id)
	return nil
}

// run passes events on until the subscription has ended and its last event was passed on.
// If the store is unreachable, run tries again, and the follower waits meanwhile.
func (s *subscriber) run(ctx context.Context, changed <-chan struct{}, unwatch func()) {
	earliest := time.Now()
	for !s.ended {
		notified := s.forward(ctx, changed, earliest)
		unwatch()
		if notified {
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

// forward passes events on until it is time to read the store again, which is not before
// earliest unless the feed is closed. It returns true once the last event was passed on, or
// the follower has left.
func (s *subscriber) forward(ctx context.Context, changed <-chan struct{}, earliest time.Time) (notified bool) {
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

// drain passes on the events left in the feed, and then the last event.
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

func (s *subscriber) send(ctx context.Context, e Event) bool {
	select {
	case s.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}
