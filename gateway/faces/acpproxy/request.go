package acpproxy

import (
	"sync"

	"github.com/callgate/callgate/internal/acp/delegate"
	"github.com/callgate/callgate/internal/acp/wire"
)

// The tools that the agent's requests for files and terminals become.
const (
	toolRead     = "acp.fs.read"
	toolWrite    = "acp.fs.write"
	toolTerminal = "acp.terminal.create"
)

// toolPermission is the beginning of the names of the tools that requests for permission become.
const (
	ownTools       = "acp."
	toolPermission = ownTools + "permission."
)

// request is a request of the agent for a file or a terminal.
type request struct {
	method    string
	tool      string
	path      string // of a file
	arguments any
	session   *session
	proxy     *Proxy

	old     *oldText // of the file, once it was read
	shownAs string   // the id under which the user was asked, where it is none of the agent's

	mu sync.Mutex
	// answer is the editor's, and fault the error that it answered with. Over says that nobody
	// waits for them any more.
	answer any
	fault  *delegate.Refused
	over   bool
}

// oldText is the text of a file before it is written, as delegate.OldText has it.
type oldText struct {
	text  *string
	known bool
}

// take ends the waiting for the editor, and returns its answer.
func (r *request) take() (any, *delegate.Refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return r.answer, r.fault
}

// set keeps the answer of the editor. It reports whether somebody waits for it.
func (r *request) set(answer any, fault *delegate.Refused) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.answer, r.fault = answer, fault
	}
	return !r.over
}

// fileArguments are the arguments of acp.fs.read and acp.fs.write.
type fileArguments struct {
	Path    string  `json:"path"`
	Line    *uint32 `json:"line,omitempty"`
	Limit   *uint32 `json:"limit,omitempty"`
	Content *string `json:"content,omitempty"`
}

// commandArguments are the arguments of acp.terminal.create.
type commandArguments struct {
	Command         string            `json:"command"`
	Args            []string          `json:"args,omitempty"`
	Env             map[string]string `json:"env,omitempty"`
	Cwd             string            `json:"cwd,omitempty"`
	OutputByteLimit *uint64           `json:"outputByteLimit,omitempty"`
}

func terminalArguments(r wire.CreateTerminalRequest) commandArguments {
	a := commandArguments{Command: r.Command, Args: r.Args, Cwd: r.Cwd, OutputByteLimit: r.OutputByteLimit}
	if len(r.Env) > 0 {
		a.Env = map[string]string{}
		for _, v := range r.Env {
			a.Env[v.Name] = v.Value
		}
	}
	return a
}
