package engine

import (
	"context"
	"fmt"
	"github.com/callgate/callgate/internal/safe"
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

// Discover lists what a server has, and its error is for the operator: of a list
// that cannot be used an *InvalidListError. It returns within the server's timeout.
func (e *Engine) Discover(ctx context.Context, s tool.Server) (found []tool.Definition, err error) {
	defer func() {
		if p := recover(); p != nil {
			found, err = nil, fmt.Errorf("%s: %w", s.Name, safe.PanicError(p))
		}
	}()
	t := e.transports[s.Type]
	if t == nil {
		return nil, fmt.Errorf("%s is of the type %s, which this engine does not know", s.Name, s.Type)
	}
	if s.Timeout <= 0 {
		s.Timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	return t.Discover(ctx, s)
}
