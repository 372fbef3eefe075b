package engine

import (
	"context"

	"github.com/callgate/callgate/tool"
)

// Transport runs the tools of one type, and finds them on a server. It is safe
// for concurrent use.
type Transport interface {
	// Run runs a call whose bounds are set, within its context. Its error is a
	// *refusal.Error.
	Run(context.Context, tool.Call) (tool.Result, error)
	// Discover lists what a server has. Nothing of it was judged; what cannot be
	// read whole is an *InvalidListError. Errors are for the operator.
	Discover(context.Context, tool.Server) ([]tool.Definition, error)
}
