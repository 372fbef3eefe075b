package app

import (
	"log/slog"

	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/engine/mcp"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/tool"
)

// Engine is the engine with the transport for tools of MCP servers.
type Engine struct {
	*engine.Engine
	outbound *outbound.Client
	mcp      *mcp.Client
	secrets  *secret.Store
}

// NewEngine returns an engine. changed is called for a server whose tools may have changed, as mcp.Options says;
// it may be nil, and so may logger, which is told of programs that end. Without ReadSecret in the options, the engine
// reads secrets by a store of its own.
func NewEngine(version string, options engine.Options, changed func(server string, announced bool), logger *slog.Logger) *Engine {
	t := &Engine{}
	if options.ReadSecret == nil {
		t.secrets = secret.NewStore(options.Now, nil)
		options.ReadSecret = t.secrets.Resolve
	}
	t.outbound = outbound.New(options.Outbound())
	t.mcp = mcp.New(mcp.Options{Version: version, Outbound: t.outbound, ToolsChanged: changed, Logger: logger})
	options.Transports = map[string]engine.Transport{"mcp": t.mcp}
	t.Engine = engine.New(options)
	return t
}

// Keep ends the programs and sessions of all other servers, each when the last call that
// uses it has ended. It does not wait.
func (t *Engine) Keep(servers []tool.Server) { t.mcp.RetainOnly(servers) }

// OpenBreakers returns the number of tools whose breaker is not closed.
func (t *Engine) OpenBreakers() int { return t.Engine.OpenBreakers() + t.outbound.OpenBreakers() }

// FailingBreakers lists the breakers of tools that are open or count failures.
func (t *Engine) FailingBreakers() []outbound.BreakerState {
	return append(t.Engine.FailingBreakers(), t.outbound.FailingBreakers()...)
}

// Close closes its connections, and ends the programs that it has started.
func (t *Engine) Close() {
	t.mcp.Close()
	t.Engine.Close()
	t.outbound.Close()
	if t.secrets != nil {
		t.secrets.Close()
	}
}
