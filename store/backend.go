package store

import "context"

// Backend keeps records, their rows in indexes, and what the calls of each principal take. It knows
// nothing of calls or approvals: all rules are in the Engine. It is safe for concurrent use.
//
// Commits have one order. A commit is one step in it: nobody sees a part of it, and a crash leaves all of it or
// nothing. View and Scan see a state between two commits that is not older than the last commit that was
// confirmed to anybody, but for a View of a transition; two of them may see different states. Rows and counts
// come with the commit of their record, so a back end derives none.
//
// A back end has no clock of its own that a rule asks: the Engine gets one beside it. Where several
// processes keep calls on one back end, that is the back end's, so that all see the same time.
//
// Every method may wait for a disk or a network; the Engine keeps no lock meanwhile. A back end ends a wait
// with its context. Errors of the back end are those of Unavailable. An error of View or Scan says nothing of what
// there is: it is never a record that is absent. An error of Commit leaves open whether it was made, or is still to
// be made: the caller takes it for refused. A back end that has opened or dispatched a call by it all the same passes
// it to Engine.TakeBack, once it cannot be made any more.
type Backend interface {
	// View appends a record for each key, in their order; where there is none, its Rev is 0 and its Value nil. For
	// a transition it may return what this process has written last: whether that is still so, the commit asks, and
	// where there is none, the transition reads once more. The Engine changes no Value, and the back end none that it
	// has returned.
	View(ctx context.Context, keys []Key, transition bool, found []Record) ([]Record, error)
	// Commit makes all changes, if the record of each is at the revision that was read, in the same step; 0: if there is
	// none. Only then does it ask for room. It gives each record that it puts a revision that the record
	// never had, also where another process puts it, or where it was removed in between. A commit that is sent
	// to a server again because its reply was lost is made once, and its outcome is that of the first time. After
	// Conflicted, a View that is not of a transition has what was in the way. After Conflicted and Full without an error
	// nothing was changed; after Committed all is durable, but for what is Volatile. The Engine uses c again once
	// Commit has returned.
	Commit(ctx context.Context, c *Commit) (Outcome, error)
	// Scan appends at most limit rows of an index that are behind one row and before another, which has no ID. They are in
	// the order of their At, and where that is equal, of the bytes of their ID: a row without an ID is before all others
	// of its time. At may be math.MinInt64 and math.MaxInt64, for the beginning and the end. Fewer than limit rows mean
	// that there were no more. A row may be out of date as soon as it is returned: its record is read before it is changed.
	Scan(ctx context.Context, index Index, behind, to Row, limit int, rows []Row) ([]Row, error)
}

// Commit is a list of changes: of some hundred records at most. Each record and each row is named once.
type Commit struct {
	Changes     []Replacement
	Add, Remove []Entry
	Counts      []Count // of each principal whose calls it changes
	// Bounds, where they are not nil, refuse a commit for which the calls that must be kept leave
	// no room, in all and for the principal of the first count; Rooms, where an index has as many rows behind a row as it may.
	Bounds *Bounds
	Rooms  []Room
	// Volatile says that what is put need not outlive the process, and that it was not there, or was
	// volatile itself. A later commit that is not volatile puts all that belongs to it once more. A
	// back end that keeps such records in the process alone has no rows of them.
	Volatile bool
	// Done, where it is not nil, says that nobody waits for the outcome: the commit may be Riding with
	// the next one, and Done follows both.
	Done func()
	// Rev is that of the records that it has put, where the back end says so.
	Rev Rev
	// Own and All are what is kept after the commit, for the principal of the first count and in all.
	Own, All Usage
}

// Replacement puts a value in the place of what was read; where it is the same (a pointer: nobody looks into it), the
// record is only to be at its revision. A nil value is none: the record is removed.
type Replacement struct {
	Key
	Was Record
	Now Value
}

// Count is what a commit adds to what the calls of a principal take.
type Count struct {
	Principal string
	Of        Usage
}

// Room says how many rows an index may have behind a row, which has no ID: with Max or more, a commit is Full.
type Room struct {
	Index
	Behind Row
	Max    int
}

// Outcome is what became of a commit.
type Outcome int

// The outcomes.
const (
	Conflicted Outcome = iota // a record is at another revision; with an error: nobody knows
	Full                      // there is no room
	Committed
	Riding // nobody knows yet
)
