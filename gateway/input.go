package gateway

import "encoding/json"

// Request is what is asked of the kernel: for whom, and what the model wrote.
type Request struct {
	Agent, Workspace, Project string
	Input                     Input
}

// Input is one completion.
type Input struct {
	Completion []byte
	// Truncated says that the completion was cut off: by its finish reason, or
	// because its stream broke.
	Truncated bool
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
