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
	// Discover lists the tools of a server; their schemas have not been checked. The error
	// is for the operator; that of a list that cannot be read as a whole is a
	// *tool.InvalidListError.
	Discover(context.Context, tool.Server) ([]tool.Definition, error)
}
