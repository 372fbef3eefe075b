package redisbudget

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/ratelimit/budget"
)

// reserve lets Redis decide. Without an error, no reservation means that the windows are not those of
// the clock of Redis, which stands at the returned time.
func (l *Limiter) reserve(ctx context.Context, charges []budget.Charge, windows []window, amount budget.Amount) (*reservation, time.Time, error) {
	id := l.nextID()
	sent := l.takeUnsent(windows)
	defer l.endRequest(sent)
	args := []any{amount.Tokens, amount.Micros, id}
	for i, w := range windows {
		limit := charges[i].Budget.Limit
		s := &sent[i]
		args = append(args, w.start.UnixMilli(), w.end.UnixMilli(), keep.Milliseconds(), limit.Tokens, limit.Micros,
			s.epoch, s.n, s.spent.Tokens, s.spent.Micros, s.unsent.Tokens, s.unsent.Micros)
	}
	words, now, err := l.run(ctx, reserveScript, id, windows, args)
	if err != nil {
		l.restoreUnsent(sent, false)
		if !errors.Is(err, errBusy) && amount != (budget.Amount{}) { // it may have been counted
			l.settleLater(settlement{id: id, windows: windows})
		}
		return nil, now, err
	}
	word, figure := cut(words[0])
	if word == "window" {
		l.restoreUnsent(sent, true)
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

// Settle implements budget.Settler. Where Redis does not answer, it is settled later.
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

// settleLater has a settlement sent when Redis answers. Where too many wait, it is dropped, and the
// request stays charged as it was reserved.
func (l *Limiter) settleLater(s settlement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) < maxPending {
		l.pending = append(l.pending, s)
	}
}
