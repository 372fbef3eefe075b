package events

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/callgate/callgate/store"
)

// Hub holds the active subscriptions that this process knows, with their latest events.
// The store tells which calls have a subscription; their events are held here alone. The
// zero value is empty. It is safe for concurrent use.
type Hub struct {
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

// Call is the call that has a subscription, and the thread that it belongs to.
type Call struct{ ID, Principal, Thread string }

// threadKey names the thread of a call, which belongs to its principal.
func (c Call) threadKey() string { return c.Principal + "\x00" + c.Thread }

// Begin starts a subscription, unless its thread has too many.
func (f *Hub) Begin(call Call, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, of := range f.byCall {
		if !now.Before(of.expires) {
			f.closeFeed(id)
		}
	}
	if f.perThread[call.threadKey()] >= maxSubscriptions {
		return false
	}
	return f.feedFor(call, now) != nil
}

// feedFor is the feed of a call; nil where there is room for none.
func (f *Hub) feedFor(call Call, now time.Time) *feed {
	if found := f.byCall[call.ID]; found != nil {
		return found
	}
	if len(f.byCall) >= maxActive || f.countOwned(call.Principal) >= maxActivePerPrincipal {
		return nil
	}
	if f.byCall == nil {
		f.byCall, f.perThread = map[string]*feed{}, map[string]int{}
	}
	made := &feed{principal: call.Principal, thread: call.threadKey(), expires: now.Add(store.Retention), followers: map[chan Event]bool{}}
	f.byCall[call.ID] = made
	f.perThread[made.thread]++
	return made
}

// countOwned counts the feeds of a principal. Without credentials all callers are one,
// which may have all of them.
func (f *Hub) countOwned(principal string) (n int) {
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

// Seen reports whether an event of a call was published before.
func (f *Hub) Seen(id, digest string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.digests[id], digest)
}

// remember records an event of a call. If the hub is full, another subscription is
// forgotten, preferably one that has ended.
func (f *Hub) remember(id, digest string) {
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

// ErrFull says that there is no room for another subscription: this process has its most,
// or those of the principal.
var ErrFull = errors.New("too many subscriptions are active")

// Publish sends an event to the followers of a call, and keeps it for later ones; a known
// event is ignored. It reports whether the subscription was new to this process.
//
// The error is ErrFull if the subscription is new and the hub is full: the event is not
// kept then, and the tool has to send it again. A final event is always accepted, since the
// store has it.
func (f *Hub) Publish(call Call, e Event, digest string, now time.Time) (started bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.digests[call.ID], digest) {
		return false, nil
	}
	started = f.byCall[call.ID] == nil && !e.Final
	to := f.feedFor(call, now)
	switch {
	case to == nil && e.Final:
		return false, nil
	case to == nil:
		return false, ErrFull
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
	return started, nil
}

// closeFeed removes a subscription and closes the channels of its followers.
func (f *Hub) closeFeed(id string) {
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

// Close ends a subscription that had no final event.
func (f *Hub) Close(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeFeed(id)
}

// Subscribe returns the events of a call: those that are kept, then new ones. The channel
// is closed with the subscription, or when its follower falls too far behind. It is nil
// where there is no room for the subscription.
func (f *Hub) Subscribe(call Call, now time.Time) (events chan Event, stop func()) {
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
