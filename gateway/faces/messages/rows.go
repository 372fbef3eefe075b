package messages

import (
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/upstream"
)

// row is a type of content block (AM-31).
type row struct {
	turns.Row
	called bool // the provider executes it: a call, whose input comes as that of a tool_use
	// written are the members that a block is written with: any other would reach the application, and the next turn of
	// the model, unjudged. nil: data of the provider that a switch has allowed, which stays as it was received.
	written []string
}

var (
	rowText = &row{Row: turns.Row{Type: "text", Kind: turns.Text, Text: "text", Hooked: []string{"citations"}},
		written: []string{"type", "text", "citations"}}
	rowThinking = &row{Row: turns.Row{Type: "thinking", Kind: turns.Thought, Text: "thinking"},
		written: []string{"type", "thinking", "signature"}}
	rowCall = &row{Row: turns.Row{Type: "tool_use", Kind: turns.Call},
		written: []string{"type", "id", "name", "input", "caller", "toolset_name"}}
)

// rows are the known types.
var rows = byType(
	rowText, rowThinking, rowCall,
	&row{Row: turns.Row{Type: "redacted_thinking", Kind: turns.Thought}, written: []string{"type", "data"}},
	&row{Row: turns.Row{Type: "server_tool_use", Kind: turns.Hosted, Allowed: serverTool}, called: true,
		written: []string{"type", "id", "name", "input", "caller"}},
	&row{Row: turns.Row{Type: "mcp_tool_use", Kind: turns.Hosted, Allowed: namedServer}, called: true,
		written: []string{"type", "id", "name", "input", "caller", "server_name"}},
	&row{Row: turns.Row{Type: "web_search_tool_result", Kind: turns.Hosted, Allowed: serverTool}},
	&row{Row: turns.Row{Type: "web_fetch_tool_result", Kind: turns.Hosted, Allowed: serverTool}},
	&row{Row: turns.Row{Type: "code_execution_tool_result", Kind: turns.Hosted, Allowed: serverTool}},
	&row{Row: turns.Row{Type: "bash_code_execution_tool_result", Kind: turns.Hosted, Allowed: serverTool}},
	&row{Row: turns.Row{Type: "text_editor_code_execution_tool_result", Kind: turns.Hosted, Allowed: serverTool}},
	&row{Row: turns.Row{Type: "tool_search_tool_result", Kind: turns.Hosted, Allowed: serverTool}},
	&row{Row: turns.Row{Type: "advisor_tool_result", Kind: turns.Hosted, Allowed: serverTool}},
	&row{Row: turns.Row{Type: "container_upload", Kind: turns.Hosted, Allowed: serverTool}},
	&row{Row: turns.Row{Type: "mcp_tool_result", Kind: turns.Hosted, Allowed: anyServer}},
	&row{Row: turns.Row{Type: "mcp_tool_listing", Kind: turns.Hosted, Allowed: anyServer}},
	&row{Row: turns.Row{Type: "compaction", Kind: turns.Summary}, written: []string{"type", "content", "encrypted_content"}},
	&row{Row: turns.Row{Type: typeFallback, Kind: turns.Hosted, Allowed: fallback}, written: []string{"type", "from", "to"}},
)

func byType(all ...*row) map[string]*row {
	types := map[string]*row{}
	for _, r := range all {
		types[r.Type] = r
	}
	return types
}

// serverTool lets calls of the provider's own tools, and their results, pass by the purpose of the tool (AM-13).
func serverTool(rules *upstream.Rules, p *turns.Part) (found, key string) {
	name := p.Type
	if p.Call.Name != "" {
		name = p.Call.Name
	}
	if slices.ContainsFunc(rules.Messages.ServerTools,
		func(tool string) bool { return purpose(upstream.WithoutDate(tool)) == purpose(name) }) {
		return "", ""
	}
	return parser.Quote(name), "messages: {server_tools: [" + purpose(name) + "]}"
}

// purpose is the tool that a name of a block, or of a call at the provider, belongs to: the
// provider's code execution calls bash_code_execution and the like.
func purpose(name string) string {
	name = strings.TrimSuffix(name, "_tool_result")
	switch {
	case strings.HasSuffix(name, "code_execution"), name == "container_upload":
		return "code_execution"
	case strings.HasPrefix(name, "tool_search"):
		return "tool_search"
	}
	return name
}

// namedServer lets calls of tools of a remote server pass, by its name (AM-21).
func namedServer(rules *upstream.Rules, p *turns.Part) (found, key string) {
	if slices.Contains(rules.Messages.MCPServers, p.Call.Group) {
		return "", ""
	}
	return parser.Quote(p.Type), "messages: {mcp_servers: [NAME]}"
}

// anyServer lets what comes of remote servers pass.
func anyServer(rules *upstream.Rules, p *turns.Part) (found, key string) {
	if len(rules.Messages.MCPServers) > 0 {
		return "", ""
	}
	return parser.Quote(p.Type), "messages: {mcp_servers: [NAME]}"
}

// typeFallback is the type of the block with which another model goes on.
const typeFallback = "fallback"

// fallback lets another model go on (AM-22).
func fallback(rules *upstream.Rules, p *turns.Part) (found, key string) {
	if rules.Messages.Fallbacks {
		return "", ""
	}
	return parser.Quote(p.Type), "messages: {fallbacks: true}"
}
