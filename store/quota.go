package store

// Bounds are how much a store keeps. A field that is 0 has the store's default.
type Bounds struct {
	Calls int
	Bytes int64 // of arguments and results
	// PrincipalPercent is the most that one principal has of either.
	PrincipalPercent int
	Threads          ThreadBounds
}

const defaultPrincipalPercent = 25

// The default bounds of stores that outlive their process.
const (
	DurableCalls = 1_000_000
	DurableBytes = 4 << 30
)

// WithDefaults replaces fields that are not set.
func (b Bounds) WithDefaults(calls int, bytes int64) Bounds {
	if b.Calls <= 0 {
		b.Calls = calls
	}
	if b.Bytes <= 0 {
		b.Bytes = bytes
	}
	if b.PrincipalPercent <= 0 || b.PrincipalPercent > 100 {
		b.PrincipalPercent = defaultPrincipalPercent
	}
	b.Threads = b.Threads.withDefaults()
	return b
}

// PerPrincipal are the bounds of one principal: at least one call.
func (b Bounds) PerPrincipal() Bounds {
	return Bounds{Calls: max(1, b.Calls*b.PrincipalPercent/100), Bytes: max(1, b.Bytes/100*int64(b.PrincipalPercent))}
}

// Amount is a number of calls and their bytes.
type Amount struct {
	Calls int
	Bytes int64
}

// Usage is the amount that is kept, and the part of it that may be evicted.
type Usage struct{ Total, Evictable Amount }

func (a Amount) minus(b Amount) Amount { return Amount{a.Calls - b.Calls, a.Bytes - b.Bytes} }
func (a Amount) plus(b Amount) Amount  { return Amount{a.Calls + b.Calls, a.Bytes + b.Bytes} }

// Minus is the usage without another.
func (l Usage) Minus(m Usage) Usage {
	return Usage{l.Total.minus(m.Total), l.Evictable.minus(m.Evictable)}
}

// Plus is the usage together with another.
func (l Usage) Plus(m Usage) Usage {
	return Usage{l.Total.plus(m.Total), l.Evictable.plus(m.Evictable)}
}

// Usage is what the call takes.
func (c *Call) Usage() Usage {
	a := Amount{1, c.Size()}
	if c.Evictable() {
		return Usage{a, a}
	}
	return Usage{Total: a}
}

// full reports whether the calls that must be kept fill the bounds.
func (l Usage) full(b Bounds) bool {
	must := l.Total.minus(l.Evictable)
	return must.Calls >= b.Calls || must.Bytes >= b.Bytes
}

// overflows reports whether more is kept than the bounds say, and some of it may
// be evicted.
func (l Usage) overflows(b Bounds) bool {
	return l.Evictable.Calls > 0 && (l.Total.Calls > b.Calls || l.Total.Bytes > b.Bytes)
}

// evictions is how many calls are to be evicted at once where more is kept than the bounds say. Where a
// bound is large, that makes room for more calls than one.
func (l Usage) evictions(b Bounds) int {
	over := l.Total.minus(Amount{b.Calls, b.Bytes})
	calls := over.Bytes * int64(l.Evictable.Calls) / max(1, l.Evictable.Bytes) // of mean length
	return min(max(1, over.Calls, int(calls))+min(b.Calls/1024, 32), sweepBatch)
}

// Quota counts what is kept, in all and for each principal that has calls.
type Quota struct {
	bounds, own Bounds
	total       Usage
	byPrincipal map[string]*Usage
	spare       *Usage // of the last principal that has none any more
}

// NewQuota returns the accounts of an empty store with these bounds.
func NewQuota(b Bounds) Quota {
	return Quota{bounds: b, own: b.PerPrincipal(), byPrincipal: map[string]*Usage{}}
}

// Admit returns ErrFull where there is no room for another call of a principal.
func (t *Quota) Admit(principal string) error {
	if l := t.byPrincipal[principal]; t.total.full(t.bounds) || l != nil && l.full(t.own) {
		return ErrFull
	}
	return nil
}

// Add counts what a commit adds to what is kept. It returns what is kept then, of the principal of the
// first count and in all.
func (t *Quota) Add(counts ...Count) (own, all Usage) {
	for i := range counts {
		c := &counts[i]
		l := t.byPrincipal[c.Principal]
		if l == nil {
			if l, t.spare = t.spare, nil; l == nil {
				l = new(Usage)
			}
			t.byPrincipal[c.Principal] = l
		}
		*l, t.total = l.Plus(c.Of), t.total.Plus(c.Of)
		if i == 0 {
			own = *l
		}
		if l.Total.Calls == 0 {
			delete(t.byPrincipal, c.Principal)
			*l, t.spare = Usage{}, l
		}
	}
	return own, t.total
}
