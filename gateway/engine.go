package gateway

import (
	"context"
	"time"

	"github.com/callgate/callgate/registry"
)

// Engine runs tools. Run is called once for a call that passed every check and
// whose decision is durable. Its error is a *refusal.Error of the stage execute;
// anything else is an internal fault. It must be safe for concurrent use.
type Engine interface {
	Run(context.Context, Task) (Output, error)
}

// Task is one call to run.
type Task struct {
	CallID                string
	Tool, Version, Effect string
	Run                   registry.Run
	Arguments             []byte   // the bytes that were judged
	Typed                 bool     // the results are judged by a schema
	Roots                 []string // the folders of the project
	// Thread, Ancestors and User are those of the request.
	Thread    string
	Ancestors []string
	User      string
}

// Output is what a tool answered.
type Output struct {
	Body     []byte
	JSON     bool // the body says that it is JSON; else it is text
	Attempts int
	// Pending says that the tool has taken the call and will answer later, by
	// Complete.
	Pending bool
	// Until is by when it will; zero is the end of the tool's timeout.
	Until time.Time
	// Challenges come with an error that a person can lift.
	Challenges []Challenge
}
