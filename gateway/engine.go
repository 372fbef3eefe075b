package gateway

import (
	"context"

	"github.com/callgate/callgate/tool"
)

// Engine runs tools. Run is called once for a call that passed every check and
// whose decision is durable. Its error is a *refusal.Error of the stage execute;
// anything else is an internal fault. It must be safe for concurrent use.
type Engine interface {
	Run(context.Context, tool.Call) (tool.Result, error)
}
