package redisbudget

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/ratelimit/budget"
)

const (
	// defaultWait is how long a request to a model waits for Redis: short beside the model's answer.
	defaultWait = time.Second
	// poolSize is how many scripts run at a time; more wait for their turn.
	poolSize = 16
	// pause is how long Redis is left alone after it has failed, and how often what it has missed
	// is sent.
	pause = time.Second
	// keep is how long a counter is kept after its window: longer than a request takes.
	keep = time.Hour
	// maxPending bounds the settlements that wait for Redis, and maxSeen the counters of which it
	// is known how much was spent.
	maxPending = 1 << 14
	maxSeen    = 1 << 16
)

var (
	errForeign = errors.New("Redis holds a counter of the budgets in another form, or answers in one")
	errBusy    = errors.New("too many requests wait for Redis")
	errUnknown = errors.New("Redis is away, and this gateway does not know what was spent")
	errClosed  = errors.New("the limiter is closed")
)

// Options say where Redis is.
type Options struct {
	redisconn.Options
	// Clock is time.Now except in tests. Windows follow the clock of Redis; this one counts while
	// Redis is away, corrected by what the two differed before.
	Clock func() time.Time
	// Random makes the ids of requests; nil is the system's.
	Random io.Reader
	// Wait bounds how long a request waits for Redis; 0 is a second.
	Wait time.Duration
	// testTime stands for the clock of Redis, in tests of this package.
	testTime func() time.Time
	// testPause is instead of pause.
	testPause time.Duration
}

// Limiter is the limiter that replicas share. All counters of a request are taken by one script, by
// the clock of Redis, and each reservation has an id, so that it is settled once however often that
// is sent.
//
// # While Redis is away
//
// Redis counts as away for a second after a request that failed. A request whose reservation may
// have been counted is cancelled when Redis answers again; if that is lost, it stays charged. With
// Set.Replicas 0 every request is limiter_unavailable meanwhile. Else each gateway grants its part of
// what it knows to be left, (budget - spent) / replicas, and nothing where it does not know; Redis is
// charged with that afterwards.
//
// A Redis that was emptied, or has an old state, gets back what the gateways know: see script.go. The
// budget is then exceeded by no more than what is granted before the gateway that has seen the most
// has sent it, which each does with its next request, and within a second after a lost connection.
// A count that no running gateway has seen is forgotten.
type Limiter struct {
	options Options
	prefix  string
	client  redis.UniversalClient
	slots   chan struct{}
	id      string
	count   atomic.Uint64
	skew    atomic.Int64 // nanoseconds that the clock of Redis is ahead
	cancel  context.CancelFunc
	ended   chan struct{}

	mu      sync.Mutex
	away    time.Time // until then; by the local clock
	lost    time.Time // since when, by the clock of Redis; zero: it is not away
	cause   error
	seen    map[string]*seen
	pending []settlement
	closed  bool
}

// seen is the known state of a counter in one window.
type seen struct {
	window
	epoch string
	n     uint64
	spent budget.Amount
	open  budget.Amount // of a reply: what is reserved of spent
	// unsent is the amount that Redis has still to be charged with, or, if negative, to give back; inFlight is the
	// part of it that requests are carrying now.
	unsent, inFlight budget.Amount
}

// window is a counter's key, and its bounds.
type window struct {
	key        string
	counter    budget.Counter
	start, end time.Time
}

// settlement is the end of a reservation.
type settlement struct {
	id      string
	windows []window
	actual  budget.Amount
}

// nextID returns an id that no other request has.
func (l *Limiter) nextID() string { return l.id + strconv.FormatUint(l.count.Add(1), 36) }

// now is the time by the clock of Redis, as far as it is known.
func (l *Limiter) now() time.Time {
	if l.options.testTime != nil {
		return l.options.testTime()
	}
	return l.options.Clock().Add(time.Duration(l.skew.Load()))
}

// loseRedis has Redis count as away for a while.
func (l *Limiter) loseRedis(cause error) {
	at := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away, l.cause = l.options.Clock().Add(l.options.testPause), cause
	if l.lost.IsZero() {
		l.lost = at
	}
}

// findRedis notes that Redis answers. Then maintain sends the changes that it has missed.
func (l *Limiter) findRedis() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = time.Time{}
}

// isAway says why Redis is not asked now; nil: it is.
func (l *Limiter) isAway() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return errClosed
	case l.options.Clock().Before(l.away):
		return l.cause
	}
	return nil
}

// counter is what is known of a counter, under the lock; nil where there is no room for more.
func (l *Limiter) counter(w window) *seen {
	s := l.seen[w.key]
	if s == nil && len(l.seen) < maxSeen {
		s = &seen{window: w}
		l.seen[w.key] = s
	}
	return s
}
