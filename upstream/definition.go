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
	// Credential is the one that the provider asks for; nil is none. Its secrets are read for each attempt.
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

const defaultMaxBody = 16 << 20

// Defaults returns a definition without a name, a base URL and models.
func Defaults() Definition {
	return Definition{
		Rules: Rules{
			Speaks:       []Wire{ChatWire},
			Tools:        FromRegistry,
			Refusals:     AsError,
			Messages:     MessagesRules{UnknownBlocks: Refuse, Safeguards: Auto},
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
