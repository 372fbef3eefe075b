// Package redisbudget counts budgets of tokens and money in Redis, for replicas that share them. It
// keeps the contract of budget.Limiter.
package redisbudget

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/budget"
	"github.com/callgate/callgate/internal/redisconn"
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
// What no running gateway has seen is forgotten.
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

// seen is what is known of a counter in one window.
type seen struct {
	window
	epoch string
	n     uint64
	spent budget.Amount
	open  budget.Amount // of a reply: what is reserved of spent
	// debt is what Redis has still to be charged with, or, if negative, to give back; flying is the
	// part of it that requests are carrying now.
	debt, flying budget.Amount
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

var _ budget.Limiter = (*Limiter)(nil)

// New returns a limiter. It works while Redis is away, as the Limiter says. Close ends it.
func New(options Options) (*Limiter, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	if options.Wait <= 0 {
		options.Wait = defaultWait
	}
	if options.testPause <= 0 {
		options.testPause = pause
	}
	var id [12]byte
	if _, err := io.ReadFull(options.Random, id[:]); err != nil {
		return nil, fmt.Errorf("no random bytes: %w", err)
	}
	client, err := options.NewClient(redisconn.Settings{Timeout: options.Wait, ReadTimeout: options.Wait, PoolSize: poolSize, ClusterPoolSize: poolSize})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Limiter{
		options: options, prefix: options.KeyPrefix(), client: client, slots: make(chan struct{}, poolSize), id: hex.EncodeToString(id[:]) + "-",
		cancel: cancel, ended: make(chan struct{}), seen: map[string]*seen{},
	}
	go l.maintain(ctx)
	return l, nil
}

// Close sends what Redis has still to be told, as far as it answers, and ends the limiter.
func (l *Limiter) Close() error {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.mu.Unlock()
	if again {
		return nil
	}
	l.cancel()
	<-l.ended
	return l.client.Close()
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

// Reserve implements budget.Limiter.
func (l *Limiter) Reserve(ctx context.Context, set *budget.Set, charges []budget.Charge, amount budget.Amount) (budget.Reservation, error) {
	if len(charges) == 0 {
		return budget.Reservation{}, nil
	}
	now := l.now()
	for range 3 {
		windows := l.windows(charges, now)
		if err := l.isAway(); err != nil {
			return l.reserveAlone(set, charges, windows, amount, err)
		}
		r, at, err := l.reserve(ctx, charges, windows, amount)
		switch {
		case err == nil && r == nil:
			now = at // the windows are those of another time
		case err == nil:
			return budget.NewReservation(r, 0), nil
		case isVerdict(err):
			return budget.Reservation{}, err
		case ctx.Err() != nil:
			return budget.Reservation{}, budget.Unavailable(ctx.Err())
		case errors.Is(err, errForeign), errors.Is(err, errBusy):
			return budget.Reservation{}, budget.Unavailable(err)
		default:
			return l.reserveAlone(set, charges, windows, amount, err)
		}
	}
	return budget.Reservation{}, budget.Unavailable(errors.New("the clock of Redis has left three windows during one request"))
}

// windows are the keys of charges at a time.
func (l *Limiter) windows(charges []budget.Charge, now time.Time) []window {
	all := make([]window, len(charges))
	for i := range charges {
		b := charges[i].Budget
		start, end := b.Window.Bounds(now, b.Zone)
		counter := charges[i].Counter()
		all[i] = window{l.key(counter, start), counter, start, end}
	}
	return all
}

// reserve lets Redis decide. Without an error, no reservation means that the windows are not those of
// the clock of Redis, which stands at the returned time.
func (l *Limiter) reserve(ctx context.Context, charges []budget.Charge, windows []window, amount budget.Amount) (*reservation, time.Time, error) {
	id := l.nextID()
	sent := l.takeDebts(windows)
	defer l.land(sent)
	args := []any{amount.Tokens, amount.Micros, id}
	for i, w := range windows {
		limit := charges[i].Budget.Limit
		s := &sent[i]
		args = append(args, w.start.UnixMilli(), w.end.UnixMilli(), keep.Milliseconds(), limit.Tokens, limit.Micros,
			s.epoch, s.n, s.spent.Tokens, s.spent.Micros, s.debt.Tokens, s.debt.Micros)
	}
	words, now, err := l.run(ctx, reserveScript, id, windows, args)
	if err != nil {
		l.restoreDebts(sent, false)
		if !errors.Is(err, errBusy) && amount != (budget.Amount{}) { // it may have been counted
			l.settleLater(settlement{id: id, windows: windows})
		}
		return nil, now, err
	}
	word, figure := cut(words[0])
	if word == "window" {
		l.restoreDebts(sent, true)
		at, err := strconv.ParseInt(figure, 10, 64)
		if err != nil {
			return nil, now, errForeign
		}
		return nil, time.UnixMilli(at), nil
	}
	if err := l.note(windows, words[1:]); err != nil {
		return nil, now, err
	}
	switch i, err := strconv.Atoi(figure); {
	case word == "taken":
		return &reservation{limiter: l, settlement: settlement{id: id, windows: windows}}, now, nil
	case word != "full" || err != nil || i < 1 || i > len(charges):
		return nil, now, errForeign
	default:
		return nil, now, charges[i-1].Budget.Exhausted(amount, now, windows[i-1].end)
	}
}

// reservation is a reservation in Redis.
type reservation struct {
	limiter    *Limiter
	settlement settlement
	settled    atomic.Bool
}

// Settle implements budget.Holder. Where Redis does not answer, it is settled later.
func (r *reservation) Settle(_ uint64, actual budget.Amount) {
	if r.settled.Swap(true) {
		return
	}
	s := r.settlement
	s.actual = actual
	if r.limiter.isAway() != nil || r.limiter.settle(context.Background(), s) != nil {
		r.limiter.settleLater(s)
	}
}

// settle sends a settlement. An answer that is not understood ends it too: it would be the same again.
func (l *Limiter) settle(ctx context.Context, s settlement) error {
	words, _, err := l.run(ctx, settleScript, s.id, s.windows, []any{s.actual.Tokens, s.actual.Micros})
	if err != nil && !errors.Is(err, errForeign) {
		return err
	}
	if err == nil && words[0] == "settled" {
		_ = l.note(s.windows, words[1:])
	}
	return nil
}

// Read implements budget.Limiter.
func (l *Limiter) Read(ctx context.Context, charges []budget.Charge) ([]budget.State, error) {
	if len(charges) == 0 {
		return nil, nil
	}
	if err := l.isAway(); err != nil {
		return nil, budget.Unavailable(err)
	}
	windows := l.windows(charges, l.now())
	words, _, err := l.run(ctx, readScript, l.nextID(), windows, nil)
	if err != nil {
		return nil, budget.Unavailable(err)
	}
	spent, err := readStates(words[1:], len(windows))
	if err != nil || words[0] != "read" {
		return nil, budget.Unavailable(errForeign)
	}
	states := make([]budget.State, len(windows))
	for i, w := range windows {
		states[i] = budget.State{Spent: spent[i].spent, Reserved: spent[i].open, Start: w.start, End: w.end}
	}
	return states, nil
}

// Used implements budget.Limiter. Redis is not searched for keys, so counters that only other gateways
// have charged are not found.
func (l *Limiter) Used() []budget.Counter {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []budget.Counter
	for _, s := range l.seen {
		if now.Before(s.end) {
			all = append(all, s.counter)
		}
	}
	return all
}
