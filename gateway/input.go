package gateway

import (
	"encoding/json"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/registry/schema"
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

// Request is a request to the kernel.
type Request struct {
	// Subject holds the agent, workspace and project that the request names. With a
	// principal, it can only narrow the principal's own.
	Subject
	// Credential authenticates the caller, if the configuration requires one.
	Credential string
	// CallerAddress is the caller's address, for the limit that is charged before anything
	// is read; a principal has its own limit instead. If it is empty, as on the command
	// line, there is no such limit.
	CallerAddress string
	// ID is the caller's own name for the request, Thread the conversation, and TraceID the
	// trace that it is part of. They are recorded, and passed to tools that keep
	// conversations.
	ID, Thread, TraceID string
	// Session names the session of the request, which is its thread where Thread is absent.
	Session string
	// Together names the run of a model whose calls belong together where there is no thread. Tools that
	// keep conversations get it in the place of one; no rule and no record goes by it.
	Together string
	// AsksCaller says that the face asks the caller about calls under rules that callers answer,
	// although they take no forms.
	AsksCaller bool
	// Ancestors are the threads that Thread came from, the oldest first: conditions of the policy ask what
	// that one has done, with all that came from it. User is the person the conversation is for.
	Ancestors []string
	User      string
	// Folder, if not empty, is where relative paths of the calls start, instead of the first root of the project. It
	// is absolute, and allows nothing.
	Folder string
	// Hook, if not nil, is what the hook of a coding agent says of the call about which it asks: the agent runs it itself, and
	// nothing is run or passed on for it. It is recorded.
	Hook *audit.AgentHook
	// ParentID is the caller's span in that trace (W3C Trace Context), and Sampled
	// says that the caller traces it; empty where the trace begins here.
	ParentID string
	Sampled  bool
	// Inputs are one completion, or the native calls of one answer, which are
	// judged all or none.
	Inputs []Input
	// Judged, if not nil, remembers what the judgements of the request come to.
	Judged *Judged

	identified *identified // by Identify; if nil, the judgement identifies the caller
	ledger     string      // of the thread of a call that was judged before; see judgement.keys
}

// Mode selects who runs the calls of a decision.
type Mode string

// The two modes, as the journal writes them: the calls are executed here, or handed to the
// application, which runs them itself.
const (
	ModeCall    Mode = "call"
	ModeEnforce Mode = "enforce"
)

// Input is one completion, or one native call.
type Input struct {
	Completion []byte
	// TextOnly says that the completion is the text of an answer whose calls come
	// natively: it is no call, however it starts, and JSON in it is judged by
	// output.native_text, not by output.json_in_text.
	TextOnly bool
	Native   *NativeCall
	// Output is the schema of the JSON that the completion is asked to be, where it is no call; nil: it is asked for
	// none. With Partial, a completion that is no whole JSON passes as a text.
	Output  *schema.Schema
	Partial bool
	// Truncated says that the completion was cut off: by its finish reason, or
	// because its stream broke.
	Truncated bool
	// Dialogue is the exchange with a caller that takes notifications or questions while
	// its call runs; nil if the caller only waits for the result.
	Dialogue *elicit.Dialogue
}

// NativeCall is a call that a provider has taken apart already.
type NativeCall struct {
	Name string // in the registry
	// Wire is the tool's name on a wire with a smaller alphabet, such as web_search for
	// web.search; empty if the wire uses the registry's names. Messages to the model then
	// use names of that alphabet, and a Wire that does not stand for Name is an unknown
	// tool.
	Wire     string
	Alphabet Alphabet // of Wire
	// Version is the version that is called; empty is the highest. Rules for a tool apply
	// to all its versions, except for those that a version states itself.
	Version   string
	Arguments []byte // JSON
	// ID is the id that the model's provider gave the call; empty where none is known.
	ID string
}

// Alphabet is the alphabet of a wire whose names are not the registry's.
type Alphabet int

// The alphabets.
const (
	OpenAI Alphabet = iota
	OXP             // Toolkit.Tool
)

// Verdict is the result of a decision.
type Verdict string

// The three verdicts, as they are written on the wire.
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
