package gateway

import (
	"fmt"
	"strings"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/refusal"
)

// argumentsPath is the path of the arguments in a completion.
const argumentsPath = "/tool/arguments"

// maxViolations bounds how many violations of one call are listed.
const maxViolations = 100

// offsets finds the places of violations in the raw completion. A native call has none, and so
// have arguments that hooks have redacted.
func (c *Call) offsets(violations []refusal.Violation, places []parser.Place) {
	if c.input.Native != nil || c.written != nil {
		for i := range violations {
			violations[i].Offset = -1
		}
		return
	}
	for i, at := range parser.Offsets(c.parsed.Arguments, c.parsed.ArgumentsOffset, places) {
		violations[i].Offset = at
	}
}

// pointer is the JSON Pointer of a place within the arguments.
func pointer(path []string) string {
	return argumentsPath + refusal.Pointer(path...)
}

// boundaryMessage names the argument that is outside, and the boundary it must stay within.
func boundaryMessage(path []string, outside *boundary.OutsideError) string {
	return fmt.Sprintf("Argument %s is outside this project. %s", parser.Quote(strings.Join(path, ".")), outside.Reason)
}
