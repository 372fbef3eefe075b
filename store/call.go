// Package store keeps calls for as long as somebody may ask for them: what an
// idempotency key has started, and what became of it.
//
// One key never starts a second call. A key is kept for a day from the moment
// that its call was opened; while it is kept it is never given up for another,
// so a store that is full refuses new ones.
package store

import (
	"errors"
	"time"
)

// Keep is how long an idempotency key is kept.
const Keep = 24 * time.Hour

// Scope is whose calls those of a key are.
type Scope struct{ Principal, Workspace, Project string }

// State is how far a call has come.
type State string

// The states, as they stand on the wire.
const (
	Pending State = "pending" // it runs, or its tool answers later
	Done    State = "done"
	Unknown State = "unknown" // it has ended, and its outcome is not known
)

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
}

// Answer is what a caller gets for a call that has ended.
type Answer struct {
	Result []byte // the tool_result, one line of JSON
	Status int    // HTTP
}

// ErrFull says that no further call can be kept.
var ErrFull = errors.New("store: full of calls that must be kept")

// ErrAbsent says that there is no such call.
var ErrAbsent = errors.New("store: no such call")
