package tool

import (
	"cmp"
	"encoding/json"
	"time"
)

// Server is a server that lists tools.
type Server struct {
	Name string
	Type string // mcp, oxp or callback
	// URL, or with mcp Command: a program and its arguments.
	URL        string
	Command    []string
	Folder     string            // working directory of the command; empty is the gateway's own
	Env        map[string]string // of the command: values, or references as in Run.Env
	Credential *Credential       // nil is none
	Addresses  []string          // prefixes or addresses; empty is public ones only
	Timeout    time.Duration
	// StartTimeout is how long Command may take to start, before its first answer; 0 is 3 min.
	StartTimeout time.Duration
}

// StartTime is how long the program of a server may take to start; 0 of one with a URL.
func (s *Server) StartTime() time.Duration {
	if len(s.Command) == 0 {
		return 0
	}
	return cmp.Or(s.StartTimeout, 3*time.Minute)
}

// Definition is a tool as its server defines it. Nothing of it was validated.
type Definition struct {
	Name    string // on the server; with oxp the id without its version
	Version string // "" if the server states none
	// Endpoint is the URL of its calls, if that is not the server's.
	Endpoint    string
	Title       string
	Description string
	// The schemas are JSON, as near to the server's bytes as the protocol allows; nil
	// if it states none.
	InputSchema, OutputSchema json.RawMessage
	// Unusable says why the tool cannot be called; empty if it can.
	Unusable string
}

// InvalidListError says that a server was reached, and that its list of tools cannot
// be used. Any other error of discovery says nothing about the tools that it has now.
type InvalidListError struct{ Err error }

func (e *InvalidListError) Error() string { return e.Err.Error() }

func (e *InvalidListError) Unwrap() error { return e.Err }
