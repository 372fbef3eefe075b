package redislimit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/internal/charge"
)

var _ ratelimit.Meter = (*Limiter)(nil)

// Levels implements ratelimit.Meter. It reads the keys of one page, and changes nothing. Names that
// only other gateways use are not found: Redis is not searched for keys. While Redis is away it
// returns an error.
func (r *Limiter) Levels(ctx context.Context, limits *ratelimit.Limits, q ratelimit.LevelQuery) (ratelimit.LevelPage, error) {
	if !r.ready() {
		return ratelimit.LevelPage{}, charge.ErrNoLimiter
	}
	state := r.state.Load()
	if state.conn == nil {
		return ratelimit.LevelPage{}, state.away()
	}
	r.mu.Lock()
	in := ratelimit.Extra{Agents: slices.Collect(maps.Keys(r.inFlight))}
	r.mu.Unlock()
	refs, next, err := ratelimit.LevelRefs(limits, q, in)
	if err != nil {
		return ratelimit.LevelPage{}, err
	}
	jobs := make([]*job, len(refs))
	for i := range refs {
		ref := &refs[i]
		key := r.keyOf(ref)
		s, err := state.conn.route(ctx, key)
		if err != nil {
			return ratelimit.LevelPage{}, redisconn.Describe(err)
		}
		jobs[i] = r.newJob(opRead, s, r.nextID())
		if ref.Slots > 0 {
			jobs[i].op.slotsKey = key
		} else {
			jobs[i].op.setBucket(key, ref.Budget)
		}
	}
	if err := r.readAll(ctx, state, jobs); err != nil {
		return ratelimit.LevelPage{}, err
	}
	page := ratelimit.LevelPage{Levels: make([]ratelimit.Level, len(refs)), Next: next}
	for i := range refs {
		found := jobs[i].op.decision
		if refs[i].Slots > 0 {
			found.left = refs[i].Slots - found.left
		}
		page.Levels[i] = refs[i].Level(found.left, time.Duration(found.full)*time.Microsecond)
	}
	return page, nil
}

// readAll sends jobs that read, and waits for all replies. A Redis that does not answer is found to be away
// also where nothing but levels is asked for.
func (r *Limiter) readAll(caller context.Context, p *connState, jobs []*job) error {
	ctx, cancel := context.WithTimeout(caller, 2*r.options.wait(callTimeout))
	defer cancel()
	err := r.sendAll(ctx, jobs)
	if err != nil && !errors.Is(err, errQueueFull) && caller.Err() == nil {
		r.disconnect(p, err)
	}
	for _, j := range jobs {
		if err == nil {
			err = j.err
		}
	}
	return redisconn.Describe(err)
}

func (r *Limiter) keyOf(ref *ratelimit.LevelRef) string {
	if ref.Slots > 0 {
		return slotsKey(r.prefix, ref.Name.First)
	}
	return bucketKey(r.prefix, ref.Kind, ref.Name)
}
