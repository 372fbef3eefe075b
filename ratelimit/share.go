package ratelimit

import "time"

// share is one replica's share of every budget, which it grants while the store that
// replicas share is away. Its buckets begin empty.
type share struct{ local *Local }

// newShare returns a share whose time begins now.
func newShare(clock func() time.Time) *share {
	l := NewLocal(clock)
	for _, s := range []*bucketSet{&l.calls, &l.callers} {
		s.empty = true
	}
	return &share{l}
}

// take takes the share of all charges or none: each is divided by the number of
// replicas. The caller releases the slot. After the last drainGrants the outcome is
// closed.
func (s *share) take(d *charges, replicas int) verdict {
	part := *d
	part.divide(replicas)
	set := &s.local.calls
	if d.count > 0 && d.list[0].kind == callers {
		set = &s.local.callers
	}
	_, v := set.take(&part, s.local.clock(), s.local.capacity)
	return v
}

// addInFlight counts calls in flight that began elsewhere.
func (s *share) addInFlight(agent string, calls int) {
	set := &s.local.calls
	set.mu.Lock()
	defer set.mu.Unlock()
	set.inFlight[agent] += calls
}

// release ends one call in flight of an agent.
func (s *share) release(agent string) { s.local.calls.release(agent) }

// grant is what was granted of a budget while the store was away.
type grant struct {
	kind   kind
	name   name
	budget Budget
	tokens int64
}

// drainGrants returns what was granted since it was last called; with closing, nothing
// is granted any more. A bucket that is full again is left out: the shared one would be
// full too.
func (s *share) drainGrants(closing bool) []grant {
	var all []grant
	for _, set := range []*bucketSet{&s.local.calls, &s.local.callers} {
		set.mu.Lock()
		set.closed = set.closed || closing
		now := int64(s.local.clock().Sub(set.start))
		for k := range set.tables {
			for _, b := range set.tables[k].byFull {
				if b.granted > 0 && b.full > now {
					all = append(all, grant{kind(k), b.name, b.undivided, b.granted})
				}
				b.granted = 0
			}
		}
		set.mu.Unlock()
	}
	return all
}
