package redislimit

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/ratelimit/internal/charge"
	"github.com/callgate/callgate/ratelimit/internal/windows"
)

// takes divides charges by node: into one operation where there is one node, else by hash tag.
// The windows are those of a time. The result uses the memory of room.
func (r *Limiter) takes(ctx context.Context, l *conn, d *charge.Charges, at time.Time, id string, room []*job) ([]*job, error) {
	part := func(key string) (*op, error) {
		for _, j := range room {
			if l.single != nil || j.op.tag() == tagOf(key) {
				return j.op, nil
			}
		}
		s, err := l.route(ctx, key)
		if err != nil {
			return nil, err
		}
		j := r.newJob(opTake, s, id)
		room = append(room, j)
		return j.op, nil
	}
	for i := range d.Count {
		a := &d.List[i]
		key := bucketKey(r.prefix, a.Kind, a.Name)
		t, err := part(key)
		if err != nil {
			return nil, err
		}
		t.buckets[t.count] = bucket{key: key, speed: unitsPerMicrosecond(a.Budget.Rate), burst: int64(a.Budget.Burst)}
		t.charges[t.count] = i
		t.count++
	}
	if d.Slots != nil {
		// The buckets of the agent, if any, have the same tag.
		key := slotsKey(r.prefix, d.Agent)
		t, err := part(key)
		if err != nil {
			return nil, err
		}
		t.slots, t.slotsKey = *d.Slots, key
	}
	if len(d.Windows) > 0 {
		all := r.windows.Find(d.Windows, at, true)
		t, err := part(all[0].StoreKey)
		if err != nil {
			return nil, err
		}
		t.windows, t.bounds, t.amount = all, d.Windows, d.Amount
	}
	return room, nil
}

func (r *Limiter) testTime() string {
	if r.hooks.clock == nil {
		return ""
	}
	return strconv.FormatInt(r.hooks.clock().UnixMicro(), 10)
}

// timers are stopped timers: a call that waits for Redis starts one.
var timers = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}}

// query gets a decision from Redis. After an error nothing is held, except what a
// request took whose reply was lost.
func (r *Limiter) query(ctx context.Context, l *conn, d *charge.Charges, id string) (v charge.Verdict, err error) {
	at := r.now()
	for range 3 { // the windows may be those of another time
		if v, at, err = r.queryAt(ctx, l, d, at, id); v.Outcome != charge.Moved {
			return v, err
		}
	}
	return charge.Verdict{}, errClockLeft
}

func (r *Limiter) queryAt(ctx context.Context, l *conn, d *charge.Charges, at time.Time, id string) (charge.Verdict, time.Time, error) {
	var room [charge.Callers]*job
	jobs, err := r.takes(ctx, l, d, at, id, room[:0])
	if err != nil {
		return charge.Verdict{}, at, err
	}
	for i, j := range jobs {
		if !j.op.batcher.enqueue(j) {
			err = errQueueFull
			jobs = jobs[:i]
			break
		}
	}
	timer := timers.Get().(*time.Timer)
	timer.Reset(r.options.wait(callTimeout))
	v := charge.Verdict{Outcome: charge.Taken}
	granted := jobs[:0]
	var held []*windows.Window
	for _, j := range jobs {
		fail := j.await(ctx, timer.C)
		if fail != nil {
			if len(j.op.windows) > 0 && d.Amount != (budget.Amount{}) { // it may have been counted
				r.settleLater(settlement{id, j.op.windows, budget.Amount{}})
			}
			err = cmp.Or(err, fail)
			continue
		}
		switch c := j.op.decision; {
		case c.outcome == charge.Taken:
			granted = append(granted, j)
			if len(j.op.windows) > 0 {
				held = j.op.windows
			}
		case c.outcome == charge.Exhausted && c.ms > v.MS:
			v = charge.Verdict{Outcome: charge.Exhausted, MS: c.ms, By: &d.List[j.op.charges[c.by]]}
		case v.Outcome != charge.Taken:
		case c.outcome == charge.Refused:
			d.Refusal = d.Windows[c.by].Budget.Exhausted(d.Amount, c.now, j.op.windows[c.by].End)
			v = charge.Verdict{Outcome: charge.Refused}
		default:
			v, at = charge.Verdict{Outcome: c.outcome}, c.now
		}
	}
	timer.Stop()
	timers.Put(timer)
	if err == nil && v.Outcome == charge.Taken {
		if held != nil {
			d.Held = budget.NewReservation(&reservation{limiter: r, id: id, windows: held}, 0)
		}
		return v, at, nil
	}
	for _, j := range granted {
		j.op.giveBack()
		if len(j.op.windows) > 0 {
			r.settleLater(settlement{id, j.op.windows, budget.Amount{}})
		}
	}
	return v, at, err
}
