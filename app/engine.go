package app

import (
	"context"

	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/engine/mcp"
	"github.com/callgate/callgate/engine/outbound"
	"github.com/callgate/callgate/tool"
)

// Engine is the engine with the transport for tools of MCP servers.
type Engine struct {
	*engine.Engine
	outbound *outbound.Client
	mcp      *mcp.Client
}

// NewEngine returns an engine. changed is called for a server that reports changed tools;
// it may be nil.
func NewEngine(version string, options engine.Options, changed func(server string)) *Engine {
	options.ReadSecret = func(_ context.Context, place string) (string, error) { return secret.Resolve(place) }
	t := &Engine{outbound: outbound.New(options.Outbound())}
	t.mcp = mcp.New(mcp.Options{Version: version, Outbound: t.outbound, ToolsChanged: changed})
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
}
