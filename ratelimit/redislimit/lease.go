package redislimit

import (
	"context"
	"strconv"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// nextID returns the id of a new request.
func (r *Limiter) nextID() string { return r.id + strconv.FormatUint(r.count.Add(1), 36) }

// lease returns the lease of a call that was admitted in state p.
func (r *Limiter) lease(p *connState, v charge.Verdict, d *charge.Charges, id string) ratelimit.Lease {
	if v.Outcome != charge.Taken || d.Slots == nil {
		return ratelimit.Lease{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	agent := d.Agent
	if r.inFlight[agent] == nil {
		r.inFlight[agent] = map[string]struct{}{}
	}
	r.inFlight[agent][id] = struct{}{}
	// If Redis was lost or came back since, the current counter did not see the call.
	if now := r.state.Load(); now.conn != p.conn || now.share != p.share {
		switch {
		case now.conn != nil:
			r.renewBatch(now, agent, []string{id})
		case now.share != nil:
			now.share.AddInFlight(agent, 1)
		}
	}
	return ratelimit.NewLease(func() { r.release(agent, id) })
}

// release ends a call in flight. It does not wait for Redis; if the command is lost,
// the lease ends by itself, since it is no longer renewed.
func (r *Limiter) release(agent, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inFlight[agent], id)
	if len(r.inFlight[agent]) == 0 {
		delete(r.inFlight, agent)
	}
	switch p := r.state.Load(); {
	case p.conn != nil:
		key := slotsKey(r.prefix, agent)
		if s, err := p.conn.route(r.ctx, key); err == nil {
			j := r.newJob(opBack, s, id)
			j.op.slotsKey = key
			s.enqueue(j)
		}
	case p.share != nil:
		p.share.Release(agent)
	}
}

// renewNow queues the renewal of all leases.
func (r *Limiter) renewNow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.state.Load(); p.conn != nil {
		r.renewAll(p)
	}
}

// renewAll queues the renewal of all leases. r.mu is held, so that no ended call is
// renewed after it was removed.
func (r *Limiter) renewAll(p *connState) {
	for agent, ids := range r.inFlight {
		some := make([]string, 0, min(len(ids), maxBatch))
		for id := range ids {
			if some = append(some, id); len(some) == maxBatch {
				r.renewBatch(p, agent, some)
				some = make([]string, 0, maxBatch)
			}
		}
		if len(some) > 0 {
			r.renewBatch(p, agent, some)
		}
	}
}

func (r *Limiter) renewBatch(p *connState, agent string, ids []string) {
	key := slotsKey(r.prefix, agent)
	s, err := p.conn.route(context.Background(), key)
	if err != nil {
		return // the next call sees the same error
	}
	j := r.newJob(opRenew, s, r.nextID())
	j.op.slotsKey, j.op.ids = key, ids
	j.onDone = func(err error) {
		if err != nil && !affectsOneCall(err) {
			r.disconnect(p, err)
		}
	}
	s.enqueue(j)
}
