package ratelimit

import (
	"context"
	"errors"
	"time"
)

const (
	firstPause = 50 * time.Millisecond
	longPause  = time.Second
	reachTime  = 2 * time.Second
)

// debt is what was granted of a budget while Redis was away.
type debt struct {
	kind   kind
	name   name
	budget Budget
	tokens int64
}

// owed returns what was granted since it was last asked; closing, it grants
// nothing any more. A bucket that is full again owes nothing: the shared one
// would be full too.
func (l *Local) owed(closing bool) []debt {
	var all []debt
	for _, s := range []*set{&l.calls, &l.callers} {
		s.mu.Lock()
		s.closed = s.closed || closing
		now := int64(l.clock().Sub(s.start))
		for k := range s.tables {
			for _, b := range s.tables[k].byFull {
				if b.granted > 0 && b.full > now {
					all = append(all, debt{kind(k), b.name, b.whole, b.granted})
				}
				b.granted = 0
			}
		}
		s.mu.Unlock()
	}
	return all
}

// enter counts a call in flight that began elsewhere.
func (s *set) enter(agent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[agent]++
}

// away is the phase of a loss that begins now. r.mu is held.
func (r *Redis) away(cause error) *phase {
	l := NewLocal(r.options.Clock)
	for _, s := range []*set{&l.calls, &l.callers} {
		s.empty = true
	}
	for agent, ids := range r.held {
		l.calls.held[agent] = len(ids)
	}
	return &phase{local: l, cause: cause}
}

// lose ends a link that failed.
func (r *Redis) lose(p *phase, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase.Load() != p || p.link == nil {
		return
	}
	r.phase.Store(r.away(operator(why)))
	p.link.end()
	select {
	case r.lost <- struct{}{}:
	default:
	}
}

// tend looks for Redis whenever it is away.
func (r *Redis) tend() {
	began := r.options.Clock()
	beat := time.NewTicker(longPause)
	defer beat.Stop()
	var asked uint64
	for missed := 0; ; missed = 0 {
		for waiting := true; waiting; {
			select {
			case <-r.ctx.Done():
				return
			case <-r.lost:
				waiting = false
			case <-beat.C:
				if now := r.count.Load(); now != asked {
					asked, missed = now, 0 // whoever asked knows
					continue
				}
				missed = r.feel(missed)
			}
		}
		r.tell(false)
		pause := firstPause
		if r.options.Clock().Sub(began) < longPause {
			pause = longPause // it comes and goes
		}
		for {
			select {
			case <-r.ctx.Done():
				return
			case <-time.After(r.jitter(pause)):
			}
			_, err := r.reach(r.ctx)
			if err == nil {
				break
			}
			r.still(err)
			pause = min(2*pause, longPause)
		}
		began = r.options.Clock()
		r.tell(true)
	}
}

// feel asks each node whether it is there, so that a gateway that nobody calls
// knows too. A node that misses two questions in a row is lost: one may be a
// machine that is out of breath. It returns how many were missed now.
func (r *Redis) feel(missed int) int {
	p := r.phase.Load()
	if p.link == nil {
		return 0
	}
	for _, s := range p.link.shards {
		g := group{shard: s, job: &job{args: []any{"ping"}, done: make(chan struct{})}}
		if !s.put(g.job) {
			continue // it is busy: its calls tell
		}
		over := time.NewTimer(r.options.wait(decisionWait))
		_, err := g.await(r.ctx, over.C)
		over.Stop()
		if err == nil {
			continue
		}
		if missed++; missed > 1 {
			r.lose(p, err)
		}
		return missed
	}
	return 0
}

// jitter shortens a pause by up to a quarter, so that replicas that lost Redis
// together do not come back together.
func (r *Redis) jitter(d time.Duration) time.Duration {
	var b [1]byte
	if _, err := r.options.Random.Read(b[:]); err != nil {
		return d
	}
	return d - d/4*time.Duration(b[0])/255
}

func (r *Redis) tell(shared bool) {
	if r.options.OnChange == nil {
		return
	}
	_, cause := r.Shared()
	if shared {
		cause = nil
	}
	r.options.OnChange(shared, cause)
}

// still says anew why Redis is away.
func (r *Redis) still(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.phase.Load(); p.link == nil && p.local != nil {
		r.phase.Store(&phase{local: p.local, cause: operator(why)})
	}
}

// reach opens a link, settles what was granted meanwhile, and shares again.
func (r *Redis) reach(ctx context.Context) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.wait(reachTime))
	defer cancel()
	l, err := r.options.dial()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.end()
		}
	}()
	found, warnings, err := l.inspect(ctx, r.prefix, r.id+"probe", r.standing())
	if err != nil {
		return nil, err
	}
	known, err := l.resume(ctx, found, r.known)
	if err != nil {
		return nil, err
	}
	for _, s := range l.shards {
		go s.run()
	}
	// Much may be owed. Most of it is paid before, so that little remains for
	// the moment of the change.
	local := r.phase.Load().local
	for range 2 {
		r.mu.Lock()
		r.debts = append(r.debts, local.owed(false)...)
		r.mu.Unlock()
		if err := r.pay(ctx, l); err != nil {
			return nil, err
		}
	}
	r.known = known
	return warnings, r.share(ctx, l, local)
}

// share makes the link the place where calls are judged. What is still owed is
// queued before them.
func (r *Redis) share(ctx context.Context, l *link, local *Local) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	p := &phase{link: l}
	for _, d := range local.owed(true) {
		j, s, err := r.debit(ctx, l, d)
		if err != nil {
			r.debts = append(r.debts, d)
			continue
		}
		j.then = func(reply string, err error) {
			if err != nil && !onlyThisCall(err) {
				r.mu.Lock()
				r.debts = append(r.debts, d)
				r.mu.Unlock()
				r.lose(p, err)
			}
		}
		if !s.put(j) {
			r.debts = append(r.debts, d)
		}
	}
	r.renewAll(p)
	r.phase.Store(p)
	return nil
}

func (r *Redis) debit(ctx context.Context, l *link, d debt) (*job, *shard, error) {
	_, key := storeKey(r.prefix, d.kind, d.name)
	s, err := l.route(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	args := append(r.head(s, r.next(), 3), d.budget.Rate.speed(), d.budget.Burst, min(d.tokens, most))
	return newJob(debitScript, []string{key}, args...), s, nil
}

// pay debits what is owed, in portions. What may not have been debited stays
// owed: to debit twice is less than the limit, never more.
func (r *Redis) pay(ctx context.Context, l *link) error {
	r.mu.Lock()
	debts := r.debts
	r.debts = nil
	r.mu.Unlock()
	for len(debts) > 0 {
		portion := debts[:min(len(debts), batchLength)]
		if err := r.payPortion(ctx, l, portion); err != nil {
			r.mu.Lock()
			r.debts = append(r.debts, debts...)
			r.mu.Unlock()
			return err
		}
		debts = debts[len(portion):]
	}
	return nil
}

func (r *Redis) payPortion(ctx context.Context, l *link, debts []debt) error {
	jobs := make([]*job, 0, len(debts))
	var failed error
	for _, d := range debts {
		j, s, err := r.debit(ctx, l, d)
		if err == nil && !s.put(j) {
			err = errQueueFull
		}
		if err != nil {
			failed = errors.Join(failed, err)
			break
		}
		jobs = append(jobs, j)
	}
	for _, j := range jobs {
		select {
		case <-j.done:
			if j.err != nil && !onlyThisCall(j.err) {
				failed = j.err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return failed
}
