package acp

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/acp/wire"
)

// ProxyOptions are the settings of a proxy between a client and another agent than this gateway. The proxy
// itself is a package that a program may be built without.
type ProxyOptions struct {
	Executor *calls.Executor
	// Request identifies the caller; its inputs are ignored.
	Request gateway.Request
	Log     *slog.Logger
	// MCPServer replaces the MCP servers of every session, if the agent may use a tool over MCP.
	MCPServer wire.MCPServer
	ProxySettings
	// Grace, StopWithin and OpenWithin are for tests; 0 is the default.
	Grace, StopWithin, OpenWithin time.Duration
}

// ProxySettings are the choices of an operator.
type ProxySettings struct {
	Unjudged Reaction
	// AllowModes are the ids of the modes that may be chosen; empty: all that ask somebody.
	AllowModes []string
	// WithoutDelegation lets sessions begin although the editor runs neither files nor terminals.
	WithoutDelegation bool
}

// Reaction says what follows when a tool call has run unjudged. It is always recorded.
type Reaction string

// The reactions.
const (
	Note   Reaction = "note"   // nothing else
	Cancel Reaction = "cancel" // the turn is cancelled, and the agent ended unless it obeys
	Kill   Reaction = "kill"   // the agent is ended
)

// UnjudgedTool is the name that the audit log has for tool calls that ran unjudged. No tool has it.
const UnjudgedTool = "acp.unjudged"

// Agent is the program of the other agent.
type Agent struct {
	Out io.Reader // its standard output
	In  io.Writer // its standard input
	// Kill ends it with everything that it has started, and returns when that is done.
	Kill func()
}

// The errors of a proxy where the client has not left.
var (
	ErrAgentEnded = errors.New("the agent has ended")
	// ErrUnjudged is the end of an agent of which a tool call ran unjudged.
	ErrUnjudged = errors.New("the agent was ended: a tool call ran that nobody had judged")
)
