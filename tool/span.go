package tool

import (
	"time"

	"github.com/callgate/callgate/refusal"
)

// Span is one traced call, from the beginning of its judgement to its end.
type Span struct {
	TraceID, ParentID string // of the request
	Start, End        time.Time
	CallID, Thread    string
	Mode, Verdict     string
	// Tool and Version are of a registered tool; Agent, Workspace and Project of the
	// configuration. Where the request or the model named another, they are empty.
	Tool, Version             string
	Agent, Workspace, Project string
	Digest                    string // of the configuration
	Outcome                   string // of a call that was executed, or handed over
	Attempts                  int
	Refusal                   *refusal.Error
	// Steps are those that may wait for something outside the process, as they
	// ended.
	Steps []Step
	// Arguments and Result are content, without what is marked x-secret; nil where
	// none is wanted.
	Arguments, Result []byte
}

// Step is a part of a traced call: a stage, or the store.
type Step struct {
	Name       string
	Start, End time.Time
	Refusal    *refusal.Error
}
