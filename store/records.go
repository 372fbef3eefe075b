package store

import (
	"strconv"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// Kind is what a record is of.
type Kind uint8

// The kinds of records.
const (
	callRecord     Kind = iota // by its id: *Call
	keyRecord                  // by keyName: *Started
	askRecord                  // by its id: *Asked
	questionRecord             // by the digest of a call: *Question
	grantRecord                // by its id: *approval.Grant
	kinds
)

// Key names a record.
type Key struct {
	Kind Kind
	ID   string
}

// Value is what a record says: a pointer that its Kind names. What it points to is never changed: a
// transition puts another in its place.
type Value any

// Started names the call that a key has started.
type Started struct{ Call string }

// Question names the approvals that may answer for a call: those that are live, and denials that
// stand, as of the last time that it was asked.
type Question struct{ Approvals []string }

// Asked is an approval, and the notice of it.
type Asked struct {
	approval.Approval
	Notified approval.Notified
	Notice   dueNotice
}

// Rev names the commit that wrote a record; 0: there is none.
type Rev uint64

// Record is a value as a back end has it.
type Record struct {
	Rev   Rev
	Value Value
	slot  *slot // where the memory has it
}

// Index names rows in the order of their time, and of their ids where that is equal. Of is a principal
// or the key of a grant, where its name says so.
type Index struct {
	Name IndexName
	Of   string
}

// IndexName is what the rows of an index are.
type IndexName uint8

// The indexes. Rows without a time are in the order of their ids.
const (
	openIndex         IndexName = iota // calls without an outcome
	dueIndex                           // waiting calls, by their end
	endedIndex                         // calls that have ended
	spareIndex                         // those of them that may make room
	principalsSpare                    // the same, of a principal
	askedIndex                         // all approvals
	closingIndex                       // approvals without an end, by when they expire
	principalsClosing                  // the same, of a principal
	overIndex                          // the other approvals, by when they ended
	newsIndex                          // approvals of which somebody is to be told, by when
	grantIndex                         // all grants
	grantsWithKey                      // those with a key
	lapsingIndex                       // grants, by when they are over
	indexNames
)

// Row is a row of an index.
type Row struct {
	At int64 // in microseconds
	ID string
}

func rowAt(t time.Time, id string) Row {
	if t.IsZero() {
		return Row{0, id}
	}
	return Row{t.UnixMicro(), id}
}

// Entry is a row and its index.
type Entry struct {
	Index
	Row
}

// entries appends the rows that a value has in the indexes. A commit writes the difference between
// those of a value and of the one in its place, so that a record and its rows cannot disagree.
func entries(v Value, to []Entry) []Entry {
	switch v := v.(type) {
	case *Call:
		if v.Step != Ended {
			to = append(to, Entry{Index{openIndex, ""}, Row{0, v.ID}})
			if v.Step == Waiting {
				to = append(to, Entry{Index{dueIndex, ""}, rowAt(v.Until, v.ID)})
			}
			break
		}
		at := rowAt(v.Ended, v.ID)
		to = append(to, Entry{Index{endedIndex, ""}, at})
		if v.Evictable() {
			to = append(to, Entry{Index{spareIndex, ""}, at}, Entry{Index{principalsSpare, v.Scope.Principal}, at})
		}
	case *Asked:
		to = append(to, Entry{Index{askedIndex, ""}, Row{0, v.ID}})
		if v.open() {
			at := rowAt(v.Closes(), v.ID)
			to = append(to, Entry{Index{closingIndex, ""}, at}, Entry{Index{principalsClosing, v.Principal}, at})
		} else {
			to = append(to, Entry{Index{overIndex, ""}, rowAt(v.Over(), v.ID)})
		}
		if !v.Notice.at.IsZero() {
			to = append(to, Entry{Index{newsIndex, ""}, rowAt(v.Notice.at, v.ID)})
		}
	case *approval.Grant:
		to = append(to, Entry{Index{grantIndex, ""}, Row{0, v.ID}}, Entry{Index{grantsWithKey, v.Key}, Row{0, v.ID}}, Entry{Index{lapsingIndex, ""}, rowAt(v.Until, v.ID)})
	}
	return to
}

// keyName names an idempotency key within its scope; different keys have different names.
func keyName(s Scope, key string) string {
	return strconv.Itoa(len(s.Principal)) + " " + strconv.Itoa(len(s.Workspace)) + " " + strconv.Itoa(len(s.Project)) + " " + s.Principal + s.Workspace + s.Project + key
}

// open reports whether nobody has ended an approval and no call has used it.
func (a *Asked) open() bool { return a.Ran == "" && a.Ended.End == "" }
