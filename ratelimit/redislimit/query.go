package redislimit

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// takes divides charges by node: into one take where there is one node, else by hash tag.
// The result uses the memory of room.
func (r *Limiter) takes(ctx context.Context, l *conn, d *charge.Charges, id string, room []*job) ([]*job, error) {
	testTime := r.testTime()
	part := func(key string) (*take, error) {
		for _, j := range room {
			if l.single != nil || j.take.tag() == tagOf(key) {
				return j.take, nil
			}
		}
		s, err := l.route(ctx, key)
		if err != nil {
			return nil, err
		}
		j := newTakeJob()
		j.take.limiter, j.take.batcher, j.take.id, j.take.testTime = r, s, id, testTime
		room = append(room, j)
		return j.take, nil
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
	return room, nil
}

// newTakeJob returns a job and its take as one piece of memory.
func newTakeJob() *job {
	both := &struct {
		job  job
		take take
	}{job: job{done: make(chan struct{})}}
	both.job.take = &both.take
	return &both.job
}

// scriptArgs returns the arguments that every script begins with.
func (r *Limiter) scriptArgs(s *batcher, id string, room int) []any {
	return append(make([]any, 0, 4+room), r.testTime(), s.since, r.hooks.extraTTL.Milliseconds(), id)
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
func (r *Limiter) query(ctx context.Context, l *conn, d *charge.Charges, id string) (charge.Verdict, error) {
	var room [charge.Callers]*job
	jobs, err := r.takes(ctx, l, d, id, room[:0])
	if err != nil {
		return charge.Verdict{}, err
	}
	for i, j := range jobs {
		if !j.take.batcher.enqueue(j) {
			err = errQueueFull
			jobs = jobs[:i]
			break
		}
	}
	timer := timers.Get().(*time.Timer)
	timer.Reset(r.options.wait(callTimeout))
	v := charge.Verdict{Outcome: charge.Taken}
	granted := jobs[:0]
	for _, j := range jobs {
		fail := j.await(ctx, timer.C)
		if fail != nil {
			err = cmp.Or(err, fail)
			continue
		}
		switch c := j.take.decision; {
		case c.outcome == charge.Taken:
			granted = append(granted, j)
		case c.outcome == charge.Exhausted && c.ms > v.MS:
			v = charge.Verdict{Outcome: charge.Exhausted, MS: c.ms, By: &d.List[j.take.charges[c.by]]}
		case c.outcome == charge.NoSlot && v.Outcome == charge.Taken:
			v = charge.Verdict{Outcome: charge.NoSlot}
		}
	}
	timer.Stop()
	timers.Put(timer)
	if err == nil && v.Outcome == charge.Taken {
		return v, nil
	}
	for _, j := range granted {
		j.take.refund()
	}
	return v, err
}
