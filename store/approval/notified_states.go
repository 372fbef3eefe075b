package approval

import (
	"slices"
	"time"
)

// Notified is a set of states: those of which a receiver of notices has acknowledged one.
type Notified uint8

// noticeStates are all states, each at the place of its bit in Notified. Stores keep the bits: the
// order never changes.
func noticeStates() []State { return []State{Waiting, Approved, Used, Denied, Expired, Withdrawn} }

// Has reports whether the set has a state.
func (t Notified) Has(s State) bool {
	i := slices.Index(noticeStates(), s)
	return i >= 0 && t&(1<<i) != 0
}

// With returns the set with a state. It ignores what is no state.
func (t Notified) With(s State) Notified {
	if i := slices.Index(noticeStates(), s); i >= 0 {
		t |= 1 << i
	}
	return t
}

// States returns the states of the set.
func (t Notified) States() []State {
	return slices.DeleteFunc(noticeStates(), func(s State) bool { return !t.Has(s) })
}

// Unnotified returns the states that the approval has come to and that are still to be told of, in
// their order: that it waits, that enough people say yes by the rules of now, and how it ended.
//
// As long as the approval could still be used, all of them are told of. After that only its
// end is, and only to a receiver that was told of it before. That it expired is told of once it
// is recorded.
func (a *Approval) Unnotified(notified Notified, rules Rules, people People, now time.Time) []State {
	var states []State
	if now.Before(a.Closes()) {
		states = append(states, Waiting)
		if !slices.ContainsFunc(a.Rules, func(rule string) bool { return !a.Enough(rule, rules, people, now) }) {
			states = append(states, Approved)
		}
	}
	if (a.Ran != "" || a.Ended.End != "") && (notified != 0 || len(states) > 0) {
		states = append(states, a.State(rules, people, now))
	}
	return slices.DeleteFunc(states, notified.Has)
}

// Since returns when the approval has come to a state, by its record.
func (a *Approval) Since(s State) time.Time {
	switch s {
	case Waiting:
		return a.Opened
	case Approved:
		last := a.Opened
		for _, v := range a.Votes {
			if v.Yes && v.At.After(last) {
				last = v.At
			}
		}
		return last
	case Used:
		return a.RanAt
	}
	return a.Ended.At
}
