package ratelimit

import (
	"context"
	"strconv"
	"time"
)

// group is the part of a demand that one node judges.
type group struct {
	tag   string
	keys  []string
	asks  []*ask
	slots bool
	shard *shard
	job   *job
}

// groups divides a demand: into one where there is one node, else by what lies
// together.
func (r *Redis) groups(ctx context.Context, l *link, d *demand) ([]group, error) {
	all := make([]group, 0, 3)
	of := func(tag string) *group {
		for i := range all {
			if l.only != nil || all[i].tag == tag {
				return &all[i]
			}
		}
		all = append(all, group{tag: tag, keys: make([]string, 0, d.count+1), asks: make([]*ask, 0, d.count)})
		return &all[len(all)-1]
	}
	for i := range d.count {
		a := &d.asks[i]
		tag, key := storeKey(r.prefix, a.kind, a.name)
		g := of(tag)
		g.keys, g.asks = append(g.keys, key), append(g.asks, a)
	}
	if d.slots != nil {
		// The buckets of the agent came first, if there are any.
		tag, _ := storeKey(r.prefix, agents, name{d.agent, ""})
		g := of(tag)
		g.keys, g.slots = append(g.keys, slotsKey(r.prefix, d.agent)), true
	}
	for i := range all {
		s, err := l.route(ctx, all[i].keys[0])
		if err != nil {
			return nil, err
		}
		all[i].shard = s
	}
	return all, nil
}

// head are the arguments that every script begins with.
func (r *Redis) head(s *shard, id string, room int) []any {
	return append(make([]any, 0, 4+room), r.standing(), s.since, r.seams.keep.Milliseconds(), id)
}

func (r *Redis) standing() string {
	if r.seams.standing == nil {
		return ""
	}
	return strconv.FormatInt(r.seams.standing().UnixMicro(), 10)
}

func (r *Redis) take(g *group, d *demand, id string) *job {
	slots := 0
	if g.slots {
		slots = *d.slots
	}
	args := append(r.head(g.shard, id, 2+2*len(g.asks)), slots, r.seams.lease.Microseconds())
	for _, a := range g.asks {
		args = append(args, a.budget.Rate.speed(), a.budget.Burst)
	}
	j := newJob(takeScript, g.keys, args...)
	j.late = func(reply string, err error) {
		if err != nil {
			return
		}
		if out, _, _, err := answer(reply, id, len(g.asks)); err == nil && out == taken {
			r.giveBack(g, id)
		}
	}
	return j
}

// giveBack is for what is known to be granted, and is sent once: if it does not
// arrive, the tokens come back with the rate, and the slot when its lease ends.
func (r *Redis) giveBack(g *group, id string) {
	g.shard.put(newJob(giveBackScript, g.keys, append(r.head(g.shard, id, 1), len(g.asks))...))
}

// ask asks Redis. An error means that there is no answer; nothing is then held,
// but for what a request took whose reply was lost.
func (r *Redis) ask(ctx context.Context, l *link, d *demand, id string) (verdict, error) {
	groups, err := r.groups(ctx, l, d)
	if err != nil {
		return verdict{}, err
	}
	for i := range groups {
		g := &groups[i]
		g.job = r.take(g, d, id)
		if !g.shard.put(g.job) {
			g.job.stage.Store(left)
			err = errQueueFull
			groups = groups[:i]
			break
		}
	}
	timer := time.NewTimer(r.options.wait(decisionWait))
	defer timer.Stop()
	v := verdict{outcome: taken}
	granted := 0
	for i := range groups {
		g := &groups[i]
		reply, fail := g.await(ctx, timer.C)
		out, ms, by := failed, int64(0), 0
		if fail == nil {
			out, ms, by, fail = answer(reply, id, len(g.asks))
		}
		switch {
		case fail != nil && err == nil:
			err = fail
		case out == taken:
			granted++
			continue
		case out == spent && ms > v.ms:
			v = verdict{outcome: spent, ms: ms, by: g.asks[by-1]}
		case out == crowded && v.outcome == taken:
			v = verdict{outcome: crowded}
		}
		g.job = nil // nothing to give back
	}
	if err == nil && v.outcome == taken {
		return v, nil
	}
	if granted > 0 {
		for i := range groups {
			if groups[i].job != nil {
				r.giveBack(&groups[i], id)
			}
		}
	}
	return v, err
}

// await waits for the group's answer. Once the time is over, or the caller has
// gone, it takes what has come and leaves the rest.
func (g *group) await(ctx context.Context, over <-chan time.Time) (string, error) {
	var why error
	select {
	case <-g.job.done:
		return g.job.reply, g.job.err
	case <-ctx.Done():
		why = ctx.Err()
	case <-over:
		why = errSlow
	}
	if g.job.leave() {
		return "", why
	}
	<-g.job.done
	return g.job.reply, g.job.err
}
