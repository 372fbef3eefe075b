package upstream

import (
	"time"

	"github.com/callgate/callgate/tool"
)

// Definition is one upstream as the operator configured it. Defaults returns the values
// of the optional fields.
type Definition struct {
	Name string `key:"name" of:"a name" pattern:"^[A-Za-z0-9._-]{1,64}$"`
	// BaseURL ends before /chat/completions, /messages and /responses.
	BaseURL string `key:"base_url" of:"the URL before /chat/completions, /messages and /responses" pattern:"^https?://[^/?#@ ][^?#@ ]*$"`
	// InsecureHTTP allows http to a host that is not loopback.
	InsecureHTTP bool `key:"insecure_http" of:"whether plain HTTP may leave this host"`
	// Credential is the one that the provider asks for; nil is none. Its secrets are read for each attempt.
	Credential *tool.Credential `key:"credential"`
	Models     []Model          `key:"models"`
	Timeouts   Timeouts         `key:"timeouts"`
	Retries    int              `key:"retries" of:"how often a provider is asked again" range:"0..10"` // after the first attempt
	// MaxBody bounds a completion that is not streamed, and one put together from a stream.
	MaxBody int `key:"max_body" of:"the longest completion in bytes" range:"1024..1073741824"`
	// MaxEvent bounds one line, and one event, of a stream.
	MaxEvent  int   `key:"max_event" of:"the longest event of a stream in bytes" range:"1024..1073741824"`
	MaxStream int   `key:"max_stream" of:"the longest stream in bytes" range:"1024..1073741824"`
	MaxEvents int   `key:"max_events" of:"how many events a stream may have" range:"1..1073741824"`
	Rules     Rules `key:""`
}

// Model is a model of an upstream, or all models with a common prefix.
type Model struct {
	// ID is in the application's request: a name, prefix* or *.
	ID string `key:"id" of:"what the application says" pattern:"^[^*]+\\*?$|^\\*$"`
	// UpstreamModel is sent to the provider; empty is the application's name.
	UpstreamModel string `key:"upstream_model" of:"the model's name at the provider" pattern:"^[^*]+$"`
	Rules         *Rules // nil: those of the upstream
}

// Timeouts bound one exchange.
type Timeouts struct {
	Connect  time.Duration `key:"connect" of:"how long connecting may take"`                    // name, TCP and TLS
	Response time.Duration `key:"response" of:"how long the first byte of a response may take"` // from the connection
	Idle     time.Duration `key:"idle" of:"how long an answer may stall"`                       // between two reads
	Total    time.Duration `key:"total" of:"how long all may take, other attempts included"`    // pauses included
}

const defaultMaxBody = 16 << 20

// Defaults returns a definition without a name, a base URL and models.
func Defaults() Definition {
	return Definition{
		Rules: Rules{
			Speaks:           []Wire{ChatWire},
			Tools:            FromRegistry,
			Refusals:         AsError,
			Messages:         MessagesRules{UnknownBlocks: Refuse, Safeguards: Auto},
			Responses:        ResponsesRules{State: RefuseState, UnknownItems: Refuse},
			Protocol:         Native,
			Modes:            []Mode{Enforce, Orchestrate},
			CallFormat:       AsToolCalls,
			NativeProse:      Pass,
			StructuredOutput: Judge,
			Parallel:         Pass,
			Reasoning:        Pass,
			Audio:            Pass,
			StreamBuffer:     Parser,
			MaxRepairs:       2,
			MaxTurns:         8,
			RunTimeout:       5 * time.Minute,
		},
		Timeouts:  Timeouts{Connect: 5 * time.Second, Response: time.Minute, Idle: time.Minute, Total: 10 * time.Minute},
		Retries:   2,
		MaxBody:   defaultMaxBody,
		MaxEvent:  1 << 20,
		MaxStream: 64 << 20,
		MaxEvents: 1 << 20,
	}
}
