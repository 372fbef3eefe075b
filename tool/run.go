package tool

import "time"

// Run says how a tool is run. The registry sets defaults and checks the syntax.
type Run struct {
	// http, demo, client, mcp, oxp, callback, acp or cancel_subscription; required
	Type string `key:"type"`
	// of http, mcp, oxp and callback: absolute http or https, no user info
	URL string `key:"url" of:"a URL" form:"url"`
	// of all attempts together, 1 ms to 10 min; 0 is 10 s
	Timeout time.Duration `key:"timeout" of:"a timeout"`
	// after decompression, 1 B to 1 GiB; 0 is 1 MiB
	MaxResultBytes int64 `key:"max_result_bytes" of:"a size in bytes" range:"1..1073741824"`
	// prefixes or addresses that may be connected to; empty is public ones only
	Addresses []string `key:"addresses" of:"addresses or prefixes" form:"address"`

	// Server names the entry of the servers file that lists the tool; empty for a tool
	// that is defined by itself.
	Server string
	// of mcp, oxp and callback: its name on the server; with oxp its id and exact version; of acp the method of the client
	Tool string `key:"tool" of:"the tool's name on its server"`
	// Command is, of mcp and instead of a URL, a program and its arguments. It speaks
	// MCP on its standard input and output. Folder is its working directory, an
	// absolute path; empty is the gateway's own.
	Command []string `key:"command"`
	Folder  string
	// StartTimeout is how long Command may take to start, before its first answer; 0 is 3 min.
	StartTimeout time.Duration
	// Env sets environment variables of the command: a value, or a reference to one:
	// env:NAME, file:/absolute/path, or a command.
	Env map[string]string `key:"env"`
	// Credential is the one that the server asks for; nil is none.
	Credential *Credential   `key:"credential"`
	MaxAge     time.Duration `key:"max_age" of:"how long the answer may take"` // of callback: how long the answer may take; 0 is 24 h
	// InputRequests lists the kinds of questions that an mcp tool may ask its caller: form, url,
	// sampling and roots. If it is empty, the tool may ask nothing.
	InputRequests []string `key:"input_requests"`

	// Method makes a request of http in which each argument has its place: a name in
	// braces in the URL's path, its query, a header, or the body. If it is empty, the
	// request is a POST of the arguments.
	Method     string      `key:"method"` // GET, HEAD, POST, PUT, PATCH or DELETE
	Parameters []Parameter `key:"parameters"`
}

// Parameter says where an argument goes in the request of an http tool.
type Parameter struct {
	Argument string // a member of the arguments
	In       string `key:"in"`                                              // path, query, header or body
	Name     string `key:"name" of:"a name in the query or of a header"`    // in the query or of the header; "" is the argument's
	Join     string `key:"join" of:"how a list is one value" words:"comma"` // comma: a list is one value, with commas between its items
}
