package upstream

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/callgate/callgate/internal/ascii"
)

// Wire is an API that models are asked in. A face is served only in front of upstreams that
// speak its wire.
type Wire string

// The wires.
const (
	ChatWire      Wire = "chat"      // OpenAI chat completions
	MessagesWire  Wire = "messages"  // Anthropic Messages
	ResponsesWire Wire = "responses" // OpenAI Responses
)

// ToolSource says where the definitions of tools come from.
type ToolSource string

// The sources of tools.
const (
	FromRegistry ToolSource = "registry" // a tool that the registry does not have is refused
	FromRequest  ToolSource = "request"  // such a tool joins the registry of its one request
)

// RefusalForm is what an application gets when a completion stays refused.
type RefusalForm string

// The forms of refusals.
const (
	AsError   RefusalForm = "error"   // an error of the API
	AsMessage RefusalForm = "message" // a final answer of the model, whose text says what was refused
)

// State is the treatment of conversations that the provider keeps.
type State string

// The treatments of state.
const (
	RefuseState State = "refuse" // a request that continues one is refused
	BindState   State = "bind"   // one continues only what its own principal began
)

// MessagesRules are switches of the wire of Anthropic Messages. What they allow passes the
// gateway without its judgement; all is refused by default.
type MessagesRules struct {
	// ServerTools are types of tools that the provider runs (AM-13), with their date or without:
	// web_search allows every web_search_20250305 and the like.
	ServerTools []string
	// MCPServers are names of remote servers that the provider may call (AM-21).
	MCPServers []string
	// Thread allows conversations that the provider keeps (AM-20).
	Thread bool
	// Container allows a container that the provider keeps between requests (AM-20).
	Container bool
	// Fallbacks allows answers of another model than the one asked (AM-22).
	Fallbacks bool
	// ProgrammaticCalls allows calls that a program at the provider makes (AM-32). They are
	// judged as others are.
	ProgrammaticCalls bool
	// ToolDefinitions allows definitions of whole tools inside messages (AM-12), of tools that
	// the registry has, or that a request may bring.
	ToolDefinitions bool
	// UnknownBlocks is the treatment of content blocks of types that are not known (AM-31): Refuse or Pass.
	UnknownBlocks Treatment
}

// ResponsesRules are switches of the wire of OpenAI Responses, as MessagesRules are.
type ResponsesRules struct {
	// HostedTools are types of tools that the provider runs, such as web_search (RS-11).
	HostedTools []string
	// MCPServers are labels of remote servers that the provider may call, each call approved by
	// the gateway (RS-37).
	MCPServers []string
	// State is the treatment of previous_response_id and conversation (RS-72).
	State State
	// Background allows answers that are fetched later (RS-74).
	Background bool
	// Prompt allows templates that the provider keeps, which may bring tools (RS-10).
	Prompt bool
	// Async allows calls whose result may come in a later turn (RS-32).
	Async bool
	// ProgrammaticCalls allows calls that a program at the provider makes (RS-32). They are
	// judged as others are.
	ProgrammaticCalls bool
	// AdditionalTools allows definitions of tools inside input (RS-13), of tools that the
	// registry has, or that a request may bring.
	AdditionalTools bool
	// UnknownItems is the treatment of items of types that are not known (RS-36): Refuse or Pass.
	UnknownItems Treatment
}

// AllowsServerTool reports whether a type of tool is allowed, such as web_search_20250305.
func (r MessagesRules) AllowsServerTool(kind string) bool {
	return slices.Contains(r.ServerTools, kind) || slices.Contains(r.ServerTools, WithoutDate(kind))
}

// WithoutDate returns a type of tool without the _20250305 at its end (AM-13).
func WithoutDate(kind string) string {
	const digits = 8
	at := len(kind) - digits - 1
	if at < 1 || kind[at] != '_' {
		return kind
	}
	for _, c := range []byte(kind[at+1:]) {
		if c < '0' || c > '9' {
			return kind
		}
	}
	return kind[:at]
}

// Speaks reports whether the models of the route are asked in this wire.
func (r *Route) Speaks(w Wire) bool { return slices.Contains(r.Rules.Speaks, w) }

// MaxWireName bounds the names in ServerTools, HostedTools and MCPServers, in bytes.
const MaxWireName = 256

func (v *validation) wires(r Rules, path []string) {
	speaks := childPath(path, "speaks")
	if len(r.Speaks) == 0 {
		v.add("found no protocols, expected chat, messages, responses or several of them", speaks...)
	}
	for i, w := range r.Speaks {
		at := childPath(speaks, strconv.Itoa(i))
		if oneOf(v, w, []Wire{ChatWire, MessagesWire, ResponsesWire}, at); slices.Contains(r.Speaks[:i], w) {
			v.add(fmt.Sprintf("found %q twice, expected each protocol once", w), at...)
		}
	}
	if r.Protocol == Text && (slices.Contains(r.Speaks, MessagesWire) || slices.Contains(r.Speaks, ResponsesWire)) {
		// Text mode needs instructions that the gateway adds to the conversation, and a signature may
		// bind the conversation (AM-74).
		v.add("found text beside messages or responses, expected native: calls as text are for chat alone", childPath(path, "protocol")...)
	}
	oneOf(v, r.Tools, []ToolSource{FromRegistry, FromRequest}, childPath(path, "tools"))
	oneOf(v, r.Refusals, []RefusalForm{AsError, AsMessage}, childPath(path, "refusals"))
	messages, responses := childPath(path, "messages"), childPath(path, "responses")
	v.wireNames(r.Messages.ServerTools, childPath(messages, "server_tools"))
	v.wireNames(r.Messages.MCPServers, childPath(messages, "mcp_servers"))
	oneOf(v, r.Messages.UnknownBlocks, []Treatment{Refuse, Pass}, childPath(messages, "unknown_blocks"))
	v.wireNames(r.Responses.HostedTools, childPath(responses, "hosted_tools"))
	v.wireNames(r.Responses.MCPServers, childPath(responses, "mcp_servers"))
	oneOf(v, r.Responses.State, []State{RefuseState, BindState}, childPath(responses, "state"))
	oneOf(v, r.Responses.UnknownItems, []Treatment{Refuse, Pass}, childPath(responses, "unknown_items"))
}

func (v *validation) wireNames(names, path []string) {
	for i, name := range names {
		at := childPath(path, strconv.Itoa(i))
		switch {
		case name == "" || len(name) > MaxWireName || !ascii.IsVisible(name) || name == "*":
			v.add(fmt.Sprintf("found %q, expected one name of 1 to %d visible ASCII characters, not * for all", name, MaxWireName), at...)
		case slices.Contains(names[:i], name):
			v.add(fmt.Sprintf("found %q twice, expected each once", name), at...)
		}
	}
}

// clone returns a copy that shares no memory.
func (r Rules) clone() Rules {
	r.Modes, r.RequestMembers, r.Speaks = slices.Clone(r.Modes), slices.Clone(r.RequestMembers), slices.Clone(r.Speaks)
	r.Messages.ServerTools, r.Messages.MCPServers = slices.Clone(r.Messages.ServerTools), slices.Clone(r.Messages.MCPServers)
	r.Responses.HostedTools, r.Responses.MCPServers = slices.Clone(r.Responses.HostedTools), slices.Clone(r.Responses.MCPServers)
	return r
}
