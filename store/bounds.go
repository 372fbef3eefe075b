package store

// Bounds are how much a store keeps. What is 0 is the default of the store.
type Bounds struct {
	Calls int
	Bytes int64 // of arguments and results
	// PrincipalPercent is the most that one principal has of either, in percent.
	PrincipalPercent int
}

const defaultPart = 25

// or fills in what is not given.
func (b Bounds) or(calls int, bytes int64) Bounds {
	if b.Calls <= 0 {
		b.Calls = calls
	}
	if b.Bytes <= 0 {
		b.Bytes = bytes
	}
	if b.PrincipalPercent <= 0 || b.PrincipalPercent > 100 {
		b.PrincipalPercent = defaultPart
	}
	return b
}

// share is what one principal may have: at least one call.
func (b Bounds) share() Bounds {
	return Bounds{Calls: max(1, b.Calls*b.PrincipalPercent/100), Bytes: max(1, b.Bytes/100*int64(b.PrincipalPercent))}
}

// amount is a number of calls and their bytes.
type amount struct {
	calls int
	bytes int64
}

// load is what is kept, and how much of it may make room.
type load struct{ all, spare amount }

func (a amount) less(b amount) amount { return amount{a.calls - b.calls, a.bytes - b.bytes} }
func (a amount) plus(b amount) amount { return amount{a.calls + b.calls, a.bytes + b.bytes} }

// full tells that what must be kept fills the bounds.
func (l load) full(b Bounds) bool {
	must := l.all.less(l.spare)
	return must.calls >= b.Calls || must.bytes >= b.Bytes
}

// excess tells that something is to make room.
func (l load) excess(b Bounds) bool {
	return l.spare.calls > 0 && (l.all.calls > b.Calls || l.all.bytes > b.Bytes)
}

// tally counts what is kept, in all and for each principal that has anything.
type tally struct {
	bounds Bounds
	all    load
	of     map[string]load
	// crowded are the principals that have more than their share, and could make
	// room.
	crowded map[string]bool
}

func newTally(b Bounds) tally {
	return tally{bounds: b, of: map[string]load{}, crowded: map[string]bool{}}
}

// room refuses another call of a principal, where there is none for it.
func (t *tally) room(principal string) error {
	if t.all.full(t.bounds) || t.of[principal].full(t.bounds.share()) {
		return ErrFull
	}
	return nil
}

// change counts a call that was as before says and is as after says; nil is a
// call that is not there.
func (t *tally) change(principal string, before, after *weight) {
	l := t.of[principal]
	for _, of := range []*load{&l, &t.all} {
		if before != nil {
			of.all = of.all.less(before.all())
			of.spare = of.spare.less(before.free())
		}
		if after != nil {
			of.all = of.all.plus(after.all())
			of.spare = of.spare.plus(after.free())
		}
	}
	if t.of[principal] = l; l.all.calls == 0 {
		delete(t.of, principal)
	}
	if t.crowded[principal] = true; !l.excess(t.bounds.share()) {
		delete(t.crowded, principal)
	}
}

// weight is what one call counts for.
type weight struct {
	bytes int64
	spare bool
}

func (c *Call) weight() *weight { return &weight{c.size(), c.spare()} }

func (w *weight) all() amount { return amount{1, w.bytes} }

func (w *weight) free() amount {
	if !w.spare {
		return amount{}
	}
	return w.all()
}
