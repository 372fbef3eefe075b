package store

// Bounds are how much a store keeps. What is 0 is the default of the store.
type Bounds struct {
	Calls int
	Bytes int64 // of arguments and results
	// PrincipalPercent is the most that one principal has of either, in percent.
	PrincipalPercent int
}

const defaultPrincipalPercent = 25

// withDefaults fills in what is not given.
func (b Bounds) withDefaults(calls int, bytes int64) Bounds {
	if b.Calls <= 0 {
		b.Calls = calls
	}
	if b.Bytes <= 0 {
		b.Bytes = bytes
	}
	if b.PrincipalPercent <= 0 || b.PrincipalPercent > 100 {
		b.PrincipalPercent = defaultPrincipalPercent
	}
	return b
}

// perPrincipal is what one principal may have: at least one call.
func (b Bounds) perPrincipal() Bounds {
	return Bounds{Calls: max(1, b.Calls*b.PrincipalPercent/100), Bytes: max(1, b.Bytes/100*int64(b.PrincipalPercent))}
}

// amount is a number of calls and their bytes.
type amount struct {
	calls int
	bytes int64
}

// usage is what is kept, and how much of it may make room.
type usage struct{ total, evictable amount }

func (a amount) minus(b amount) amount { return amount{a.calls - b.calls, a.bytes - b.bytes} }
func (a amount) plus(b amount) amount  { return amount{a.calls + b.calls, a.bytes + b.bytes} }

// full tells that what must be kept fills the bounds.
func (l usage) full(b Bounds) bool {
	must := l.total.minus(l.evictable)
	return must.calls >= b.Calls || must.bytes >= b.Bytes
}

// overflows tells that something is to make room.
func (l usage) overflows(b Bounds) bool {
	return l.evictable.calls > 0 && (l.total.calls > b.Calls || l.total.bytes > b.Bytes)
}

// quota counts what is kept, in all and for each principal that has anything.
type quota struct {
	bounds      Bounds
	total       usage
	byPrincipal map[string]usage
	// overShare are the principals that have more than their share, and could make
	// room.
	overShare map[string]bool
}

func newQuota(b Bounds) quota {
	return quota{bounds: b, byPrincipal: map[string]usage{}, overShare: map[string]bool{}}
}

// admit refuses another call of a principal, where there is none for it.
func (t *quota) admit(principal string) error {
	if t.total.full(t.bounds) || t.byPrincipal[principal].full(t.bounds.perPrincipal()) {
		return ErrFull
	}
	return nil
}

// update counts a call that was as before says and is as after says; nil is a
// call that is not there.
func (t *quota) update(principal string, before, after *footprint) {
	l := t.byPrincipal[principal]
	for _, of := range []*usage{&l, &t.total} {
		if before != nil {
			of.total = of.total.minus(before.amount())
			of.evictable = of.evictable.minus(before.evictableAmount())
		}
		if after != nil {
			of.total = of.total.plus(after.amount())
			of.evictable = of.evictable.plus(after.evictableAmount())
		}
	}
	if t.byPrincipal[principal] = l; l.total.calls == 0 {
		delete(t.byPrincipal, principal)
	}
	if t.overShare[principal] = true; !l.overflows(t.bounds.perPrincipal()) {
		delete(t.overShare, principal)
	}
}

// footprint is what one call counts for.
type footprint struct {
	bytes     int64
	evictable bool
}

func (c *Call) footprint() *footprint { return &footprint{c.size(), c.evictable()} }

func (w *footprint) amount() amount { return amount{1, w.bytes} }

func (w *footprint) evictableAmount() amount {
	if !w.evictable {
		return amount{}
	}
	return w.amount()
}
