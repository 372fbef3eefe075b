package ratelimit

import (
	"context"
	"strconv"
	"time"
)

// next is the id of a request.
func (r *Redis) next() string { return r.id + strconv.FormatUint(r.count.Add(1), 36) }

// lease is the hold of a call that was taken in phase p.
func (r *Redis) lease(p *phase, v verdict, d *demand, id string) Lease {
	if v.outcome != taken || d.slots == nil {
		return Lease{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	agent := d.agent
	if r.held[agent] == nil {
		r.held[agent] = map[string]struct{}{}
	}
	r.held[agent][id] = struct{}{}
	// Redis went, or came back, since: whoever counts now did not see the call.
	if now := r.phase.Load(); now.link != p.link || now.local != p.local {
		switch {
		case now.link != nil:
			r.renewSome(now, agent, []any{id})
		case now.local != nil:
			now.local.calls.enter(agent)
		}
	}
	return Lease{&slot{owner: r, agent: agent, id: id}}
}

// leave ends a call in flight. Redis is told without waiting; if it is not, the
// lease ends by itself, since it is not renewed any more.
func (r *Redis) leave(agent, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held[agent], id)
	if len(r.held[agent]) == 0 {
		delete(r.held, agent)
	}
	switch p := r.phase.Load(); {
	case p.link != nil:
		key := slotsKey(r.prefix, agent)
		if s, err := p.link.route(r.ctx, key); err == nil {
			s.put(&job{args: []any{"zrem", key, id}, done: make(chan struct{})})
		}
	case p.local != nil:
		p.local.calls.leave(agent, id)
	}
}

// renew leases on what is held, three times in the time of a lease.
func (r *Redis) renew() {
	ticker := time.NewTicker(r.seams.lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-ticker.C:
		}
		r.mu.Lock()
		if p := r.phase.Load(); p.link != nil {
			r.renewAll(p)
		}
		r.mu.Unlock()
	}
}

// renewAll queues the renewal of all leases; r.mu is held, so that no call that
// has ended is renewed after it was removed.
func (r *Redis) renewAll(p *phase) {
	for agent, ids := range r.held {
		some := make([]any, 0, min(len(ids), batchLength))
		for id := range ids {
			if some = append(some, id); len(some) == batchLength {
				r.renewSome(p, agent, some)
				some = make([]any, 0, batchLength)
			}
		}
		if len(some) > 0 {
			r.renewSome(p, agent, some)
		}
	}
}

func (r *Redis) renewSome(p *phase, agent string, ids []any) {
	key := slotsKey(r.prefix, agent)
	s, err := p.link.route(context.Background(), key)
	if err != nil {
		return // the next call will find out
	}
	request := r.next()
	args := append(r.head(s, request, 1+len(ids)), r.seams.lease.Microseconds())
	j := newJob(renewScript, []string{key}, append(args, ids...)...)
	j.then = func(reply string, err error) {
		if err == nil && reply != request+" renewed" {
			err = errReply
		}
		if err != nil && !onlyThisCall(err) {
			r.lose(p, err)
		}
	}
	s.put(j)
}
