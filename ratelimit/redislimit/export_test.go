package redislimit

import (
	"context"
	"strconv"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/ratelimit/internal/charge"
	"github.com/callgate/callgate/ratelimit/internal/windows"
)

// NewWithClock returns a limiter that goes by a clock that the test moves, keeps
// its buckets long beyond their time, and its leases as long as it runs.
func NewWithClock(ctx context.Context, o Options, fakeTime func() time.Time) (*Limiter, []string, error) {
	o.Wait = Patient * callTimeout
	return newLimiter(ctx, o, testHooks{clock: fakeTime, lease: 10_000 * time.Hour, extraTTL: time.Hour})
}

// How many times as long as in use Redis has for everything: where a test is not about
// time, longer than any machine takes; where it waits for what does not come, as long
// as a machine under load may need for what does.
const (
	Patient = 300
	Waits   = 10
)

// SharedAgain bounds how long Redis is not shared after it has come back: a look at it
// may have begun just before, the next one comes after a pause, and each takes so long
// at most.
const SharedAgain = connectTimeout + maxPause + connectTimeout

// NewWithSlack returns a limiter that waits so many times as long as in use.
func NewWithSlack(ctx context.Context, o Options, slack int) (*Limiter, []string, error) {
	o.Wait = time.Duration(slack) * callTimeout
	return New(ctx, o)
}

// NewWithLease returns a limiter whose leases last so long.
func NewWithLease(ctx context.Context, o Options, lease time.Duration) (*Limiter, []string, error) {
	o.Wait = Patient * callTimeout
	return newLimiter(ctx, o, testHooks{lease: lease})
}

// InFlight is how many calls of an agent hold a slot through this gateway.
func (r *Limiter) InFlight(agent string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.inFlight[agent])
}

// Undebited is the number of grants that Redis was not debited with yet.
func (r *Limiter) Undebited() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.undebited)
}

// TakeRuns reads a reply to runs of equal calls, as many as each number says, of two
// buckets each; 0 is one call with a slot. It returns how many calls each admits, and the
// sum of the milliseconds to wait.
func TakeRuns(reply, id string, runs ...int) (admitted int, ms int64, err error) {
	b := batch{id: id}
	var r Limiter
	for i, n := range runs {
		for range max(n, 1) {
			j := r.newJob(opTake, nil, id)
			j.op.count = 2
			j.op.buckets[0].key = strconv.Itoa(i)
			if n == 0 {
				j.op.slots, j.op.slotsKey = 1, "slots"
			}
			b.jobs = append(b.jobs, j)
		}
	}
	if err := b.readReply(&batcher{}, reply); err != nil {
		return 0, 0, err
	}
	for _, j := range b.jobs {
		if j.op.decision.outcome == charge.Taken {
			admitted++
		}
		ms += j.op.decision.ms
	}
	return admitted, ms, nil
}

// ReserveReply reads a reply to a reservation of two windows. It returns whether it was taken, else the
// place of the window that has no room, or 0, and what the limiter knows of the first window then.
func ReserveReply(reply, id string) (taken bool, full int, known budget.Amount, err error) {
	r := Limiter{options: Options{Clock: time.Now}}
	r.windows = windows.NewShared(time.Now, keep, func(c budget.Counter, _ time.Time) string { return c.Budget })
	j := r.newJob(opTake, nil, id)
	for _, name := range []string{"a", "b"} {
		j.op.bounds = append(j.op.bounds, budget.Charge{Budget: &budget.Budget{Name: name, Window: budget.Month, Zone: time.UTC}})
	}
	j.op.windows = r.windows.Find(j.op.bounds, time.Now(), true)
	b := batch{id: id, places: map[string]int{}}
	b.add(j)
	b.sent = r.windows.Send(b.windows, nil)
	if err := b.readReply(&batcher{}, reply); err != nil {
		return false, 0, budget.Amount{}, err
	}
	c := j.op.decision
	if c.outcome == charge.Refused {
		full = c.by + 1
	}
	return c.outcome == charge.Taken, full, r.windows.Send(b.windows, nil)[0].Spent, nil
}

// SpendTogether settles reservations and makes others, which Redis decides as one batch.
func (r *Limiter) SpendTogether(ctx context.Context, ended []budget.Reservation, actual []budget.Amount, charges [][]budget.Charge, amounts []budget.Amount) ([]budget.Reservation, []error) {
	conn := r.state.Load().conn
	var jobs []*job
	for i, h := range ended {
		h.Settle(actual[i])
	}
	r.mu.Lock()
	pending := r.pending
	r.pending = nil
	r.mu.Unlock()
	for _, s := range pending {
		j, err := r.settleJob(ctx, conn, s)
		if err != nil {
			return nil, []error{err}
		}
		jobs = append(jobs, j)
	}
	all := make([]charge.Charges, len(charges))
	for i := range charges {
		all[i].Windows, all[i].Amount = charges[i], amounts[i]
		more, err := r.takes(ctx, conn, &all[i], r.now(), r.nextID(), nil)
		if err != nil {
			return nil, []error{err}
		}
		jobs = append(jobs, more...)
	}
	for _, j := range jobs {
		j.stage.Store(sent)
	}
	conn.single.beside().exec(ctx, jobs, true)
	holds, errs := make([]budget.Reservation, len(charges)), make([]error, len(charges))
	for i, j := range jobs[len(pending):] {
		switch c := j.op.decision; {
		case j.err != nil:
			errs[i] = j.err
		case c.outcome == charge.Refused:
			errs[i] = charges[i][c.by].Budget.Exhausted(amounts[i], c.now, j.op.windows[c.by].End)
		default:
			holds[i] = budget.NewReservation(&later{reservation{limiter: r, id: j.op.id, windows: j.op.windows}}, 0)
		}
	}
	return holds, errs
}

// later is a reservation that SpendTogether settles.
type later struct{ reservation }

func (h *later) Settle(_ uint64, actual budget.Amount) {
	h.limiter.settleLater(settlement{h.id, h.windows, actual})
}

// beside returns a batcher of the same node with no goroutine of its own.
func (s *batcher) beside() *batcher {
	return &batcher{node: s.node, epochKey: s.epochKey, epoch: s.epoch, instance: s.instance}
}

// KeyOf is the key of an agent's bucket.
func KeyOf(prefix, agent string) string {
	return bucketKey(prefix, charge.Agents, charge.Name{First: charge.BoundedName(agent)})
}

// SlotsKeyOf is the key of an agent's slots.
func SlotsKeyOf(prefix, agent string) string { return slotsKey(prefix, charge.BoundedName(agent)) }

// TakeTogether takes for calls that Redis decides as one batch.
func (r *Limiter) TakeTogether(ctx context.Context, limits []*ratelimit.Limits, keys []ratelimit.Key) ([]error, error) {
	single := r.state.Load().conn.single
	jobs := make([]*job, 0, len(keys))
	charges := make([]charge.Charges, len(keys))
	for i, key := range keys {
		if err := ratelimit.ChargeCall(ctx, &charges[i], true, limits[i], key); err != nil {
			return nil, err
		}
		var room [1]*job
		all, err := r.takes(ctx, r.state.Load().conn, &charges[i], r.now(), r.nextID(), room[:0])
		if err != nil {
			return nil, err
		}
		all[0].stage.Store(sent)
		jobs = append(jobs, all...)
	}
	single.beside().exec(ctx, jobs, true)
	results := make([]error, len(jobs))
	for i, j := range jobs {
		switch c := j.op.decision; {
		case j.err != nil:
			results[i] = charge.Unavailable(redisconn.Describe(j.err))
		case c.outcome == charge.Exhausted:
			results[i] = charge.Verdict{Outcome: c.outcome, MS: c.ms, By: &charges[i].List[j.op.charges[c.by]]}.CallError(&charges[i])
		default:
			results[i] = charge.Verdict{Outcome: c.outcome}.CallError(&charges[i])
		}
	}
	return results, nil
}
