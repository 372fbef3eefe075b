package responses

import (
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/upstream"
)

// row is a type of item.
type row struct {
	turns.Row
	// tools are the types of the provider's tools that bring it (RS-36).
	tools []string
	// tool is the name in the registry of a tool without a name of its own (RS-12).
	tool string
	// output is the type of the results of a call (RS-16).
	output string
	// arguments are the members that say what is called for.
	arguments []string
	// forwarded are the members of a call that a client acts by, beside those that name it: what is called for, which
	// was judged, and where it is to run.
	forwarded []string
	// late says that the beginning of an item is shown with its end: its call_id may change until then, or it is compared.
	late bool
}

var (
	rowMessage   = &row{Row: turns.Row{Type: "message", Kind: turns.Text, Hooked: []string{"annotations"}}}
	rowRefusal   = &row{Row: turns.Row{Type: "message", Kind: turns.Refusal}}
	rowReasoning = &row{Row: turns.Row{Type: "reasoning", Kind: turns.Thought, Hooked: []string{"summary", "content"}}}
	rowFunction  = &row{Row: turns.Row{Type: "function_call", Kind: turns.Call, Allowed: callAllowed}, output: "function_call_output",
		arguments: []string{"arguments"}, forwarded: []string{"arguments"}}
	// rowContainerCall is a shell_call in a container of the provider.
	rowContainerCall = hosted("shell_call", "shell")
)

// rows are the known types.
var rows = byType(
	rowMessage, rowReasoning, rowFunction,
	&row{Row: turns.Row{Type: "custom_tool_call", Kind: turns.Call, Allowed: callAllowed}, output: "custom_tool_call_output",
		arguments: []string{"input"}, forwarded: []string{"input"}},
	&row{Row: turns.Row{Type: "shell_call", Kind: turns.Call, Allowed: callAllowed}, tool: "shell", output: "shell_call_output",
		arguments: []string{"action"}, forwarded: []string{"action", "environment"}},
	&row{Row: turns.Row{Type: "local_shell_call", Kind: turns.Call, Allowed: callAllowed}, tool: "local_shell",
		output: "local_shell_call_output", arguments: []string{"action"}, forwarded: []string{"action"}},
	&row{Row: turns.Row{Type: "apply_patch_call", Kind: turns.Call, Allowed: callAllowed}, tool: "apply_patch",
		output: "apply_patch_call_output", arguments: []string{"operation"}, forwarded: []string{"operation"}},
	&row{Row: turns.Row{Type: "computer_call", Kind: turns.Call, Allowed: callAllowed, NoRepair: true}, tool: "computer",
		output:    "computer_call_output",
		arguments: []string{"action", "actions"}, forwarded: []string{"action", "actions", "pending_safety_checks"}},
	&row{Row: turns.Row{Type: typeRequest, Kind: turns.Ask, Allowed: namedServer}},
	&row{Row: turns.Row{Type: "mcp_call", Kind: turns.Hosted, Allowed: anyServer}, arguments: []string{"arguments"}, late: true},
	&row{Row: turns.Row{Type: "mcp_list_tools", Kind: turns.Hosted, Allowed: anyServer}, late: true},
	hosted("web_search_call", "web_search", "web_search_preview").of("action"),
	hosted("file_search_call", "file_search").of("queries"),
	hosted("code_interpreter_call", "code_interpreter").of("code"),
	hosted("image_generation_call", "image_generation"),
	hosted("tool_search_call", "tool_search").of("arguments").endsLate(),
	hosted("tool_search_output", "tool_search"),
	hosted("compaction", "compaction"), hosted("compaction_trigger", "compaction"), hosted("compaction_summary", "compaction"),
	hosted("context_compaction", "compaction"),
	hosted("shell_call_output", "shell"),
	&row{Row: turns.Row{Type: "program", Kind: turns.Hosted, Allowed: programs}},
	&row{Row: turns.Row{Type: "program_output", Kind: turns.Hosted, Allowed: programs}},
	// No switch allows these in a reply.
	hosted("apply_patch_call_output"), hosted("local_shell_call_output"), hosted("custom_tool_call_output"), hosted("function_call_output"),
	hosted("computer_call_output"), hosted(typeResponse), hosted("additional_tools"),
)

// The types of the items by which a caller is asked, and answers (RS-37).
const (
	typeRequest  = "mcp_approval_request"
	typeResponse = "mcp_approval_response"
)

func byType(all ...*row) map[string]*row {
	types := map[string]*row{}
	for _, r := range all {
		types[r.Type] = r
	}
	return types
}

// hosted is an item of the provider's own tools of some types.
func hosted(kind string, tools ...string) *row {
	r := &row{Row: turns.Row{Type: kind, Kind: turns.Hosted}, tools: tools}
	r.Allowed = func(rules *upstream.Rules, _ *turns.Part) (found, key string) {
		for _, listed := range rules.Responses.HostedTools {
			if slices.ContainsFunc(tools, func(tool string) bool { return listed == tool || strings.HasPrefix(listed, tool+"_2") }) {
				return "", ""
			}
		}
		if len(tools) > 0 {
			key = "responses: {hosted_tools: [" + tools[0] + "]}"
		}
		return parser.Quote(kind), key
	}
	return r
}

func (r *row) of(arguments ...string) *row { r.arguments = arguments; return r }

func (r *row) endsLate() *row { r.late = true; return r }

// callAllowed lets calls of the client pass but for those by programs, and those whose results come later (RS-32).
func callAllowed(rules *upstream.Rules, p *turns.Part) (found, key string) {
	switch c := &p.Wire.(*item).call; {
	case c.program && !rules.Responses.ProgrammaticCalls:
		return "a call by a program", "responses: {programmatic_calls: true}"
	case c.async && !rules.Responses.Async:
		return "a call whose result may come later (async)", "responses: {async: true}"
	}
	return "", ""
}

// programs lets items of programs at the provider pass.
func programs(rules *upstream.Rules, p *turns.Part) (found, key string) {
	if rules.Responses.ProgrammaticCalls {
		return "", ""
	}
	return parser.Quote(p.Type), "responses: {programmatic_calls: true}"
}

// anyServer lets items of the provider's MCP pass; each is compared with what was approved besides.
func anyServer(rules *upstream.Rules, p *turns.Part) (found, key string) {
	if len(rules.Responses.MCPServers) > 0 {
		return "", ""
	}
	return parser.Quote(p.Type), "responses: {mcp_servers: [LABEL]}"
}

// namedServer lets requests for approval pass, by the label of the server.
func namedServer(rules *upstream.Rules, p *turns.Part) (found, key string) {
	if slices.Contains(rules.Responses.MCPServers, p.Call.Group) {
		return "", ""
	}
	return "a request for a call at the server " + parser.Quote(p.Call.Group), "responses: {mcp_servers: [LABEL]}"
}

// isDisguisedType reports whether a type is a known one but for the case of letters and what stands between them.
func isDisguisedType(kind string) bool {
	if rows[kind] != nil {
		return false
	}
	for known := range rows {
		if ascii.Folded(kind) == ascii.Folded(known) {
			return true
		}
	}
	return false
}

// callOf is the type of the calls that results of a type answer; empty: they are no results.
func callOf(output string) string {
	for kind, r := range rows {
		if output != "" && r.output == output {
			return kind
		}
	}
	return ""
}
