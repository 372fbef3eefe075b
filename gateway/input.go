package gateway

import (
	"encoding/json"

	"github.com/callgate/callgate/gateway/elicit"
)

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
	// CallerAddress is the address of who asks, for the limit that is taken before
	// anything is read; a principal has a limit of its own instead. Empty, as on
	// the command line, there is no such limit.
	CallerAddress string
	// ID is the caller's own name for the request, Thread the conversation, and
	// TraceID the trace that it is part of. They are written down, and told to
	// tools that keep a conversation of their own.
	ID, Thread, TraceID string
	// Ancestors are the threads that Thread came from, the oldest first, and User is
	// who it is held for. Nothing is decided by them.
	Ancestors []string
	User      string
	// ParentID is the caller's span in that trace (W3C Trace Context), and Sampled
	// says that the caller traces it; empty where the trace begins here.
	ParentID string
	Sampled  bool
	// Inputs are one completion, or the native calls of one answer, which are
	// judged all or none.
	Inputs []Input

	identified *identified // by Identify; nil has the judgement ask who asks
}

// Mode says who runs the calls of a decision.
type Mode string

// The two modes, as they stand in the journal: the calls are executed here, or
// handed to the application, which runs them itself.
const (
	ModeCall    Mode = "call"
	ModeEnforce Mode = "enforce"
)

// Input is one completion, or one native call.
type Input struct {
	Completion []byte
	// TextOnly says that the completion is the text of an answer whose calls come
	// natively: it is no call, however it starts, and JSON in it is judged as under
	// allow_foreign, whatever output.json_in_text says.
	TextOnly bool
	Native   *NativeCall
	// Truncated says that the completion was cut off: by its finish reason, or
	// because its stream broke.
	Truncated bool
	// Dialogue is with a caller that can be told and asked more while its call runs;
	// nil with one that only waits for the result.
	Dialogue *elicit.Dialogue
}

// NativeCall is a call that a provider has taken apart already.
type NativeCall struct {
	Name string // in the registry
	// Wire is the name as it stood on a wire of a smaller alphabet, such as
	// web_search for web.search; empty where the wire has the registry's names.
	// What is said to the model then has names of that alphabet, and a Wire that
	// does not stand for Name is no tool.
	Wire     string
	Alphabet Alphabet // of Wire
	// Version is the one that is called; empty is the highest. What holds of a tool
	// holds of all its versions, but for what the version itself says.
	Version   string
	Arguments []byte // JSON
}

// Alphabet is that of a wire whose names are not the registry's.
type Alphabet int

// The alphabets.
const (
	OpenAI Alphabet = iota
	OXP             // Toolkit.Tool
)

// Verdict is what was decided.
type Verdict string

// The three verdicts, as they stand on the wire.
const (
	VerdictText    Verdict = "text"
	VerdictCall    Verdict = "tool_call"
	VerdictRefused Verdict = "refused"
)

// PassedCall is a call that passed.
type PassedCall struct {
	Tool      string          `json:"tool"`
	Version   string          `json:"version"`
	Arguments json.RawMessage `json:"arguments"` // the model's bytes
	Agent     string          `json:"agent"`
	Workspace string          `json:"workspace"`
	Project   string          `json:"project"`
}
