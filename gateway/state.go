package gateway

import (
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/registry"
)

// State is what one configuration gives to the kernel. It is immutable; a
// judgement pins the one that it started with.
type State struct {
	Output parser.Options
	Tools  *registry.Registry
	Digest string // of the configuration
}
