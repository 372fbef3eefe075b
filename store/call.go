// Package store keeps calls: what an idempotency key has started, what was
// dispatched, and what became of it. It is what makes three of the gateway's
// promises hold across a crash and between replicas: a call is dispatched at
// most once and one key never starts a second one, each executed call has
// exactly one outcome, and a result enters a thread at most once.
//
// # The life of a call
//
//	Open ──► opened ──Dispatch──► dispatched ──Pend──► waiting
//	           │ Drop                 │ Finish            │ Finish
//	           ▼                      ▼                   ▼
//	        forgotten               ended ◄───────────────┘
//
// Opened, a call is judged and holds its key. Dispatched, its tool may act:
// Dispatch returns nil only once that is durable, and the tool is called after
// that. Waiting, its tool has promised to answer later, and by when. Ended, it
// has its answer, and is kept for a day, so that its key gives that answer and
// starts nothing. A transition is atomic, and each is refused where the call is
// not at its start: of several that finish a call one is told that it did, and
// only that one may write the outcome down.
//
// # What is durable, and when
//
// What an opened call loses in a crash is nothing: it has done nothing, so its
// key may start another. File therefore keeps opened calls in memory, and so
// does Redis those without a key. Dispatch, Again, Pend, Note, Finish and
// Deliver are on disk when they return nil. Settle, Drop and Sweep may be lost in a crash,
// which costs work and breaks no promise: what was not settled is looked up in
// the audit log, what was not swept is swept again.
//
// A transition that could not be made durable in time is refused with
// ErrUnavailable, and then it may be known, later, to have happened all the
// same. Of Dispatch this is undone, or, after a crash, looks like a call whose
// outcome is not known; its tool was never called. Finish is to be repeated with
// the same attempt until it is told.
//
// # After a crash
//
// Recover gives the calls without an outcome whose process has gone, each to
// exactly one process. A dispatched one has perhaps acted: it ends as unknown,
// or, where its effect is read or idempotent, is dispatched again after Again,
// which refuses every other. A waiting one goes on waiting: any process may
// finish it. Opened ones are dropped. Owed gives the calls that have ended and
// whose outcome may not stand in the audit log.
//
// # Bounds
//
// A store keeps so many calls and bytes, and so many of one principal, so that
// none can fill it for the others. Calls that have ended and have no key make
// room, the oldest first; nothing else does: a store that is full of what must
// be kept refuses new calls with ErrFull. A pending call is never given up. The
// bytes of calls in flight come on top: no call in flight fails for want of room.
package store

import (
	"errors"
	"time"
)

// Retention is how long a call is kept after it has ended.
const Retention = 24 * time.Hour

// Scope is whose calls those of a key are.
type Scope struct{ Principal, Workspace, Project string }

// State is what is said of a call on the wire.
type State string

// The states, as they stand on the wire.
const (
	Pending State = "pending" // it runs, or its tool answers later
	Done    State = "done"
	Unknown State = "unknown" // it has ended, and its outcome is not known
)

// Step is how far a call has come.
type Step string

// The steps, in their order.
const (
	Opened     Step = "opened"     // it is judged
	Dispatched Step = "dispatched" // its tool may act
	Waiting    Step = "waiting"    // its tool answers later
	Ended      Step = "ended"
)

func (s Step) rank() int {
	switch s {
	case Opened:
		return 1
	case Dispatched:
		return 2
	case Waiting:
		return 3
	case Ended:
		return 4
	}
	return 0
}

// Call is one call.
type Call struct {
	ID    string
	Scope Scope
	// Key is the idempotency key; empty when there is none.
	Key string
	// Digest is of the request, so that a key which comes with another one is
	// recognised.
	Digest string
	State  State
	// Answer is what became of it, once it is no longer pending.
	Answer Answer

	// The rest is the store's to set.

	Step Step
	// Task is what was dispatched.
	Task Task
	// Owner is the process that dispatched the call, or has recovered it.
	Owner string
	// Attempts are how often it was dispatched.
	Attempts int
	Opened   time.Time
	// Until is when a waiting call expires.
	Until time.Time
	Ended time.Time
	// Delivered tells that the result has entered its thread.
	Delivered bool
	// Metadata is what else is known of a call that waits or has ended; nil is nothing.
	Metadata []byte

	attempt string // that finished it
}

// FinishedBy is the attempt that has ended the call.
func (c *Call) FinishedBy() string { return c.attempt }

// Task is what a call needs to be dispatched again, and what its outcome is
// recorded with by a process that has not judged it.
type Task struct {
	Tool, Version, Agent string
	// Effect is read, idempotent or once.
	Effect string
	// Arguments are the bytes that were validated. They are not kept when the
	// call has ended.
	Arguments []byte
	// Caller, RequestID, Trace, Thread, Input and Config are for the record:
	// the last two are digests.
	Caller, RequestID, Trace, Thread, Input, Config string
}

// Answer is what a caller gets for a call that has ended.
type Answer struct {
	Result []byte // the tool_result, one line of JSON
	Status int    // HTTP
}

// Ending is how a call ends.
type Ending struct {
	State  State // Done or Unknown
	Answer Answer
	// Attempt names who finishes; nobody else has the same. Finish with the
	// attempt that finished the call is not refused, so that one whose answer was
	// lost can be repeated.
	Attempt string
	// Deliver tells that who finishes also hands the result to its thread.
	Deliver bool
	// Metadata stands in place of the one that the call had.
	Metadata []byte
}

// The errors of a store. Others are the operator's, and wrap ErrUnavailable.
var (
	// ErrFull says that no further call can be kept.
	ErrFull = errors.New("store: full of calls that must be kept")
	// ErrNotFound says that there is no such call.
	ErrNotFound = errors.New("store: no such call")
	// ErrDispatched says that a call was dispatched already.
	ErrDispatched = errors.New("store: the call was dispatched already")
	// ErrEnded says that a call has ended already.
	ErrEnded = errors.New("store: the call has ended already")
	// ErrConflict says that a call has another note than the one to be replaced.
	ErrConflict = errors.New("store: the call has another note")
	// ErrNotOwner says that a call, or its key, is another's now.
	ErrNotOwner = errors.New("store: the call belongs to another process")
	// ErrUnavailable says that the store cannot be relied on at the moment.
	ErrUnavailable = errors.New("store: unavailable")
)
