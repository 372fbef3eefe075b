package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/ratelimit/internal/charge"
	"github.com/callgate/callgate/ratelimit/internal/windows"
)

// Local is the limiter of one process. Its memory is bounded however many names are
// invented: 16384 buckets of a kind, more only where the limits contain more names,
// and a counter for each agent with calls in flight. When no bucket of a kind is
// full, a name that the limits do not contain is refused as if its own budget were
// spent, until one is: to share another name's bucket would grant more than the
// limit of one or less than that of the other. A name that the limits contain always
// has its bucket. Of windows of budgets 65536 are kept until they end; where all are in
// use, another name is refused.
//
// A call taken while no concurrency limit applied to its agent is not counted
// against one that is introduced while it runs.
type Local struct {
	clock    func() time.Time
	capacity int
	calls    bucketSet
	callers  bucketSet
}

var (
	_ Limiter        = (*Local)(nil)
	_ budget.Limiter = (*Local)(nil)
)

// NewLocal returns a limiter whose buckets are full. Clock is time.Now except in
// tests; without a clock every call is refused.
func NewLocal(clock func() time.Time) *Local { return newLocal(clock, maxBuckets, windows.Most) }

func newLocal(clock func() time.Time, capacity, most int) *Local {
	l := &Local{clock: clock, capacity: capacity}
	if clock != nil {
		l.calls.windows = windows.New(clock, most)
		start := clock()
		for _, s := range []*bucketSet{&l.calls, &l.callers} {
			s.start, s.latest = start, start
			s.inFlight = make(map[string]int)
		}
	}
	return l
}

// Take implements Limiter. One lock covers all budgets of calls, so that no call is
// refused for a token that another call takes and gives back.
func (l *Local) Take(ctx context.Context, limits *Limits, key Key) (Lease, error) {
	var d charge.Charges
	if err := ChargeCall(ctx, &d, l.ready(), limits, key); err != nil {
		return Lease{}, charge.Unavailable(err)
	}
	slot, v := l.calls.take(&d, l.clock(), l.capacity)
	if err := v.CallError(&d); err != nil {
		return Lease{}, err
	}
	return Lease{slot}, nil
}

// Caller implements Limiter. It shares no lock with Take.
func (l *Local) Caller(ctx context.Context, limits *Limits, caller string) error {
	var d charge.Charges
	if err := ChargeCaller(ctx, &d, l.ready(), limits, caller); err != nil {
		return charge.Unavailable(err)
	}
	if d.Count == 0 {
		return nil
	}
	_, v := l.callers.take(&d, l.clock(), l.capacity)
	return v.CallerError()
}

// Reserve implements budget.Limiter. Where the windows exist it costs no memory.
func (l *Local) Reserve(ctx context.Context, _ *budget.Set, charges []budget.Charge, amount budget.Amount) (budget.Reservation, error) {
	if err := ctx.Err(); err != nil {
		return budget.Reservation{}, budget.Unavailable(err)
	}
	d := charge.Charges{Windows: charges, Amount: amount}
	l.calls.take(&d, l.clock(), l.capacity)
	return d.Held, d.Refusal
}

// Read implements budget.Limiter.
func (l *Local) Read(_ context.Context, charges []budget.Charge) ([]budget.State, error) {
	return l.calls.windows.Read(charges), nil
}

// Used implements budget.Limiter.
func (l *Local) Used() []budget.Counter { return l.calls.windows.Used() }

// ready reports whether l can judge at all.
func (l *Local) ready() bool { return l != nil && l.clock != nil }

// bucketSet is a set of buckets, slots and windows under one lock, with its own time.
type bucketSet struct {
	mu            sync.Mutex
	start, latest time.Time
	tables        [charge.Kinds]table
	inFlight      map[string]int // calls in flight, by agent; never 0
	windows       *windows.Table

	// empty: buckets begin without tokens. closed: nothing is granted any more.
	empty, closed bool
}

// take takes all charges or none. The slot is nil where the agent's calls are not
// counted.
func (s *bucketSet) take(d *charge.Charges, raw time.Time, capacity int) (*slot, charge.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, charge.Verdict{Outcome: charge.Closed}
	}
	if s.latest.Before(raw) {
		s.latest = raw
	}
	now := instant{at: s.latest, ns: int64(s.latest.Sub(s.start))}

	v := charge.Verdict{Outcome: charge.Taken}
	var buckets [len(d.List)]*bucket
	for i := range d.Count {
		a := &d.List[i]
		var ms int64
		if buckets[i], ms = s.check(a, raw, now, capacity); ms > v.MS {
			v = charge.Verdict{Outcome: charge.Exhausted, MS: ms, By: a}
		}
	}
	if v.Outcome == charge.Exhausted {
		return nil, v
	}
	inFlight := 0
	if d.Slots != nil {
		inFlight = s.inFlight[d.Agent]
	}
	if d.Slots != nil && inFlight >= *d.Slots {
		return nil, charge.Verdict{Outcome: charge.NoSlot}
	}
	if len(d.Windows) > 0 {
		if d.Held, d.Refusal = s.windows.Take(d.Windows, d.Amount, d.Share); d.Refusal != nil {
			return nil, charge.Verdict{Outcome: charge.Refused}
		}
	}
	for i := range d.Count {
		if !buckets[i].take(now) {
			return nil, charge.Verdict{Outcome: charge.Failed}
		}
		buckets[i].granted++
	}
	if d.Slots == nil {
		return nil, v
	}
	s.inFlight[d.Agent] = inFlight + 1
	return &slot{set: s, agent: d.Agent}, v
}

// emptySince is when new buckets were empty; nil where they begin full.
func (s *bucketSet) emptySince() *time.Time {
	if !s.empty {
		return nil
	}
	return &s.start
}

// check finds the bucket of a charge, nil if there is no room for it, and takes
// nothing. It also returns in how many milliseconds the bucket has a token; 0 if it has
// one.
func (s *bucketSet) check(a *charge.Charge, raw time.Time, now instant, capacity int) (*bucket, int64) {
	t := &s.tables[a.Kind]
	b := t.find(a, now, capacity, s.emptySince())
	if b == nil {
		a.TableFull = true
		return nil, t.waitForRoom(raw, now)
	}
	if b.clearlyHasToken(now) {
		return b, 0
	}
	tokens := b.limiter.TokensAt(now.at)
	if b.deficit(tokens) == 0 {
		return b, 0
	}
	return b, b.waitMillis(tokens, raw, now)
}

// slot is one call in flight of an agent.
type slot struct {
	set      *bucketSet
	agent    string
	end      func() // instead of set, where another limiter counts the call
	released atomic.Bool
}

func (s *slot) release() {
	switch {
	case !s.released.CompareAndSwap(false, true):
	case s.end != nil:
		s.end()
	default:
		s.set.release(s.agent)
	}
}

// release ends one call in flight of an agent.
func (s *bucketSet) release(agent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.inFlight[agent] - 1; left != 0 {
		s.inFlight[agent] = left
	} else {
		delete(s.inFlight, agent)
	}
}
