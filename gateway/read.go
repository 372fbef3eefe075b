package gateway

import (
	"context"

	"github.com/callgate/callgate/parser"
)

// read is the stage parse: the completion is text, a call, or refused.
func read(_ context.Context, c *call) error {
	c.parsed = parser.Parse(c.request.Input.Completion, c.request.Input.Truncated, c.state.Output)
	if c.parsed.Refusal != nil {
		return c.parsed.Refusal
	}
	if c.parsed.Kind == parser.Call {
		c.args = parser.DecodeObject(c.parsed.Arguments)
	}
	return nil
}
