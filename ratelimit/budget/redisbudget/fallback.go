package redisbudget

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/callgate/callgate/ratelimit/budget"
)

// reserveAlone grants this gateway's part of what is left while Redis is away. Charges in a request to
// Redis count too, until it is known whether the request has arrived.
func (l *Limiter) reserveAlone(set *budget.Set, charges []budget.Charge, windows []window, amount budget.Amount, cause error) (budget.Reservation, error) {
	if set == nil || set.Replicas < 1 {
		return budget.Reservation{}, budget.Unavailable(cause)
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return budget.Reservation{}, budget.Unavailable(errClosed)
	}
	counters := make([]*seen, len(charges))
	for i, w := range windows {
		s := l.counter(w)
		if s == nil || s.epoch == "" && (l.lost.IsZero() || w.start.Before(l.lost)) {
			return budget.Reservation{}, budget.Unavailable(errUnknown)
		}
		part := *charges[i].Budget
		part.Limit = partOf(part.Limit, s.spent, int64(set.Replicas))
		if exceedsPart(charges[i].Budget.Limit, part.Limit, plus(plus(s.unsent, s.inFlight.Less(budget.Amount{})), amount)) {
			return budget.Reservation{}, charges[i].Budget.Exhausted(amount, now, w.end)
		}
		counters[i] = s
	}
	for _, s := range counters {
		s.unsent = plus(s.unsent, amount)
	}
	return budget.NewReservation(&loneReservation{limiter: l, counters: counters, amount: amount}, 0), nil
}

// partOf is one gateway's part of what is left of a bound.
func partOf(limit, spent budget.Amount, replicas int64) budget.Amount {
	left := limit.Less(spent)
	return budget.Amount{Tokens: left.Tokens / replicas, Micros: left.Micros / replicas}
}

// exceedsPart reports whether an amount is more than a part of a bound; 0 is no bound.
func exceedsPart(limit, part, amount budget.Amount) bool {
	return limit.Tokens > 0 && amount.Tokens > part.Tokens || limit.Micros > 0 && amount.Micros > part.Micros
}

// loneReservation was granted while Redis was away. When it is settled, Redis may have been charged
// with it: then it is to give back the difference.
type loneReservation struct {
	limiter  *Limiter
	counters []*seen
	amount   budget.Amount
	once     sync.Once
}

// Settle implements budget.Settler.
func (r *loneReservation) Settle(_ uint64, actual budget.Amount) {
	r.once.Do(func() {
		r.limiter.mu.Lock()
		defer r.limiter.mu.Unlock()
		for _, s := range r.counters {
			s.unsent = plus(s.unsent, minus(actual, r.amount))
		}
	})
}

// maintain sends what Redis has missed, and forgets what is over, until ctx ends; and then once more.
func (l *Limiter) maintain(ctx context.Context) {
	defer close(l.ended)
	ticker := time.NewTicker(l.options.testPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.options.Wait)
			defer cancel()
			l.catchUp(closing)
			return
		case <-ticker.C:
			l.forget()
			l.catchUp(ctx)
		}
	}
}

// catchUp sends pending settlements, unsent amounts, and, after a loss, what is known of every counter, until
// something fails.
func (l *Limiter) catchUp(ctx context.Context) {
	l.mu.Lock()
	waits := l.options.Clock().Before(l.away)
	after := !l.lost.IsZero()
	pending := l.pending
	l.pending = nil
	now := l.now()
	var owed []window
	for _, s := range l.seen {
		if (after || s.unsent != (budget.Amount{})) && now.Before(s.end) {
			owed = append(owed, s.window)
		}
	}
	l.mu.Unlock()
	for i, s := range pending {
		if waits || l.settle(ctx, s) != nil {
			l.mu.Lock()
			l.pending = append(pending[i:], l.pending...)
			l.pending = l.pending[:min(len(l.pending), maxPending)]
			l.mu.Unlock()
			return
		}
	}
	if waits {
		return
	}
	for _, w := range owed {
		free := []budget.Charge{{Budget: &budget.Budget{}}}
		if _, _, err := l.reserve(ctx, free, []window{w}, budget.Amount{}); err != nil {
			return
		}
	}
	if after && len(owed) == 0 && l.client.Ping(ctx).Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away.IsZero() {
		l.lost = time.Time{}
	}
}

// forget forgets what is over: counters, and settlements of windows that are kept no more.
func (l *Limiter) forget() {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, s := range l.seen {
		if now.Sub(s.end) > keep {
			delete(l.seen, key)
		}
	}
	l.pending = slices.DeleteFunc(l.pending, func(s settlement) bool {
		return !slices.ContainsFunc(s.windows, func(w window) bool { return now.Sub(w.end) <= keep })
	})
}
