package store

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// Kind is what a record is of.
type Kind uint8

// The kinds of records.
const (
	CallRecord     Kind = iota // by its id: *Call
	KeyRecord                  // by keyName, a KeyHash: *Started
	AskRecord                  // by its id: *Asked
	QuestionRecord             // by the digest of a call: *Question
	GrantRecord                // by its id: *approval.Grant
	LeaseRecord                // by the name of a node: *Lease
	StopsRecord                // one: *Stops
	ThreadRecord               // by its id: *Thread
	KeepingRecord              // one, without a name: *history.Keeping
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
	// Read is for the back end: until when it had written, when it read the record.
	Read uint64
	slot *slot // where the memory has it
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
	// calls without an outcome, of a node where there are several, and, as of owing(node), those that it owes
	OpenIndex         IndexName = iota
	DueIndex                    // waiting calls, by their end
	EndedIndex                  // calls that have ended
	SpareIndex                  // those of them that may make room
	PrincipalsSpare             // the same, of a principal
	AskedIndex                  // all approvals
	ClosingIndex                // approvals without an end, by when they expire
	PrincipalsClosing           // the same, of a principal
	OverIndex                   // the other approvals, by when they ended
	NewsIndex                   // approvals of which somebody is to be told, by when
	GrantIndex                  // all grants
	GrantsWithKey               // those with a key
	LapsingIndex                // grants, by when they are over
	NodeIndex                   // nodes that have had a lease
	ThreadIndex                 // threads and callers, by the hour of their last call
	PrincipalsThreads           // the same, of a principal
	StubIndex                   // those of which labels alone are left, likewise
	PrincipalsStubs             // the same, of a principal
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

// Entries appends the rows that a value has in the indexes. A commit writes the difference between
// those of a value and of the one in its place, so that a record and its rows cannot disagree.
func Entries(v Value, to []Entry) []Entry {
	switch v := v.(type) {
	case *Call:
		if v.Step != Ended {
			to = append(to, Entry{Index{OpenIndex, nodeOf(v.Owner)}, Row{0, v.ID}})
			if v.Step == Waiting {
				to = append(to, Entry{Index{DueIndex, ""}, rowAt(v.Until, v.ID)})
			}
			break
		}
		at := rowAt(v.Ended, v.ID)
		to = append(to, Entry{Index{EndedIndex, ""}, at})
		if v.Owed() {
			to = append(to, Entry{Index{OpenIndex, owing(nodeOf(v.Owner))}, Row{0, v.ID}})
		}
		if v.Evictable() {
			to = append(to, Entry{Index{SpareIndex, ""}, at}, Entry{Index{PrincipalsSpare, v.Scope.Principal}, at})
		}
	case *Asked:
		to = append(to, Entry{Index{AskedIndex, ""}, Row{0, v.ID}})
		if v.open() {
			at := rowAt(v.Closes(), v.ID)
			to = append(to, Entry{Index{ClosingIndex, ""}, at}, Entry{Index{PrincipalsClosing, v.Principal}, at})
		} else {
			to = append(to, Entry{Index{OverIndex, ""}, rowAt(v.Over(), v.ID)})
		}
		if !v.Notice.at.IsZero() {
			to = append(to, Entry{Index{NewsIndex, ""}, rowAt(v.Notice.at, v.ID)})
		}
	case *Thread:
		all, own := ThreadIndex, PrincipalsThreads
		if v.Stub {
			all, own = StubIndex, PrincipalsStubs
		}
		at := rowAt(v.Last.Truncate(time.Hour), v.ID)
		to = append(to, Entry{Index{all, ""}, at}, Entry{Index{own, v.Principal}, at})
	case *Lease:
		to = append(to, Entry{Index{NodeIndex, ""}, Row{0, v.Node}})
	case *approval.Grant:
		to = append(to, Entry{Index{GrantIndex, ""}, Row{0, v.ID}}, Entry{Index{LapsingIndex, ""}, rowAt(v.Until, v.ID)})
		if v.Key != "" {
			to = append(to, Entry{Index{GrantsWithKey, v.Key}, Row{0, v.ID}})
		}
	}
	return to
}

// KeyHash names an idempotency key within its scope.
func KeyHash(s Scope, key string) []byte {
	sum := digestOf(s.Principal, s.Workspace, s.Project, key)
	return sum[:]
}

// PrincipalHash names a principal.
func PrincipalHash(principal string) []byte {
	sum := digestOf(principal)
	return sum[:16]
}

// digestOf is a digest of texts; different lists of texts have different digests.
func digestOf(parts ...string) [sha256.Size]byte {
	b := make([]byte, 0, 256) // most fit into it: it is on the stack then
	for _, s := range parts {
		b = append(append(strconv.AppendInt(b, int64(len(s)), 10), ':'), s...)
	}
	return sha256.Sum256(b)
}

// KeyHash names the key of a call within its scope; nil: it has none.
func (c *Call) KeyHash() []byte {
	if c.Key == "" {
		return nil
	}
	return []byte(keyName(c.Scope, c.Key))
}

// keyName is the name of the record of a key.
func keyName(s Scope, key string) string {
	if hash, known := strings.CutPrefix(key, hashedKey); known {
		return hash
	}
	sum := digestOf(s.Principal, s.Workspace, s.Project, key)
	return string(sum[:])
}

// hashedKey begins the key of a call of which only the KeyHash is known. No client can send it.
const hashedKey = "\x00sha256:"

// open reports whether nobody has ended an approval and no call has used it.
func (a *Asked) open() bool { return a.Ran == "" && a.Ended.End == "" }
