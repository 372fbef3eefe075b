package gateway

import "encoding/json"

// Subject says for whom, and where, a completion is judged.
type Subject struct {
	Agent, Workspace, Project string
}

// or fills what is absent from another subject.
func (s Subject) or(other Subject) Subject {
	if s.Agent == "" {
		s.Agent = other.Agent
	}
	if s.Workspace == "" {
		s.Workspace = other.Workspace
	}
	if s.Project == "" {
		s.Project = other.Project
	}
	return s
}

// Request is what is asked of the kernel.
type Request struct {
	// Subject is what the request says of itself. With a principal it can only
	// narrow what the principal may be.
	Subject
	// Credential is what the caller proves itself with, where the configuration
	// asks for one.
	Credential string
	// Caller is the address of who asks, for the limit that is taken before
	// anything is read; a principal has a limit of its own instead. Empty, as on
	// the command line, there is no such limit.
	Caller string
	// ID is the caller's own name for the request, Thread the conversation, and
	// TraceID the trace that it is part of. They are written down, and nothing
	// else.
	ID, Thread, TraceID string
	// Inputs are one completion, or the native calls of one answer, which are
	// judged all or none.
	Inputs []Input
}

// Input is one completion, or one native call.
type Input struct {
	Completion []byte
	Native     *Native
	// Truncated says that the completion was cut off: by its finish reason, or
	// because its stream broke.
	Truncated bool
}

// Native is a call that a provider has taken apart already.
type Native struct {
	Name      string
	Arguments []byte // JSON
}

// Verdict is what was decided.
type Verdict string

// The three verdicts, as they stand on the wire.
const (
	VerdictText    Verdict = "text"
	VerdictCall    Verdict = "tool_call"
	VerdictRefused Verdict = "refused"
)

// Call is a call that passed.
type Call struct {
	Tool      string          `json:"tool"`
	Version   string          `json:"version"`
	Arguments json.RawMessage `json:"arguments"` // the model's bytes
	Agent     string          `json:"agent"`
	Workspace string          `json:"workspace"`
	Project   string          `json:"project"`
}
