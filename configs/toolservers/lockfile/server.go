// Package lockfile keeps the definitions that an operator has accepted of a tool server:
// the tools, each with the digest of its server's definition and the schemas that calls are
// judged by. There is one file for each server in the data folder, and it is part of the
// configuration.
package lockfile

import (
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/tool"
)

// Server is a tool server of the configuration: where it is, and which of its tools may be
// called, and how.
type Server struct {
	tool.Server `key:""`
	// Prefix precedes the name of each of its tools, with a dot between.
	Prefix string `key:"prefix" of:"what stands before the names of its tools" form:"label"`
	// Allow are the names of the tools, as the server has them, that may be accepted;
	// one that ends in * stands for all that begin so. Nil, all may; empty, none.
	Allow []string `key:"allow"`
	// Effects are those of tools, by their names on the server; every other tool acts
	// once, whatever its server says.
	Effects map[string]string `key:"effects"`
	// Boundaries say what arguments must stay within, by the tool's name on the server and the
	// argument's, as x-boundary in a schema does.
	Boundaries map[string]map[string]string `key:"boundaries"`
	// Labels are what its tools add to threads; nil: it states none.
	Labels         []string      `key:"labels"`
	MaxResultBytes int64         `key:"max_result_bytes" of:"a size in bytes" range:"1..1073741824"`
	MaxAge         time.Duration `key:"max_age" of:"how long a tool may take to call back"` // callback only
	// InputRequests are the kinds of questions that its tools may ask the caller; mcp
	// only: form, url, sampling and roots. Absent, none.
	InputRequests []string `key:"input_requests"`
}

// The types of Server.
const (
	MCP      = "mcp"
	OXP      = "oxp"
	Callback = "callback"
)

// ToolName is the name in the registry of a tool of the server.
func (s *Server) ToolName(name string) string { return s.Prefix + "." + name }

// Allows reports whether a tool may be accepted.
func (s *Server) Allows(name string) bool {
	return s.Allow == nil || slices.ContainsFunc(s.Allow, func(pattern string) bool {
		start, open := strings.CutSuffix(pattern, "*")
		return pattern == name || open && strings.HasPrefix(name, start)
	})
}

// Run is how a tool of the server is run.
func (s *Server) Run(p Pin) tool.Run {
	r := tool.Run{
		Type: s.Type, URL: s.URL, Command: s.Command, Folder: s.Folder, Env: s.Env, Server: s.Name, Tool: p.Name, Credential: s.Credential,
		Addresses: s.Addresses, Timeout: s.Timeout, StartTimeout: s.StartTimeout, MaxResultBytes: s.MaxResultBytes, MaxAge: s.MaxAge,
		InputRequests: s.InputRequests,
	}
	if p.Endpoint != "" {
		r.URL = p.Endpoint
	}
	if s.Type == OXP && p.Version != "" {
		r.Tool += "@" + p.Version
	}
	return r
}
