package redislimit

import (
	"context"
	"strconv"
	"time"

	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// group is the part of a call's charges that one node decides.
type group struct {
	tag     string
	keys    []string
	charges []*charge.Charge
	slots   bool
	batcher *batcher
	job     *job
}

// groups divides charges by node: into one group where there is one node, else by
// hash tag.
func (r *Limiter) groups(ctx context.Context, l *conn, d *charge.Charges) ([]group, error) {
	all := make([]group, 0, 3)
	of := func(tag string) *group {
		for i := range all {
			if l.single != nil || all[i].tag == tag {
				return &all[i]
			}
		}
		all = append(all, group{tag: tag, keys: make([]string, 0, d.Count+1), charges: make([]*charge.Charge, 0, d.Count)})
		return &all[len(all)-1]
	}
	for i := range d.Count {
		a := &d.List[i]
		tag, key := bucketKey(r.prefix, a.Kind, a.Name)
		g := of(tag)
		g.keys, g.charges = append(g.keys, key), append(g.charges, a)
	}
	if d.Slots != nil {
		// The buckets of the agent, if any, are in the first group.
		tag, _ := bucketKey(r.prefix, charge.Agents, charge.Name{First: d.Agent})
		g := of(tag)
		g.keys, g.slots = append(g.keys, slotsKey(r.prefix, d.Agent)), true
	}
	for i := range all {
		s, err := l.route(ctx, all[i].keys[0])
		if err != nil {
			return nil, err
		}
		all[i].batcher = s
	}
	return all, nil
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

func (r *Limiter) takeJob(g *group, d *charge.Charges, id string) *job {
	slots := 0
	if g.slots {
		slots = *d.Slots
	}
	args := append(r.scriptArgs(g.batcher, id, 2+2*len(g.charges)), slots, r.hooks.lease.Microseconds())
	for _, a := range g.charges {
		args = append(args, unitsPerMicrosecond(a.Budget.Rate), a.Budget.Burst)
	}
	j := newJob(takeScript, g.keys, args...)
	j.onLateReply = func(reply string, err error) {
		if err != nil {
			return
		}
		if out, _, _, err := parseReply(reply, id, len(g.charges)); err == nil && out == charge.Taken {
			r.refund(g, id)
		}
	}
	return j
}

// refund gives back what is known to be granted. It is sent once: if it is lost, the
// tokens come back with the rate, and the slot when its lease ends.
func (r *Limiter) refund(g *group, id string) {
	g.batcher.enqueue(newJob(refundScript, g.keys, append(r.scriptArgs(g.batcher, id, 1), len(g.charges))...))
}

// query asks Redis for a decision. After an error nothing is held, except what a
// request took whose reply was lost.
func (r *Limiter) query(ctx context.Context, l *conn, d *charge.Charges, id string) (charge.Verdict, error) {
	groups, err := r.groups(ctx, l, d)
	if err != nil {
		return charge.Verdict{}, err
	}
	for i := range groups {
		g := &groups[i]
		g.job = r.takeJob(g, d, id)
		if !g.batcher.enqueue(g.job) {
			g.job.stage.Store(abandoned)
			err = errQueueFull
			groups = groups[:i]
			break
		}
	}
	timer := time.NewTimer(r.options.wait(callTimeout))
	defer timer.Stop()
	v := charge.Verdict{Outcome: charge.Taken}
	granted := 0
	for i := range groups {
		g := &groups[i]
		reply, fail := g.await(ctx, timer.C)
		out, ms, by := charge.Failed, int64(0), 0
		if fail == nil {
			out, ms, by, fail = parseReply(reply, id, len(g.charges))
		}
		switch {
		case fail != nil && err == nil:
			err = fail
		case out == charge.Taken:
			granted++
			continue
		case out == charge.Exhausted && ms > v.MS:
			v = charge.Verdict{Outcome: charge.Exhausted, MS: ms, By: g.charges[by-1]}
		case out == charge.NoSlot && v.Outcome == charge.Taken:
			v = charge.Verdict{Outcome: charge.NoSlot}
		}
		g.job = nil // nothing to refund
	}
	if err == nil && v.Outcome == charge.Taken {
		return v, nil
	}
	if granted > 0 {
		for i := range groups {
			if groups[i].job != nil {
				r.refund(&groups[i], id)
			}
		}
	}
	return v, err
}

// await waits for the reply to the group's job. When the time is over or ctx is done,
// it abandons the job, unless the reply has just come.
func (g *group) await(ctx context.Context, over <-chan time.Time) (string, error) {
	var why error
	select {
	case <-g.job.done:
		return g.job.reply, g.job.err
	case <-ctx.Done():
		why = ctx.Err()
	case <-over:
		why = errTimeout
	}
	if g.job.abandon() {
		return "", why
	}
	<-g.job.done
	return g.job.reply, g.job.err
}
