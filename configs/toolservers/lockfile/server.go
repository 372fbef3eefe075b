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
	tool.Server
	// Prefix precedes the name of each of its tools, with a dot between.
	Prefix string
	// Allow are the names of the tools, as the server has them, that may be accepted;
	// one that ends in * stands for all that begin so. Nil, all may; empty, none.
	Allow []string
	// Effects are those of tools, by their names on the server; every other tool acts
	// once, whatever its server says.
	Effects map[string]string
	// Boundaries say what arguments must stay within, by the tool's name on the server and the
	// argument's, as x-boundary in a schema does.
	Boundaries map[string]map[string]string
	// Labels are what its tools add to threads; nil: it states none.
	Labels         []string
	MaxResultBytes int64
	MaxAge         time.Duration // callback only
	// InputRequests are the kinds of questions that its tools may ask the caller; mcp
	// only: form, url, sampling and roots. Absent, none.
	InputRequests []string
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
