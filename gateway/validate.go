package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
)

// maxNear is how many near names a refusal offers.
const maxNear = 3

// find is the first step of the stage schema: the tool is registered under that
// very name. Near names that this agent may use are offered, never used.
func find(_ context.Context, c *call) error {
	tool, ok := c.state.Tools.Lookup(c.parsed.Name)
	if ok {
		c.tool = tool
		return nil
	}
	near := c.state.Tools.Near(c.parsed.Name, func(name string) bool {
		ever, err := c.reaches(name)
		return ever && err == nil
	}, maxNear)
	message := fmt.Sprintf("There is no tool %s. Use the exact name of a tool that you were given.", parser.Quote(c.parsed.Name))
	if len(near) > 0 {
		message = fmt.Sprintf("There is no tool %s. Did you mean %s? Send the call again with the exact name.", parser.Quote(c.parsed.Name), strings.Join(near, " or "))
	}
	refused := refusal.New(refusal.UnknownTool, message)
	refused.DidYouMean = near
	refused.Violations = []refusal.Violation{{Code: refusal.UnknownTool, Path: "/tool/name", Offset: c.parsed.NameOffset, Message: message}}
	return refused
}

// validate is the second step: the arguments are what the tool's closed schema
// asks for.
func validate(_ context.Context, c *call) error {
	faults := c.tool.Judge(c.args)
	if len(faults) == 0 {
		return nil
	}
	places := make([]parser.Place, len(faults))
	violations := make([]refusal.Violation, len(faults))
	for i, f := range faults {
		places[i] = parser.Place{Path: f.Path, Part: parts[f.At]}
		violations[i] = refusal.Violation{Code: f.Code, Path: pointer(f.Path), Message: f.Message}
	}
	c.offsets(violations, places)
	refusal.Sort(violations)
	refused := refusal.At(refusal.Schema, violations[0].Code, summary(violations))
	refused.Violations = violations
	for _, f := range faults {
		if f.Cause != nil {
			return refused.WithCause(f.Cause)
		}
	}
	return refused
}

// parts says which bytes a fault of the schema points at.
var parts = map[registry.Place]parser.Part{
	registry.Value:  parser.Value,
	registry.Name:   parser.Name,
	registry.Parent: parser.Enclosing,
}
