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
	ServerTools []string `key:"server_tools" of:"types of tools that the provider runs" list:"unique" pattern:"^([!-)+-~]|[!-~]{2,256})$"`
	// MCPServers are names of remote servers that the provider may call (AM-21).
	MCPServers []string `key:"mcp_servers" of:"names of servers that the provider may call" list:"unique" pattern:"^([!-)+-~]|[!-~]{2,256})$"`
	// Thread allows conversations that the provider keeps (AM-20).
	Thread bool `key:"thread" of:"whether the provider may keep conversations"`
	// Container allows a container that the provider keeps between requests (AM-20).
	Container bool `key:"container" of:"whether the provider may keep a container"`
	// Fallbacks allows answers of another model than the one asked (AM-22).
	Fallbacks bool `key:"fallbacks" of:"whether another model may answer"`
	// ProgrammaticCalls allows calls that a program at the provider makes (AM-32). They are
	// judged as others are.
	ProgrammaticCalls bool `key:"programmatic_calls" of:"whether a program at the provider may call tools"`
	// ToolDefinitions allows definitions of whole tools inside messages (AM-12), of tools that
	// the registry has, or that a request may bring.
	ToolDefinitions bool `key:"tool_definitions" of:"whether messages may define tools"`
	// UnknownBlocks is the treatment of content blocks of types that are not known (AM-31): Refuse or Pass.
	UnknownBlocks Treatment `key:"unknown_blocks" of:"what becomes of content blocks of unknown types" words:"refuse pass"`
	// Safeguards is the treatment of the member safeguards, by which a coding agent asks the provider
	// for a verdict on each call: Pass, Drop, Refuse or Auto.
	Safeguards Treatment `key:"safeguards" of:"what becomes of an agent's request for verdicts of the provider" words:"auto pass drop refuse"`
}

// ResponsesRules are switches of the wire of OpenAI Responses, as MessagesRules are.
type ResponsesRules struct {
	// HostedTools are types of tools that the provider runs, such as web_search (RS-11).
	HostedTools []string `key:"hosted_tools" of:"types of tools that the provider hosts" list:"unique" pattern:"^([!-)+-~]|[!-~]{2,256})$"`
	// MCPServers are labels of remote servers that the provider may call, each call approved by
	// the gateway (RS-37).
	MCPServers []string `key:"mcp_servers" of:"labels of servers that the provider may call" list:"unique" pattern:"^([!-)+-~]|[!-~]{2,256})$"`
	// State is the treatment of previous_response_id and conversation (RS-72).
	State State `key:"state" of:"what becomes of conversations that the provider keeps" words:"refuse bind"`
	// Background allows answers that are fetched later (RS-74).
	Background bool `key:"background" of:"whether an answer may be fetched later"`
	// Prompt allows templates that the provider keeps, which may bring tools (RS-10).
	Prompt bool `key:"prompt" of:"whether a request may name a stored template"`
	// Async allows calls whose result may come in a later turn (RS-32).
	Async bool `key:"async" of:"whether the result of a call may come in a later turn"`
	// ProgrammaticCalls allows calls that a program at the provider makes (RS-32). They are
	// judged as others are.
	ProgrammaticCalls bool `key:"programmatic_calls" of:"whether a program at the provider may call tools"`
	// AdditionalTools allows definitions of tools inside input (RS-13), of tools that the
	// registry has, or that a request may bring.
	AdditionalTools bool `key:"additional_tools" of:"whether input may define tools"`
	// UnknownItems is the treatment of items of types that are not known (RS-36): Refuse or Pass.
	UnknownItems Treatment `key:"unknown_items" of:"what becomes of items of unknown types" words:"refuse pass"`
}

// HostedTypes are the types of tools of the provider that OpenAI Responses has, without their dates, and
// compaction, which stands for the summaries of a conversation.
var HostedTypes = []string{"web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation", "tool_search",
	"compaction", "shell"}

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
	Auto   Treatment = "auto"  // by the provider, see Route.Safeguards
	Judge  Treatment = "judge" // by the schema of the request
)

// Buffer says how much of a stream is held back.
type Buffer string

// The buffers.
const (
	Parser Buffer = "parser" // only what may still become a fault
	Whole  Buffer = "whole"  // everything, until the answer was judged
)

// Rules say how completions of a model are treated. This package only validates them; the tags are
// those of keys of the upstreams file.
type Rules struct {
	// The APIs that the models are asked in.
	Speaks    []Wire         `key:"speaks" of:"protocols: the API that models are asked in" words:"chat messages responses" list:"unique filled"`
	Tools     ToolSource     `key:"tools" of:"where definitions of tools come from" words:"registry request"`
	Refusals  RefusalForm    `key:"refusals" of:"what an application gets when a completion stays refused" words:"error message"`
	Messages  MessagesRules  `key:"messages"`
	Responses ResponsesRules `key:"responses"`
	Protocol  Protocol       `key:"protocol" of:"how the model says its calls" words:"native text"`
	// The allowed ones; the first is the default.
	Modes       []Mode       `key:"modes" of:"modes: who runs a judged call" words:"enforce orchestrate" list:"unique filled"`
	CallFormat  Presentation `key:"call_format" of:"how calls of the text protocol are shown" words:"tool_calls content"`
	NativeProse Treatment    `key:"native_prose" of:"what becomes of text beside native calls" words:"pass drop refuse"`
	// StructuredOutput is what becomes of answers for which the request asks for JSON: Judge or Pass.
	StructuredOutput Treatment `key:"structured_output" of:"what becomes of answers that a request asks to be JSON" words:"judge pass"`
	Parallel         Treatment `key:"parallel" of:"what becomes of several calls in one turn" words:"pass refuse"`
	Reasoning        Treatment `key:"reasoning" of:"what becomes of reasoning" words:"pass drop"`
	Audio            Treatment `key:"audio" of:"what becomes of speech" words:"pass drop"` // its transcript is judged
	StreamBuffer     Buffer    `key:"stream_buffer" of:"what is held back of a stream" words:"parser whole"`
	// RequestMembers are members of a request that are forwarded in addition to those on
	// the built-in list.
	RequestMembers []string `key:"request_members" of:"members of a request that are sent on besides those that are known to be harmless" list:"unique" pattern:"^[!#-)+-~]{1,64}$"`
	MaxRepairs     int      `key:"max_repairs" of:"how many refused completions in a row go back to the model" range:"0..100"`
	// Of one orchestrated run, as the next two.
	MaxTurns    int           `key:"max_turns" of:"how many turns a run may have" range:"1..1000"`
	RunTimeout  time.Duration `key:"run_timeout" of:"how long a run may take"`
	TokenBudget int64         `key:"token_budget" of:"how many tokens a run may cost, 0 for no bound" range:"0..9007199254740992"`
	// DefaultOutputTokens is the bound of output tokens that a request without one gets where a
	// budget covers it; 0: such a request is refused.
	DefaultOutputTokens int64 `key:"default_output_tokens" of:"the bound of output that a request without one gets under a budget, 0 for none" range:"0..1099511627776"`
}
