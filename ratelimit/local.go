package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Local is the limiter of one process. Memory is bounded however many names
// are made up: 16384 buckets of a kind, more only where the limits hold more
// names, and a counter for each agent with calls in flight. When all of them
// are busy, a name that the limits do not hold is refused as if its own budget
// were spent, until one is full again: a share of somebody else's bucket would
// be more than the limit of one or less than that of the other. A name that
// the limits hold always has its bucket.
//
// A call taken while no concurrency limit applied to its agent is not counted
// against one that is introduced while it runs.
type Local struct {
	clock    func() time.Time
	capacity int
	calls    set
	callers  set
}

var _ Limiter = (*Local)(nil)

// NewLocal returns a limiter whose buckets are full. Clock is time.Now but for
// tests; without a clock every question is refused.
func NewLocal(clock func() time.Time) *Local { return newLocal(clock, capacity) }

func newLocal(clock func() time.Time, capacity int) *Local {
	l := &Local{clock: clock, capacity: capacity}
	if clock != nil {
		start := clock()
		for _, s := range []*set{&l.calls, &l.callers} {
			s.start, s.latest = start, start
			s.held = make(map[string]int)
		}
	}
	return l
}

// Take is Limiter's. One lock covers all budgets of calls, so that nobody is
// refused for a token that another call takes and hands back.
func (l *Local) Take(ctx context.Context, limits *Limits, key Key) (Lease, error) {
	if err := l.ready(ctx, limits); err != nil {
		return Lease{}, unavailable(err)
	}
	if key.Agent == "" || key.Tool == "" {
		return Lease{}, unavailable(errNobody)
	}
	var d demand
	d.fill(limits, key)
	if !d.usable() {
		return Lease{}, unavailable(errFigures)
	}
	slot, v := l.calls.take(&d, l.clock(), l.capacity)
	switch v.outcome {
	case taken:
		return Lease{slot}, nil
	case spent:
		return Lease{}, rateLimited(v.ms, v.by)
	case crowded:
		return Lease{}, concurrencyLimited(*d.slots)
	}
	return Lease{}, unavailable(errDisagree)
}

// Caller is Limiter's. It shares no lock with Take.
func (l *Local) Caller(ctx context.Context, limits *Limits, caller string) error {
	if err := l.ready(ctx, limits); err != nil {
		return unavailable(err)
	}
	if caller == "" {
		return unavailable(errNobody)
	}
	if limits.Caller == nil {
		return nil
	}
	var d demand
	d.add(callers, false, true, name{bounded(caller), ""}, *limits.Caller)
	if !d.usable() {
		return unavailable(errFigures)
	}
	_, v := l.callers.take(&d, l.clock(), l.capacity)
	switch v.outcome {
	case taken:
		return nil
	case spent:
		return callerRateLimited(v.ms, v.by)
	}
	return unavailable(errDisagree)
}

// cause of limiter_unavailable, for the operator.
type cause string

func (c cause) Error() string { return string(c) }

const (
	errNoLimiter cause = "there is no limiter, or it has no clock"
	errNoContext cause = "there is no context"
	errNoLimits  cause = "there are no limits"
	errNobody    cause = "the question names no agent, no tool or no caller"
	errFigures   cause = "the limits hold a budget or a concurrency that admits nothing"
	errDisagree  cause = "a budget refused after it had agreed"
)

func (l *Local) ready(ctx context.Context, limits *Limits) error {
	switch {
	case l == nil || l.clock == nil:
		return errNoLimiter
	case ctx == nil:
		return errNoContext
	case limits == nil:
		return errNoLimits
	}
	return ctx.Err()
}

// outcome of a demand. Its zero value refuses.
type outcome uint8

const (
	failed outcome = iota
	taken
	spent
	crowded
	gone
)

// verdict on a demand: for spent, how long to wait in milliseconds, and for
// which budget.
type verdict struct {
	outcome outcome
	ms      int64
	by      *ask
}

// set is a set of buckets and slots under one lock, with its own time.
type set struct {
	mu            sync.Mutex
	start, latest time.Time
	tables        [kinds]table
	held          map[string]int // calls in flight, by agent; never 0

	// empty: buckets hold nothing at the start, and what the rate brought since.
	// closed: nothing is taken any more.
	empty, closed bool
}

// take takes the whole demand or nothing. The slot is nil where the agent's
// calls are not counted.
func (s *set) take(d *demand, raw time.Time, capacity int) (*slot, verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, verdict{outcome: gone}
	}
	if s.latest.Before(raw) {
		s.latest = raw
	}
	now := moment{at: s.latest, ns: int64(s.latest.Sub(s.start))}

	v := verdict{outcome: taken}
	for i := range d.count {
		a := &d.asks[i]
		if ms := s.consult(a, raw, now, capacity); ms > v.ms {
			v = verdict{outcome: spent, ms: ms, by: a}
		}
	}
	if v.outcome == spent {
		return nil, v
	}
	if d.slots != nil && s.held[d.agent] >= *d.slots {
		return nil, verdict{outcome: crowded}
	}
	for i := range d.count {
		a := &d.asks[i]
		if !s.tables[a.kind].spend(a.bucket, now) {
			return nil, verdict{outcome: failed}
		}
		a.bucket.granted++
	}
	if d.slots == nil {
		return nil, v
	}
	s.held[d.agent]++
	return &slot{owner: s, agent: d.agent}, v
}

// beginning is since when new buckets fill; nil where they begin full.
func (s *set) beginning() *time.Time {
	if !s.empty {
		return nil
	}
	return &s.start
}

// consult finds the bucket and what it holds, and takes nothing. It returns
// how many milliseconds the bucket is short of a token; 0 if it has one.
func (s *set) consult(a *ask, raw time.Time, now moment, capacity int) int64 {
	t := &s.tables[a.kind]
	a.bucket = t.find(a, now, capacity, s.beginning())
	if a.bucket == nil {
		a.cramped = true
		return t.room(raw, now)
	}
	if a.bucket.plenty(now) {
		return 0
	}
	tokens := a.bucket.limiter.TokensAt(now.at)
	if a.bucket.short(tokens) == 0 {
		return 0
	}
	return a.bucket.wait(tokens, raw, now)
}

// slot is one call in flight of an agent.
type slot struct {
	owner     interface{ leave(agent, id string) }
	agent, id string
	released  atomic.Bool
}

func (s *slot) release() {
	if s.released.CompareAndSwap(false, true) {
		s.owner.leave(s.agent, s.id)
	}
}

// leave ends one call in flight of an agent.
func (s *set) leave(agent, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[agent]--; s.held[agent] == 0 {
		delete(s.held, agent)
	}
}
