package gateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/callgate/callgate/tool"
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
	Run                   tool.Run
	Arguments             []byte   // the bytes that were judged
	Typed                 bool     // the results are judged by a schema
	Roots                 []string // the folders of the project
	// Thread, Ancestors and User are those of the request.
	Thread    string
	Ancestors []string
	User      string
	// Progress is told how far the tool says that it is; nil does not ask it.
	Progress func(Progress)
	// Log is told what the tool logs of LogLevel and above; without either it is not
	// asked. It is called as Progress is.
	Log      func(Log)
	LogLevel string
	// Asks are the kinds of questions that the tool may put to whoever called.
	Asks []string
	// State and Answers go back to a tool that has asked before.
	State   *string
	Answers map[string]json.RawMessage
}

// Progress is how far a tool says that it is.
type Progress struct {
	Done    float64 // finite, and more each time
	Total   float64 // finite; 0 is unknown
	Message string  // the tool's words; may be empty
}

// Log is a message that a tool logs.
type Log struct {
	Level  string          // one of LogLevels
	Logger string          // the tool's name for where it comes from; may be empty
	Data   json.RawMessage // any JSON of the tool's
}

// Asked is what a tool wants to know before it goes on.
type Asked struct {
	Questions []Question `json:"questions"` // in the order of their names
	State     *string    `json:"state,omitempty"`
}

// Question is one of them. Its method and its parameters are those of MCP.
type Question struct {
	Name   string          `json:"name"`
	Kind   string          `json:"kind"` // form, url, sampling or roots
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Output is what a tool answered.
type Output struct {
	Body     []byte
	JSON     bool // the body says that it is JSON; else it is text
	Attempts int
	// Pending says that the tool has taken the call and will answer later, by
	// Answer.
	Pending bool
	// Until is by when it will; zero is the end of the tool's timeout.
	Until time.Time
	// Challenges come with an error that a person can lift.
	Challenges []Challenge
	// Asked comes with an error that answers can lift.
	Asked *Asked
}
