// Package store keeps calls: what an idempotency key has started, what was
// dispatched, and what became of it. It is what makes three of the gateway's
// promises hold across a crash and between replicas: a call is dispatched at
// most once and one key never starts a second one, each executed call has
// exactly one outcome, and a result enters a thread at most once.
//
// # The life of a call
//
//	Open ──► opened ──Dispatch──► dispatched ──Defer─► waiting
//	           │ Settle               │ Finish            │ Finish
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
// An opened call has had no effect, so losing it in a crash is safe: its key may
// start another call. File therefore keeps opened calls in memory, and Redis those
// without a key. Dispatch, Update and Finish are on disk when they
// return nil. Settle and Sweep may be lost in a crash, which
// costs work and breaks no promise.
//
// A transition that could not be made durable in time is refused with
// ErrUnavailable. It may still turn out to have happened. Such a Dispatch is undone
// or, after a crash, looks like a call whose outcome is unknown; its tool was never
// called. Repeat Finish with the same attempt until it returns another result.
//
// # After a crash
//
// Recover returns abandoned calls, which have no outcome and whose process has ended,
// each to exactly one process. A dispatched call has perhaps had its effect: it ends as
// unknown or, where its effect is read or idempotent, may be dispatched once more
// with Redispatch, which refuses every other. A waiting call stays waiting: any
// process may finish it. Opened calls are dropped. Which calls have ended without a recorded
// outcome the audit log knows; their ends are here. Where several gateways share the calls, and one ends
// a call that another has decided, its log does not know that: the call is owed, until Recorded, and Recover
// returns it to the next process of the same node. It returns it to no other, which cannot know what that log has.
// Recover also returns expired calls.
//
// # Bounds
//
// A store bounds the calls and bytes that it keeps, in all and for each principal,
// so that no principal can fill it for the others. Only calls that have ended and
// have no key are evicted, the oldest first; a store may keep fewer of those whose result
// was handed over. A store that is full of other calls
// refuses new ones with ErrFull; it never evicts a pending call. The bytes of calls
// in flight come on top: no call in flight fails for lack of room.
package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/callgate/callgate/history"
)

// Retention is how long a call is kept after it has ended.
const Retention = 24 * time.Hour

// Scope says whose calls a key identifies.
type Scope struct{ Principal, Workspace, Project string }

// State is how the state of a call is named on the wire.
type State string

// The states, in the words of the wire.
const (
	Pending State = "pending" // it is running, or its tool answers later
	Done    State = "done"
	Unknown State = "unknown" // it has ended, and its outcome is unknown
)

// Step is how far a call has got.
type Step string

// The steps, in their order.
const (
	Opened     Step = "opened"     // it is being judged
	Dispatched Step = "dispatched" // its tool may have acted
	Waiting    Step = "waiting"    // its tool answers later
	Ended      Step = "ended"
)

// Rank orders the steps of a call: a later step has a higher rank.
func (s Step) Rank() int {
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

// Whose says of which principal Get may return a call. The zero value is the principal without a name.
type Whose struct {
	principal        string
	anyone, outlived bool
}

// Of stands for the calls of one principal.
func Of(principal string) Whose { return Whose{principal: principal} }

// OfAnyone stands for all calls. It is for the gateway's own work, never for a reply to a
// principal.
func OfAnyone() Whose { return Whose{anyone: true} }

// OfRecovery stands for all calls, and for those that are outlived until they are swept: what has become of
// a call is known for as long as it is there.
func OfRecovery() Whose { return Whose{anyone: true, outlived: true} }

// Principal returns the principal; ok is false for OfAnyone.
func (w Whose) Principal() (name string, ok bool) { return w.principal, !w.anyone }

// Only passes on what was read, unless that is a call of somebody else: for w there is no
// such call.
func (w Whose) Only(c Call, err error) (Call, error) {
	switch {
	case err != nil:
		return Call{}, err
	case !w.anyone && c.Scope.Principal != w.principal:
		return Call{}, ErrNotFound
	}
	return c, nil
}

// Reason is why Recover returns a call.
type Reason int

// The reasons.
const (
	// Abandoned calls have no outcome, and their process has ended. Recover returns each
	// of them once, to one process, which owns it from then on.
	Abandoned Reason = iota + 1
	// Expired calls wait, and their time is over. They go on waiting until they are
	// finished. Of several processes that finish one, one succeeds.
	Expired
	// Owed calls are those that an earlier process of this node has ended. Recover returns each once.
	Owed
)

// Call is one call.
type Call struct {
	ID    string
	Scope Scope
	// Key is the idempotency key; empty when there is none.
	Key string
	// Digest is that of the request, so that a key which is sent with another
	// request is recognised.
	Digest string
	State  State
	// Answer is the result, once the call is no longer pending.
	Answer Answer

	// The store sets the rest.

	Step Step
	// Task is the work that was dispatched.
	Task Task
	// Owner is the process that dispatched the call, or has recovered it. Of a call that is owed, it is
	// the one that has ended it.
	Owner string
	// DecidedBy is the node that has dispatched a call which another has taken over; and of a call
	// that another has ended, until the log of that one has the outcome. Else it is empty.
	DecidedBy string
	// Attempts counts how often it was dispatched.
	Attempts int
	Opened   time.Time
	// Until is when a waiting call expires.
	Until time.Time
	Ended time.Time
	// Delivered reports whether the result has been handed to its thread, and DeliveredByEnding
	// whether the attempt that ended the call is to have done that.
	Delivered, DeliveredByEnding bool
	// Metadata belongs to the gateway; nil is none. Only a call that waits or has ended
	// has any.
	Metadata []byte

	// FinishedBy is the attempt that has ended the call.
	FinishedBy string
	// Counted is what its result has added to its thread.
	Counted Counted
}

// Counted is what the result of a call has added to its thread, as history.Adds.Texts writes it, and the turn that has done
// it; 0: it has added nothing.
type Counted struct {
	Turn uint64
	Adds []string
}

// Task is all that a process needs which did not judge the call: to dispatch it
// again, and to record its outcome.
type Task struct {
	Tool, Version, Agent string
	// Effect is read, idempotent or once.
	Effect string
	// Arguments are the bytes that were validated. They are removed when the call
	// has ended.
	Arguments []byte
	// Caller, RequestID, Trace, Thread, Input and Config are for the audit record;
	// the last two are digests.
	Caller, RequestID, Trace, Thread, Input, Config string
	// Group is the name by which the tool knows the thread of the call, where it is another
	// than Thread.
	Group string
	// Ledger names what is kept of the thread of the call, where the policy asks it.
	Ledger string
	// Using are the ids of the approvals and grants that the call passed by. Dispatch
	// refuses the call unless each of them is still there, and not over; approvals must
	// not be used, and Dispatch marks them as used, in its own transition. Its errors are
	// approval.ErrUsed and approval.ErrEnded.
	Using []string
	// Spends are the ids of approvals that the call did not pass by, and that its run answers: those
	// whose votes made the grants in Using. Dispatch marks them as used, too, where they are left;
	// where they are not, it does without. They are not kept with the call.
	Spends []string
}

// Answer is the answer to the caller of an ended call.
type Answer struct {
	Result []byte // the tool_result, one line of JSON
	Status int    // HTTP
}

// Ending is how a call ends.
type Ending struct {
	State  State // Done or Unknown
	Answer Answer
	// Attempt identifies this attempt to finish, and no other. Finish with the
	// attempt that finished the call is not refused, so that a Finish whose reply
	// was lost can be repeated.
	Attempt string
	// Deliver says that the finisher also hands the result to its thread. An attempt that is
	// repeated without it was not told that it had ended the call, and has handed nothing over:
	// the result is there to be delivered again.
	Deliver bool
	// Awaited says that somebody comes back for the call although its result is handed over: a store
	// that keeps fewer of such calls keeps it as one whose result is not.
	Awaited bool
	// Metadata replaces that of the call.
	Metadata []byte
	// Adds are what the result adds to the thread of the call, and Counted says that it has done so. Without Counted, the
	// transition that ends the call does: the store has to keep threads as well.
	Adds    history.Adds
	Counted Counted
}

// The errors of a store. All others are for the operator and wrap ErrUnavailable.
var (
	// ErrFull says that no further call can be kept.
	ErrFull = errors.New("store: full of calls that must be kept")
	// ErrNotFound says that there is no such call.
	ErrNotFound = errors.New("store: no such call")
	// ErrDispatched says that the call was already dispatched.
	ErrDispatched = errors.New("store: the call was dispatched already")
	// ErrEnded says that the call has already ended.
	ErrEnded = errors.New("store: the call has ended already")
	// ErrDelivered says that the result was handed to its thread before.
	ErrDelivered = errors.New("store: the result was delivered already")
	// ErrConflict says that the call has other metadata than those to be replaced.
	ErrConflict = errors.New("store: the call has other metadata")
	// ErrNotOwner says that another process has the call, or its key, now.
	ErrNotOwner = errors.New("store: the call belongs to another process")
	// ErrUnavailable says that the store cannot be relied on at the moment.
	ErrUnavailable = errors.New("store: unavailable")
)

// Unavailable wraps a cause, for the operator, in ErrUnavailable.
func Unavailable(cause error) error { return fmt.Errorf("%w: %w", ErrUnavailable, cause) }
