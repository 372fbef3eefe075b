package redislimit

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/ratelimit/internal/charge"
	"github.com/callgate/callgate/ratelimit/internal/windows"
)

const (
	// keep is how long a window is kept beyond its end: longer than a request takes.
	keep = time.Hour
	// maxPending bounds the settlements that wait for Redis.
	maxPending = 1 << 14
)

var errClockLeft = errors.New("the clock of Redis has left three windows during one request")

// settlement is the end of a reservation.
type settlement struct {
	id      string
	windows []*windows.Window
	actual  budget.Amount
}

// Reserve implements budget.Limiter.
func (r *Limiter) Reserve(ctx context.Context, set *budget.Set, charges []budget.Charge, amount budget.Amount) (budget.Reservation, error) {
	if len(charges) == 0 {
		return budget.Reservation{}, nil
	}
	replicas := 0
	if set != nil {
		replicas = set.Replicas
	}
	d := charge.Charges{Windows: charges, Amount: amount}
	if _, v, err := r.decide(ctx, replicas, &d); err != nil {
		return budget.Reservation{}, budget.Unavailable(err)
	} else if v.Outcome == charge.Refused {
		return budget.Reservation{}, d.Refusal
	}
	return d.Held, nil
}

// Read implements budget.Limiter.
func (r *Limiter) Read(ctx context.Context, charges []budget.Charge) ([]budget.State, error) {
	if len(charges) == 0 {
		return nil, nil
	}
	p := r.state.Load()
	if p.conn == nil {
		return nil, budget.Unavailable(p.away())
	}
	all := r.windows.Find(charges, r.now(), false)
	s, err := p.conn.route(ctx, all[0].StoreKey)
	if err != nil {
		return nil, budget.Unavailable(redisconn.Describe(err))
	}
	jobs := make([]*job, len(all))
	for i := range all {
		jobs[i] = r.newJob(opRead, s, r.nextID())
		jobs[i].op.windows = all[i : i+1]
	}
	if err := r.readAll(ctx, p, jobs); err != nil {
		return nil, budget.Unavailable(err)
	}
	states := make([]budget.State, len(all))
	for i, w := range all {
		states[i] = w.Level(jobs[i].op.decision.states[0])
	}
	return states, nil
}

// Used implements budget.Limiter. Redis is not searched for keys, so counters that only other gateways
// have charged are not found.
func (r *Limiter) Used() []budget.Counter { return r.windows.Used() }

// reservation is a reservation in Redis.
type reservation struct {
	limiter *Limiter
	id      string
	windows []*windows.Window
	settled atomic.Bool
}

// Settle implements budget.Settler. Where Redis does not answer, it is settled later.
func (h *reservation) Settle(_ uint64, actual budget.Amount) {
	if h.settled.Swap(true) {
		return
	}
	r, s := h.limiter, settlement{h.id, h.windows, actual}
	p := r.state.Load()
	if p.conn == nil {
		r.settleLater(s)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.options.wait(callTimeout))
	defer cancel()
	j, err := r.settleJob(ctx, p.conn, s)
	if err == nil {
		err = r.sendAll(ctx, []*job{j})
	}
	if err != nil || j.err != nil {
		r.settleLater(s)
	}
	if err != nil && !errors.Is(err, errQueueFull) {
		r.disconnect(p, err)
	}
}

func (r *Limiter) settleJob(ctx context.Context, l *conn, s settlement) (*job, error) {
	to, err := l.route(ctx, s.windows[0].StoreKey)
	if err != nil {
		return nil, err
	}
	j := r.newJob(opSettle, to, s.id)
	j.op.windows, j.op.amount = s.windows, s.actual
	return j, nil
}

// settleLater has a settlement sent when Redis answers. Where too many wait, it is dropped, and the
// request stays charged as it was reserved.
func (r *Limiter) settleLater(s settlement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) < maxPending {
		r.pending = append(r.pending, s)
	}
}

// catchUp sends the settlements that wait, and the windows that owe something or, with all, every
// window of which something is known.
func (r *Limiter) catchUp(ctx context.Context, l *conn, all bool) error {
	now := r.now()
	r.mu.Lock()
	pending := slices.DeleteFunc(r.pending, func(s settlement) bool {
		return !slices.ContainsFunc(s.windows, func(w *windows.Window) bool { return now.Sub(w.End) <= keep })
	})
	r.pending = nil
	r.mu.Unlock()
	var jobs []*job
	err := func() error {
		for _, s := range pending {
			j, err := r.settleJob(ctx, l, s)
			if err != nil {
				return err
			}
			jobs = append(jobs, j)
		}
		for _, w := range r.windows.Known(!all) {
			s, err := l.route(ctx, w.StoreKey)
			if err != nil {
				return err
			}
			jobs = append(jobs, r.newJob(opRead, s, r.nextID()))
			jobs[len(jobs)-1].op.windows = []*windows.Window{w}
		}
		return r.sendAll(ctx, jobs)
	}()
	for i, s := range pending {
		if err != nil || jobs[i].err != nil { // to settle one twice is to settle it once
			r.settleLater(s)
		}
	}
	return err
}

// sendAll sends jobs and waits for the replies, one portion after the other. What Redis refuses of one
// job alone is the error of that job.
func (r *Limiter) sendAll(ctx context.Context, jobs []*job) error {
	for portion := range slices.Chunk(jobs, maxBatch) {
		var failed error
		for i, j := range portion {
			if !j.op.batcher.enqueue(j) {
				failed, portion = errQueueFull, portion[:i]
				break
			}
		}
		for _, j := range portion {
			if err := j.await(ctx, nil); err != nil && !affectsOneCall(err) {
				failed = err
			}
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}
