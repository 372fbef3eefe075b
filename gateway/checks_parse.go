package gateway

import (
	"context"

	"github.com/callgate/callgate/parser"
)

// readInput is the first step of the stage parse: the completion is text, or an
// object of the call language, or refused.
func readInput(_ context.Context, c *Call) error {
	switch n := c.input.Native; {
	case c.parsed.reread != nil:
		c.parsed.Result = *c.parsed.reread
	case c.parsed.stream != nil:
		c.parsed.Result = c.parsed.stream.Close(c.input.Truncated)
	case n != nil:
		c.parsed.Result = parser.ParseArguments(n.Arguments, c.input.Truncated, c.output())
		c.parsed.Name, c.parsed.HasName, c.parsed.NameOffset = n.Name, true, -1
	case c.input.Output != nil:
		c.parsed.Result = parser.ParseStructured(c.input.Completion, c.input.Truncated, c.input.Partial, c.output())
	default:
		c.parsed.Result = parser.Parse(c.input.Completion, c.input.Truncated, c.output())
	}
	if refused := c.refusedByConstraints(); refused != nil {
		return refused
	}
	if c.parsed.Refusal != nil && !c.parsed.Object {
		return c.parsed.Refusal
	}
	return nil
}

// output are the bounds of the completion, and which language it is in.
func (c *Call) output() parser.Options {
	o := c.config.Output
	o.TextOnly = c.input.TextOnly
	return o
}

// checkEnvelope is the second step: the object is a call and nothing else.
func checkEnvelope(_ context.Context, c *Call) error {
	if c.parsed.Refusal != nil {
		return c.parsed.Refusal
	}
	return nil
}
