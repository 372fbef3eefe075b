package upstream

import (
	"slices"
	"time"
)

// MessagesRules are switches of the wire of Anthropic Messages. Parts that they allow pass the
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
	// Safeguards is the treatment of the member safeguards, by which a coding agent asks the provider
	// for a verdict on each call: Pass, Drop, Refuse or Auto.
	Safeguards Treatment
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

// HostedTypes are the types of tools of the provider that OpenAI Responses has, without their dates, and
// compaction, which stands for the summaries of a conversation.
var HostedTypes = []string{"web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation", "tool_search", "compaction", "shell"}

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

// clone returns a copy that shares no memory.
func (r Rules) clone() Rules {
	r.Modes, r.RequestMembers, r.Speaks = slices.Clone(r.Modes), slices.Clone(r.RequestMembers), slices.Clone(r.Speaks)
	r.Messages.ServerTools, r.Messages.MCPServers = slices.Clone(r.Messages.ServerTools), slices.Clone(r.Messages.MCPServers)
	r.Responses.HostedTools, r.Responses.MCPServers = slices.Clone(r.Responses.HostedTools), slices.Clone(r.Responses.MCPServers)
	return r
}

// Protocol is how a model writes calls.
type Protocol string

// The protocols.
const (
	Native Protocol = "native" // as tool_calls
	Text   Protocol = "text"   // as the whole content, in Callgate's own language
)

// Mode selects the application or Callgate to run judged calls.
type Mode string

// The modes.
const (
	Enforce     Mode = "enforce"     // the application
	Orchestrate Mode = "orchestrate" // Callgate
)

// Presentation is how a call is shown to the application.
type Presentation string

// The presentations.
const (
	AsToolCalls Presentation = "tool_calls"
	AsContent   Presentation = "content"
)

// Treatment sets the handling of the parts of an answer beside its calls.
type Treatment string

// The treatments.
const (
	Pass   Treatment = "pass"
	Drop   Treatment = "drop"
	Refuse Treatment = "refuse"
	Auto   Treatment = "auto" // by the provider, see Route.Safeguards
)

// Buffer says how much of a stream is held back.
type Buffer string

// The buffers.
const (
	Parser Buffer = "parser" // only what may still become a fault
	Whole  Buffer = "whole"  // everything, until the answer was judged
)

// Rules say how completions of a model are treated. This package only validates them.
type Rules struct {
	Speaks       []Wire // the APIs that the models are asked in
	Protocol     Protocol
	Modes        []Mode // allowed ones; the first is the default
	CallFormat   Presentation
	NativeProse  Treatment // text beside native calls: pass, drop or refuse
	Parallel     Treatment // several calls in one turn: pass or refuse
	Reasoning    Treatment // reasoning members: pass or drop
	Audio        Treatment // speech, whose transcript is judged: pass or drop
	StreamBuffer Buffer
	// RequestMembers are members of a request that are forwarded in addition to those on
	// the built-in list.
	RequestMembers []string
	MaxRepairs     int           // refused completions in a row that go back to the model
	MaxTurns       int           // turns of one orchestrated run
	RunTimeout     time.Duration // of one orchestrated run
	TokenBudget    int64         // of one orchestrated run; 0 is without bound
	// DefaultOutputTokens is the bound of output tokens that a request without one gets where a
	// budget covers it; 0: such a request is refused.
	DefaultOutputTokens int64
	Tools               ToolSource
	Refusals            RefusalForm
	Messages            MessagesRules
	Responses           ResponsesRules
}
