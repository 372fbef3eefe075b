package main

import (
	"encoding/json"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// Case is a completion that is refused, with what the model that wrote it wanted.
type Case struct {
	Name string       `json:"name"`
	Code refusal.Code `json:"code"` // of the first refusal
	// Ends is how the exchange is to end.
	Ends Ending `json:"ends"`

	Agent        string `json:"agent,omitempty"`
	Workspace    string `json:"workspace,omitempty"`
	Project      string `json:"project,omitempty"`
	FinishReason string `json:"finish_reason,omitempty"` // of the first completion
	// Scene names what the call meets beyond the configuration: one of Scenes. Such a call is
	// executed where it passes.
	Scene string `json:"scene,omitempty"`
	// MaxBytes and AgentRequired stand for the settings of the same names; zero keeps the
	// configuration's.
	MaxBytes      int  `json:"max_bytes,omitempty"`
	AgentRequired bool `json:"agent_required,omitempty"`

	Completion       string `json:"completion,omitempty"`
	CompletionBase64 string `json:"completion_b64,omitempty"`
	Intent           Intent `json:"intent"`
	// Call is the call that must pass in the end: a model that only drops what is refused
	// has not said what it wanted. It is absent where no call is to pass.
	Call *Call `json:"call,omitempty"`
}

// Ending is how an exchange ends.
type Ending string

// The endings that a case expects: a call that passes, or a text in which the model says that it
// cannot make the call.
const (
	EndsInCall Ending = "call"
	EndsInText Ending = "text"
)

// Call is a call that passed, or is to pass.
type Call struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// Intent is all that a scripted model knows besides its own completions and what it reads.
type Intent struct {
	Tool      string                     `json:"tool"`      // as the model believes that it is called
	Arguments map[string]json.RawMessage `json:"arguments"` // as the model believes that they are
	// Others holds other values of an argument that would do as well, best first, by the path
	// of the argument: names and indexes, with dots between them.
	Others map[string][]json.RawMessage `json:"others,omitempty"`
	Agent  string                       `json:"agent,omitempty"` // the name of the model's own agent
	Given  []string                     `json:"given,omitempty"` // names of tools that its prompt has, best first
}

// subject is who the request of a case is for.
func (c *Case) subject() gateway.Subject {
	return gateway.Subject{Agent: c.Agent, Workspace: c.Workspace, Project: c.Project}
}

// equals compares with a call that passed: the tool, and the values of the arguments.
func (c *Call) equals(passed *Call) bool {
	return c.Tool == passed.Tool && encode(decode(string(c.Arguments))) == encode(decode(string(passed.Arguments)))
}
