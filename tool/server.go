package tool

import (
	"cmp"
	"encoding/json"
	"time"
)

// Server is a server that lists tools.
type Server struct {
	Name string `key:"name" of:"the server's name" form:"label"`
	Type string `key:"type" of:"the protocol of the server" words:"mcp oxp callback"`
	// URL, or with mcp Command: a program and its arguments.
	URL     string   `key:"url" of:"the URL of the server" form:"url"`
	Command []string `key:"command"`
	Folder  string   // working directory of the command; empty is the gateway's own
	// of the command: values, or references as in Run.Env
	Env        map[string]string `key:"env"`
	Credential *Credential       `key:"credential"`                                          // nil is none
	Addresses  []string          `key:"addresses" of:"addresses or prefixes" form:"address"` // empty is public ones only
	Timeout    time.Duration     `key:"timeout" of:"how long an answer may take"`
	// StartTimeout is how long Command may take to start, before its first answer; 0 is 3 min.
	StartTimeout time.Duration `key:"start_timeout" of:"how long its program may take to start" range:"1s..30m"`
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
