// Package starter makes the files of a first configuration: a few small ones, in which nothing is
// permitted but the tools that its user named.
package starter

import "github.com/callgate/callgate/upstream"

// MainFile is the name of the main file of a configuration.
const MainFile = "callgate.yaml"

// The place that calls are judged for. A user who needs several edits workspaces.yaml.
const (
	Workspace = "home"
	Project   = "main"
)

// Options describe a first configuration.
type Options struct {
	Agent string // that calls are made for
	// Allow are the tools that the agent may use: names, beginnings such as files.*, or *.
	Allow []string
	// Upstream is the base URL of a model, and UpstreamKey the place of its key, env:NAME or
	// file:PATH; both may be empty.
	Upstream, UpstreamKey string
	Tools                 Tools
}

// Tools are the tools of a first configuration, from one source.
type Tools struct {
	File    []byte   // a tool file; nil where servers have the tools
	Servers []Server // tool servers
	Names   []string // of the tools in File
	// Client says that the application runs the tools, and Protocol which API its requests are of.
	Client   bool
	Protocol upstream.Wire
	// Notes say what was changed or could not be taken over, a line each.
	Notes []string
	// LeftOut counts the tools and servers among them that were not taken over.
	LeftOut int
	// allow are patterns that hold where Options.Allow is empty.
	allow []string
}

// Server is a server of the Model Context Protocol.
type Server struct {
	Name    string
	Command []string
	URL     string
	// Env are variables of the program, and Token what a URL is asked with. Their values are
	// secrets, as far as anybody can know: each is a place, env:NAME, or is written to a file of its
	// own.
	Env   []Variable
	Token *Variable
}

// Variable is a name and a value, or the place of one.
type Variable struct {
	Name, Value string
	Place       string // env:NAME; empty where Value counts
}
