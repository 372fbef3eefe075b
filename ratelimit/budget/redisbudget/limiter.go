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
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/ratelimit/budget"
)

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
