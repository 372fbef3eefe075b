package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
)

// argumentsPath is where the arguments stand in a completion.
const argumentsPath = "/tool/arguments"

// maxNear is how many near names a refusal offers.
const maxNear = 3

// validate is the stage schema: the tool is registered under that very name,
// and the arguments are what its closed schema asks for.
func validate(_ context.Context, c *call) error {
	tool, ok := c.state.Tools.Lookup(c.parsed.Name)
	if !ok {
		return unknownTool(c)
	}
	c.tool = tool
	faults := tool.Judge(c.args)
	if len(faults) == 0 {
		return nil
	}
	violations := locate(c, faults)
	refused := refusal.At(refusal.Schema, violations[0].Code, summary(violations))
	refused.Violations = violations
	return refused
}

// unknownTool refuses a name that is not registered. Near names are offered,
// never used.
func unknownTool(c *call) error {
	near := c.state.Tools.Near(c.parsed.Name, func(string) bool { return true }, maxNear)
	message := fmt.Sprintf("There is no tool %s. Use the exact name of a tool that you were given.", parser.Quote(c.parsed.Name))
	if len(near) > 0 {
		message = fmt.Sprintf("There is no tool %s. Did you mean %s? Send the call again with the exact name.", parser.Quote(c.parsed.Name), strings.Join(near, " or "))
	}
	refused := refusal.New(refusal.UnknownTool, message)
	refused.DidYouMean = near
	refused.Violations = []refusal.Violation{{Code: refusal.UnknownTool, Path: "/tool/name", Offset: c.parsed.NameOffset, Message: message}}
	return refused
}

// locate turns the faults of a schema into violations with pointers from the
// completion's root and byte offsets, sorted.
func locate(c *call, faults []registry.Violation) []refusal.Violation {
	places := make([]parser.Place, len(faults))
	for i, f := range faults {
		places[i] = parser.Place{Path: f.Path}
		switch f.At {
		case registry.Name:
			places[i].Part = parser.Name
		case registry.Parent:
			places[i].Part = parser.Enclosing
		}
	}
	offsets := parser.Offsets(c.parsed.Arguments, c.parsed.ArgumentsOffset, places)
	violations := make([]refusal.Violation, len(faults))
	for i, f := range faults {
		violations[i] = refusal.Violation{Code: f.Code, Path: pointer(f.Path), Offset: offsets[i], Message: f.Message}
	}
	refusal.Sort(violations)
	return violations
}

// pointer is the JSON Pointer of a place within the arguments.
func pointer(path []string) string {
	var b strings.Builder
	b.WriteString(argumentsPath)
	for _, token := range path {
		b.WriteByte('/')
		b.WriteString(refusal.EscapePointer(token))
	}
	return b.String()
}

// summary is the message of a refusal with several violations: the first, and
// how many more there are.
func summary(violations []refusal.Violation) string {
	message := violations[0].Message
	if more := len(violations) - 1; more == 1 {
		message += " One more fault is listed in violations."
	} else if more > 1 {
		message += fmt.Sprintf(" %d more faults are listed in violations.", more)
	}
	return message
}
