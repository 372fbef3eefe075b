package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Transport runs the tools of one type, and finds them on a server. It is safe
// for concurrent use.
type Transport interface {
	// Run runs a call whose bounds are set, within its context. Its error is a
	// *refusal.Error.
	Run(context.Context, Call) (Result, error)
	// Discover lists what a server has. Nothing of it was judged; what cannot be
	// read whole is an *UnreadableError. Errors are for the operator.
	Discover(context.Context, Server) ([]Definition, error)
}

// Server is where tools are found.
type Server struct {
	Name string
	Type string // mcp, oxp or callback
	// URL, or with mcp Command: a program and its arguments.
	URL        string
	Command    []string
	Folder     string            // that the command is started in; empty is the gateway's own
	Env        map[string]string // of the command: values, or their places (see Options.ReadSecret)
	Credential string            // where it stands; see Options.ReadSecret
	Addresses  []string          // prefixes or addresses; none means public ones only
	Timeout    time.Duration
}

// Definition is a tool as its server states it.
type Definition struct {
	Name    string // there; with oxp the id without its version
	Version string // "" where the server states none
	// Endpoint is where its calls go, where that is not the server's URL.
	Endpoint    string
	Title       string
	Description string
	// The schemas are JSON, as near to the server's bytes as the protocol allows;
	// nil where it states none.
	InputSchema, OutputSchema json.RawMessage
	// Unusable is why it cannot be called from here; empty where it can.
	Unusable string
}

// UnreadableError is of a server that was reached, and whose list of tools cannot be
// used. Any other error of Discover tells nothing of what a server has now.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return e.Err.Error() }

func (e *UnreadableError) Unwrap() error { return e.Err }

// Discover lists what a server has, and its error is for the operator: of a list
// that cannot be used an *UnreadableError. It returns within the server's timeout.
func (e *Engine) Discover(ctx context.Context, s Server) (found []Definition, err error) {
	defer func() {
		if p := recover(); p != nil {
			found, err = nil, fmt.Errorf("%s: %s", s.Name, PanicText(p))
		}
	}()
	t := e.transports[s.Type]
	if t == nil {
		return nil, fmt.Errorf("%s is of the type %s, which this engine does not know", s.Name, s.Type)
	}
	if s.Timeout <= 0 {
		s.Timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	return t.Discover(ctx, s)
}
