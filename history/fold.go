package history

import (
	"slices"
	"time"
)

// Fold applies what a record of the audit log says of a turn: what was added, or undone. The same state is returned where
// it has that turn. Records may come in any order, and more than once. Settle ends a series of them.
func (s *State) Fold(turn uint64, a Adds, undo, caller bool) *State {
	known, at := s.known(turn)
	if known || turn == 0 {
		return s
	}
	var next *State
	if undo {
		if next = s.Undo(a, caller); next == s { // the turn is over all the same
			next = s.with(&Adds{At: a.At}, caller, 1)
		}
	} else {
		next = s.with(&a, caller, 1)
	}
	next.Turn = 0
	if s != nil {
		next.Turn = s.Turn
	}
	begins := !undo && turn == uint64(a.At.UnixMicro())
	switch {
	case turn > next.Turn:
		if turn > next.Turn+1 {
			next.gaps = append(slices.Clip(next.gaps), span{next.Turn + 1, turn - 1})
		}
		next.Turn = turn
	default:
		gap := next.gaps[at]
		next.gaps = slices.Delete(slices.Clone(next.gaps), at, at+1)
		if gap.first < turn {
			next.gaps = slices.Insert(next.gaps, at, span{gap.first, turn - 1})
			at++
		}
		if turn < gap.last {
			next.gaps = slices.Insert(next.gaps, at, span{turn + 1, gap.last})
		}
		if !undo && !next.Stub && a.At.Before(next.Began) {
			next.Began = a.At.Truncate(time.Microsecond)
		}
	}
	if begins { // what was before is of an earlier life of the state
		next.gaps = slices.DeleteFunc(slices.Clone(next.gaps), func(g span) bool { return g.last < turn })
	}
	if len(next.gaps) > maxGaps {
		next.gaps = slices.Delete(next.gaps, 0, 1)
		next.Partial, next.Began = true, next.Last
	}
	return next
}

// FoldClosing is Fold of a turn that has closed the state.
func (s *State) FoldClosing(turn uint64, at time.Time) *State {
	next := s.Fold(turn, Adds{At: at}, false, false)
	if next != s {
		next.Closed = true
	}
	return next
}

// known reports whether the state has a turn; else, where it is in a gap, which that is.
func (s *State) known(turn uint64) (known bool, gap int) {
	if s == nil || turn > s.Turn {
		return false, 0
	}
	gap, found := slices.BinarySearchFunc(s.gaps, turn, func(g span, turn uint64) int {
		switch {
		case g.last < turn:
			return -1
		case g.first > turn:
			return 1
		}
		return 0
	})
	return !found, gap
}

// Settle ends a series of Fold. Turns that no record had were not run, and are undone, where the records are complete; else
// what was before is not known.
func (s *State) Settle(complete bool, now time.Time) *State {
	if s == nil || len(s.gaps) == 0 {
		return s
	}
	next := *s
	next.gaps = nil
	if !complete {
		next.Partial, next.Began = true, now.Truncate(time.Microsecond)
	}
	return &next
}
