package main

import (
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/engine"
)

// tooling is the engine, with the transports that run what it does not run itself.
type tooling struct {
	*engine.Engine
}

// newTooling returns an engine. changed is told of servers that say that their
// tools have changed; it may be nil.
func newTooling(options engine.Options, changed func(server string)) *tooling {
	options.Secret = configs.ReadSecret
	return &tooling{engine.New(options)}
}

// Close gives up its connections.
func (t *tooling) Close() { t.Engine.Close() }
