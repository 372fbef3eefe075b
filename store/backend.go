package store

import "context"

// Backend keeps records, their rows in indexes, and what the calls of each principal take. It knows
// nothing of calls or approvals: all rules are in the Engine.
//
// A commit is one step: nobody sees a part of it, and a crash leaves all of it or nothing. View is
// never older than the last commit that was confirmed to anybody, but for a transition. An error of Commit leaves open
// whether it was done; a back end that did it all the same passes it to Engine.TakeBack.
type Backend interface {
	// View appends the records of keys; where there is none, its Rev is 0. For a transition it may
	// return what this process has written last: whether that is still so, the commit asks, and where there
	// is none, the transition reads once more.
	View(ctx context.Context, keys []Key, transition bool, found []Record) ([]Record, error)
	// Commit makes all changes, if each record is still at its revision and there is room.
	Commit(ctx context.Context, c *Commit) (Outcome, error)
	// Scan appends at most limit rows of an index that are behind a row and not behind another, in
	// their order.
	Scan(ctx context.Context, index Index, behind, to Row, limit int, rows []Row) ([]Row, error)
}

// Commit is a list of changes.
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
	// Own and All are what is kept after the commit, for the principal of the first count and in all.
	Own, All Usage
}

// Replacement puts a value in the place of what was read; where it is the same, the record is only to be
// at its revision. A nil value is none.
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

// Room says how many rows an index may have behind a row.
type Room struct {
	Index
	Behind Row
	Max    int
}

// Outcome is what became of a commit.
type Outcome int

// The outcomes.
const (
	Conflicted Outcome = iota // a record is at another revision
	Full                      // there is no room
	Committed
	Riding // nobody knows yet
)
