package upstream

import (
	"time"

	"github.com/callgate/callgate/tool"
)

// Definition is one upstream as the operator configured it. Defaults returns the values
// of the optional fields.
type Definition struct {
	Name    string
	BaseURL string // ends before /chat/completions, /messages and /responses
	// Credential is what the provider asks for; nil is nothing. Its secrets are read for each attempt.
	Credential *tool.Credential
	// InsecureHTTP allows http to a host that is not loopback.
	InsecureHTTP bool
	Models       []Model
	Rules        Rules
	Timeouts     Timeouts
	Retries      int // after the first attempt
	MaxBody      int // bytes of a completion that is not streamed, and of one put together from a stream
	MaxEvent     int // bytes of one line, and of one event, of a stream
	MaxStream    int // bytes of a stream
	MaxEvents    int // events of a stream
}

// Model is a model of an upstream, or all models with a common prefix.
type Model struct {
	ID            string // in the application's request: a name, prefix* or *
	UpstreamModel string // sent to the provider; empty is the application's name
	Rules         *Rules // nil: those of the upstream
}

// Timeouts bound one exchange.
type Timeouts struct {
	Connect  time.Duration // name, TCP and TLS
	Response time.Duration // from the connection to the first byte of the answer's body
	Idle     time.Duration // between two reads of an answer
	Total    time.Duration // from first to last, attempts and pauses included
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

const defaultMaxBody = 16 << 20

// Defaults returns a definition without a name, a base URL and models.
func Defaults() Definition {
	return Definition{
		Rules: Rules{
			Speaks:       []Wire{ChatWire},
			Tools:        FromRegistry,
			Refusals:     AsError,
			Messages:     MessagesRules{UnknownBlocks: Refuse},
			Responses:    ResponsesRules{State: RefuseState, UnknownItems: Refuse},
			Protocol:     Native,
			Modes:        []Mode{Enforce, Orchestrate},
			CallFormat:   AsToolCalls,
			NativeProse:  Pass,
			Parallel:     Pass,
			Reasoning:    Pass,
			Audio:        Pass,
			StreamBuffer: Parser,
			MaxRepairs:   2,
			MaxTurns:     8,
			RunTimeout:   5 * time.Minute,
		},
		Timeouts:  Timeouts{Connect: 5 * time.Second, Response: time.Minute, Idle: time.Minute, Total: 10 * time.Minute},
		Retries:   2,
		MaxBody:   defaultMaxBody,
		MaxEvent:  1 << 20,
		MaxStream: 64 << 20,
		MaxEvents: 1 << 20,
	}
}
