package ratelimit

import (
	"time"

	"github.com/callgate/callgate/ratelimit/internal/charge"
	"github.com/callgate/callgate/ratelimit/internal/windows"
)

// Share is one replica's share of every budget, which it grants while the store that
// replicas share is away. Its buckets begin empty.
type Share struct{ local *Local }

// NewShare returns a share whose time begins now, of windows as far as they are known.
func NewShare(clock func() time.Time, known *windows.Table) *Share {
	l := NewLocal(clock)
	l.calls.windows = known
	for _, s := range []*bucketSet{&l.calls, &l.callers} {
		s.empty = true
	}
	return &Share{l}
}

// Take takes the share of all charges or none: each is divided by the number of
// replicas. The caller releases the slot. After the last DrainGrants the outcome is
// closed.
func (s *Share) Take(d *charge.Charges, replicas int) charge.Verdict {
	part := *d
	part.Divide(replicas)
	set := &s.local.calls
	if d.Count > 0 && d.List[0].Kind == charge.Callers {
		set = &s.local.callers
	}
	_, v := set.take(&part, s.local.clock(), s.local.capacity)
	d.Held, d.Refusal = part.Held, part.Refusal
	return v
}

// AddInFlight counts calls in flight that began elsewhere.
func (s *Share) AddInFlight(agent string, calls int) {
	set := &s.local.calls
	set.mu.Lock()
	defer set.mu.Unlock()
	set.inFlight[agent] += calls
}

// Release ends one call in flight of an agent.
func (s *Share) Release(agent string) { s.local.calls.release(agent) }

// Grant is the amount of a budget that was granted while the store was away.
type Grant struct {
	Kind   charge.Kind
	Name   charge.Name
	Budget Budget
	Tokens int64
}

// DrainGrants returns what was granted since it was last called; with closing, nothing
// is granted any more. A bucket that is full again is left out: the shared one would be
// full too.
func (s *Share) DrainGrants(closing bool) []Grant {
	var all []Grant
	for _, set := range []*bucketSet{&s.local.calls, &s.local.callers} {
		set.mu.Lock()
		set.closed = set.closed || closing
		now := int64(s.local.clock().Sub(set.start))
		for k := range set.tables {
			for _, b := range set.tables[k].byFull {
				if b.granted > 0 && b.full > now {
					all = append(all, Grant{charge.Kind(k), b.name, b.undivided, b.granted})
				}
				b.granted = 0
			}
		}
		set.mu.Unlock()
	}
	return all
}
