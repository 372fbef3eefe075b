package demo

import (
	"context"
	"testing"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// TestUnencodableResult: a built-in tool whose result cannot be encoded is a fault of
// the engine.
func TestUnencodableResult(t *testing.T) {
	tools := Tools{"unencodable": func(context.Context, tool.Call, arguments) (any, *refusal.Error) { return func() {}, nil }}
	_, refused := tools.Run(t.Context(), tool.Call{Tool: "unencodable", Arguments: []byte(`{}`), Run: tool.Run{MaxResultBytes: 1 << 20}})
	if refused == nil || refused.Code != refusal.Internal || refused.Stage != refusal.Execute {
		t.Errorf("got %v", refused)
	}
}
