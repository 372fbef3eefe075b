package wire

// ReadTextFileRequest is the params of fs/read_text_file.
type ReadTextFileRequest struct {
	_         closed
	SessionID string  `json:"sessionId" wire:"required id"`
	Path      string  `json:"path" wire:"required path"` // absolute
	Line      *uint32 `json:"line,omitempty" min:"1"`    // from 1; nil is the first
	Limit     *uint32 `json:"limit,omitempty"`           // in lines; nil is all
	Meta      Meta    `json:"_meta,omitempty"`
}

// ReadTextFileResponse is its result.
type ReadTextFileResponse struct {
	Content string `json:"content" wire:"required"`
	Meta    Meta   `json:"_meta,omitempty"`
}

// WriteTextFileRequest is the params of fs/write_text_file.
type WriteTextFileRequest struct {
	_         closed
	SessionID string `json:"sessionId" wire:"required id"`
	Path      string `json:"path" wire:"required path"` // absolute
	Content   string `json:"content" wire:"required"`
	Meta      Meta   `json:"_meta,omitempty"`
}

// CreateTerminalRequest is the params of terminal/create. No variable is named twice.
type CreateTerminalRequest struct {
	_               closed
	SessionID       string        `json:"sessionId" wire:"required id"`
	Command         string        `json:"command" wire:"required"`
	Args            []string      `json:"args,omitzero"`
	Env             []EnvVariable `json:"env,omitzero"`
	Cwd             string        `json:"cwd,omitempty" wire:"path"` // absolute
	OutputByteLimit *uint64       `json:"outputByteLimit,omitempty"`
	Meta            Meta          `json:"_meta,omitempty"`
}

// EnvVariable is a variable of an environment.
type EnvVariable struct {
	Name  string `json:"name" wire:"required"`
	Value string `json:"value" wire:"required"`
	Meta  Meta   `json:"_meta,omitempty"`
}

// CreateTerminalResponse is the result of terminal/create.
type CreateTerminalResponse struct {
	TerminalID string `json:"terminalId" wire:"required id"`
	Meta       Meta   `json:"_meta,omitempty"`
}

// TerminalRequest is the params of terminal/output, /wait_for_exit, /kill and /release.
type TerminalRequest struct {
	_          closed
	SessionID  string `json:"sessionId" wire:"required id"`
	TerminalID string `json:"terminalId" wire:"required id"`
	Meta       Meta   `json:"_meta,omitempty"`
}

// TerminalOutputResponse is the result of terminal/output.
type TerminalOutputResponse struct {
	Output     string              `json:"output" wire:"required"`
	Truncated  bool                `json:"truncated" wire:"required"`
	ExitStatus *TerminalExitStatus `json:"exitStatus,omitempty"` // nil: it still runs
	Meta       Meta                `json:"_meta,omitempty"`
}

// TerminalExitStatus is how a command ended, and the result of terminal/wait_for_exit.
type TerminalExitStatus struct {
	ExitCode *uint32 `json:"exitCode,omitempty"`
	Signal   *string `json:"signal,omitempty"`
	Meta     Meta    `json:"_meta,omitempty"`
}

// EmptyResponse is the result of a method that returns nothing; null is one.
type EmptyResponse struct {
	Meta Meta `json:"_meta,omitempty"`
}

func (r *CreateTerminalRequest) read(o *object) {
	o.fields(r)
	o.at("env").differ(r.Env)
}

// differ refuses an environment that names a variable twice.
func (p *place) differ(env []EnvVariable) {
	names := map[string]bool{}
	for i, v := range env {
		if names[v.Name] {
			p.element(i).fail("a name that no other variable has", "one that stands twice")
		}
		names[v.Name] = true
	}
}
