package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/callgate/callgate/store"
)

// Event is something that a tool tells of, after the call that subscribed to it has
// ended. It is for the application: no model reads it here.
type Event struct {
	Text string `json:"text"`
	// Associative says that the tool means it for the thread of the call itself.
	Associative bool `json:"associative"`
	Final       bool `json:"final"`
}

const (
	// maxSubscriptions is how many of one thread are active, maxFeeds of how many
	// events are kept, and maxFeedsPerPrincipal how many of these one principal has: a thread is
	// what it calls one.
	maxSubscriptions     = 16
	maxFeeds             = 1024
	maxFeedsPerPrincipal = maxFeeds / 4
	// keptEvents and keptBytes bound the latest events of one subscription that are
	// kept for who follows it later.
	keptEvents = 16
	keptBytes  = 64 << 10
	// MaxEventBytes bounds the text of an event, in bytes.
	MaxEventBytes = 32 << 10
	// maxBehind is how far who follows may be behind before being left behind.
	maxBehind = 64
	// maxDigests is how many of the latest events of one subscription are known again,
	// and maxDigestLists of how many subscriptions.
	maxDigests     = 64
	maxDigestLists = 2 * maxFeeds
)

// noSubscription is why an event is dropped.
const noSubscription = "an event of no active subscription"

// PublishEvent passes an event on to those who follow a call. The same again changes
// nothing and is no error, as long as it is known. What names no active subscription
// is not_found.
func (k *Kernel) PublishEvent(ctx context.Context, p CallbackMessage, e Event) error {
	ctx = context.WithoutCancel(ctx)
	call, err := k.findPosted(ctx, p)
	if err != nil {
		return err
	}
	meta := call.meta
	active := call.Step == store.Ended && meta.Subscribed
	switch {
	case !active && p.Digest != "" && meta.LastEventDigest == p.Digest:
		// The store has it. Whoever put it there may not know that, so the feed may
		// still be open: its followers read the event from the store when it ends.
		k.events.close(call.ID)
		return nil
	case !active && p.Digest != "" && k.events.seen(call.ID, p.Digest):
		return nil
	case !active:
		return refuseNotWaiting(noSubscription)
	}
	if e.Final {
		switch err := k.unsubscribe(ctx, call, Metadata{LastEventDigest: p.Digest, LastEvent: &e}); {
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict):
			return refuseNotWaiting(noSubscription)
		case err != nil:
			return refuseUnknown(ctx, err)
		}
	}
	if k.events.publish(call, e, p.Digest, k.deps.Now()) {
		k.closeStale(ctx, call)
	}
	return nil
}

// closeStale stops the feed of a subscription that has ended since its call was read:
// who ended it did not know this one.
func (k *Kernel) closeStale(ctx context.Context, call *storedCall) {
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	now, err := k.find(ctx, call.ID)
	if errors.Is(err, store.ErrNotFound) || err == nil && !now.meta.Subscribed {
		k.events.close(call.ID)
	}
}

// unsubscribe ends the subscription of a call, with the last event of end or without
// one. Only one end is stored: ErrChanged is a subscription that has ended otherwise.
func (k *Kernel) unsubscribe(ctx context.Context, call *storedCall, end Metadata) error {
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	was := call
	for {
		meta := was.meta
		meta.Subscribed, meta.LastEventDigest, meta.LastEvent = false, end.LastEventDigest, end.LastEvent
		err := k.setMetadata(ctx, was, meta)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		if was, err = k.find(ctx, call.ID); err != nil {
			return err
		}
		if !was.meta.Subscribed {
			return store.ErrConflict
		}
	}
}

// eventHub are the active subscriptions that this process knows, with their latest
// events. That a call has one stands in the store; its events stand here alone. The
// zero value has none.
type eventHub struct {
	mu        sync.Mutex
	byCall    map[string]*feed
	perThread map[string]int      // of a thread
	digests   map[string][]string // the digests of the latest events, by call, also where the subscription has ended
}

type feed struct {
	principal string
	thread    string
	events    []Event
	bytes     int
	expires   time.Time // the store keeps its call no longer
	followers map[chan Event]bool
}

// threadKey names the thread of a call, which is its principal's.
func threadKey(call *storedCall) string { return call.Scope.Principal + "\x00" + threadID(call) }

// begin notes a subscription, unless its thread has enough of them.
func (f *eventHub) begin(call *storedCall, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, of := range f.byCall {
		if !now.Before(of.expires) {
			f.closeFeed(id)
		}
	}
	if f.perThread[threadKey(call)] >= maxSubscriptions {
		return false
	}
	return f.feedFor(call, now) != nil
}

// feedFor is the feed of a call; nil where there is room for none.
func (f *eventHub) feedFor(call *storedCall, now time.Time) *feed {
	if found := f.byCall[call.ID]; found != nil {
		return found
	}
	if len(f.byCall) >= maxFeeds || f.countOwned(call.Scope.Principal) >= maxFeedsPerPrincipal {
		return nil
	}
	if f.byCall == nil {
		f.byCall, f.perThread = map[string]*feed{}, map[string]int{}
	}
	made := &feed{principal: call.Scope.Principal, thread: threadKey(call), expires: now.Add(store.Retention), followers: map[chan Event]bool{}}
	f.byCall[call.ID] = made
	f.perThread[made.thread]++
	return made
}

// countOwned is how many feeds a principal has. Without credentials everybody is the same,
// and may have all of them.
func (f *eventHub) countOwned(principal string) (n int) {
	if principal == "" {
		return 0
	}
	for _, of := range f.byCall {
		if of.principal == principal {
			n++
		}
	}
	return n
}

// seen tells whether an event of a call was published before.
func (f *eventHub) seen(id, digest string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.digests[id], digest)
}

// remember remembers an event of a call. Where there is no room, another subscription is
// forgotten, and one that has ended before others.
func (f *eventHub) remember(id, digest string) {
	if f.digests == nil {
		f.digests = map[string][]string{}
	}
	if _, known := f.digests[id]; !known && len(f.digests) >= maxDigestLists {
		for other := range f.digests { // there are more of them than feeds
			if f.byCall[other] == nil {
				delete(f.digests, other)
				break
			}
		}
	}
	latest := f.digests[id]
	if len(latest) >= maxDigests {
		latest = slices.Delete(latest, 0, 1)
	}
	f.digests[id] = append(latest, digest)
}

// publish tells those who follow, and keeps an event for those who come later; once.
// It tells whether the subscription was not known here before, and is now.
func (f *eventHub) publish(call *storedCall, e Event, digest string, now time.Time) (begun bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.digests[call.ID], digest) {
		return false
	}
	begun = f.byCall[call.ID] == nil && !e.Final
	to := f.feedFor(call, now)
	if to == nil {
		return false
	}
	f.remember(call.ID, digest)
	to.events, to.bytes = append(to.events, e), to.bytes+len(e.Text)
	for len(to.events) > keptEvents || to.bytes > keptBytes {
		to.bytes -= len(to.events[0].Text)
		to.events = to.events[1:]
	}
	for follower := range to.followers {
		select {
		case follower <- e:
		default:
			close(follower)
			delete(to.followers, follower)
		}
	}
	if e.Final {
		f.closeFeed(call.ID)
	}
	return begun
}

// closeFeed forgets a subscription: those who follow it have been told all.
func (f *eventHub) closeFeed(id string) {
	of := f.byCall[id]
	if of == nil {
		return
	}
	for follower := range of.followers {
		close(follower)
	}
	of.followers = map[chan Event]bool{}
	delete(f.byCall, id)
	if f.perThread[of.thread]--; f.perThread[of.thread] <= 0 {
		delete(f.perThread, of.thread)
	}
}

// close is end for who is not told so by a final event.
func (f *eventHub) close(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeFeed(id)
}

// subscribe returns the events of a call, the latest that are kept first, and then as
// they come. The channel ends with the subscription, or where who follows is too far
// behind. Nil is a subscription that cannot be followed.
func (f *eventHub) subscribe(call *storedCall, now time.Time) (events chan Event, stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.feedFor(call, now)
	if of == nil {
		return nil, func() {}
	}
	events = make(chan Event, keptEvents+maxBehind)
	for _, e := range of.events {
		events <- e
	}
	of.followers[events] = true
	return events, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(of.followers, events)
	}
}
