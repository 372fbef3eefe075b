// Package violations judges the arguments of a call, and an answer that is asked to be JSON: it lists what is wrong
// with them, each with its path and its place in the raw completion, and refuses them for it.
package violations

import (
	"errors"
	"fmt"
	"strings"

	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/registry/schema"
)

// argumentsPath is the path of the arguments in a completion.
const argumentsPath = "/tool/arguments"

// Max bounds how many violations of one call are listed.
const Max = 100

// Source is where arguments stand in the completion.
type Source struct {
	Arguments []byte
	Offset    int  // of their first byte
	Nowhere   bool // they stand in none: violations have no offset then
}

// offsets sets where violations stand in the raw completion.
func (s *Source) offsets(violations []refusal.Violation, positions []parser.Position) {
	if s.Nowhere {
		for i := range violations {
			violations[i].Offset = -1
		}
		return
	}
	for i, at := range parser.Offsets(s.Arguments, s.Offset, positions) {
		violations[i].Offset = at
	}
}

// pointer is the JSON Pointer of a place within the arguments.
func pointer(path []string) string {
	return argumentsPath + refusal.Pointer(path...)
}

// inOutput is the code of a fault in an answer that is asked to be JSON: it has members where a call has arguments.
func inOutput(code refusal.Code) refusal.Code {
	switch code {
	case refusal.MissingArgument:
		return refusal.MissingField
	case refusal.UnexpectedArgument:
		return refusal.UnexpectedField
	}
	return code
}

// boundaryMessage names the argument that is outside, and the boundary it must stay within.
func boundaryMessage(path []string, outside *boundary.OutsideError) string {
	return fmt.Sprintf("Argument %s is outside this project. %s", parser.Quote(strings.Join(path, ".")), outside.Reason)
}

// OfArguments judges arguments by their tool, whoever asks: a call, a stored call, a test of the policy
// or an explanation. It refuses them, or returns nil. Name is the tool's as the model wrote it; decode
// is only called where the bytes do not say enough.
func OfArguments(tool *registry.Entry, name string, of Source, decode func() map[string]any) error {
	return ofSchema(tool.Judge(name, of.Arguments, decode), of)
}

// ReadArguments reads arguments that stand in no completion, and judges them unless the tool is nil.
// The error is a *refusal.Error where they are refused.
func ReadArguments(tool *registry.Entry, arguments []byte, maxDepth int) (map[string]any, error) {
	value, err := parser.ReadValue(arguments, maxDepth)
	if err != nil {
		return nil, err
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		return nil, errors.New("expected a JSON object")
	}
	if tool == nil {
		return object, nil
	}
	decode := func() map[string]any { return object }
	return object, OfArguments(tool, tool.Name(), Source{Arguments: arguments, Nowhere: true}, decode)
}

// OfOutput judges an answer that is asked to be JSON by the schema of its request. Offset is where its value, which
// is strict JSON, begins in the completion. It refuses the answer, or returns nil.
func OfOutput(by *schema.Schema, value []byte, offset int) error {
	faults := by.JudgeAnswer(value, func() any { return parser.Decode(value) })
	err := ofFaults(faults, Source{Arguments: value, Offset: offset}, func(f *schema.Violation) refusal.Violation {
		return refusal.Violation{Code: inOutput(f.Code), Path: refusal.Pointer(f.Path...), Message: f.Message}
	})
	if err != nil {
		err.Code = refusal.InvalidOutput
		return err
	}
	return nil
}

// ofSchema refuses arguments for their faults by the schema of their tool; nil: there are none.
func ofSchema(faults []schema.Violation, of Source) error {
	err := ofFaults(faults, of, func(f *schema.Violation) refusal.Violation {
		return refusal.Violation{Code: f.Code, Path: pointer(f.Path), Message: f.Message}
	})
	if err != nil {
		return err
	}
	return nil
}

// ofFaults refuses a value for its faults by a schema, by the code of the first one as it is to be listed.
func ofFaults(faults []schema.Violation, of Source, listed func(*schema.Violation) refusal.Violation) *refusal.Error {
	if len(faults) == 0 {
		return nil
	}
	positions := make([]parser.Position, len(faults))
	violations := make([]refusal.Violation, len(faults))
	for i := range faults {
		f := &faults[i]
		positions[i] = parser.Position{Path: f.Path, Part: positionParts[f.At]}
		violations[i] = listed(f)
	}
	of.offsets(violations, positions)
	refusal.Sort(violations)
	refused := refusal.At(refusal.Schema, violations[0].Code, refusal.Summary(violations))
	refused.Violations = violations
	for _, f := range faults {
		if f.Cause != nil {
			return refused.WithCause(f.Cause)
		}
	}
	return refused
}

// positionParts says which bytes a fault of the schema points at.
var positionParts = map[schema.Position]parser.PositionPart{
	schema.Value:  parser.Value,
	schema.Name:   parser.Name,
	schema.Parent: parser.Enclosing,
}

// OfBoundary refuses arguments with values outside the bounds of a project, and answers with folders
// outside them; nil: there are none.
func OfBoundary(values []schema.BoundaryValue, answers *elicit.Answers, bounds boundary.Lists, of Source) error {
	var violations []refusal.Violation
	var positions []parser.Position
	for _, v := range values {
		if len(violations) == Max {
			break
		}
		err := bounds.Within(v.Kind, v.Value)
		if err == nil {
			continue
		}
		var outside *boundary.OutsideError
		if !errors.As(err, &outside) {
			return err
		}
		positions = append(positions, parser.Position{Path: v.Path})
		violations = append(violations, refusal.Violation{Code: refusal.BoundaryViolation, Path: pointer(v.Path),
			Message: boundaryMessage(v.Path, outside)})
	}
	if len(violations) > 0 {
		of.offsets(violations, positions)
	}
	outsiders, err := answers.Outside(bounds, Max-len(violations))
	if err != nil {
		return err
	}
	violations = append(violations, outsiders...)
	if len(violations) == 0 {
		return nil
	}
	refusal.Sort(violations)
	refused := refusal.New(refusal.BoundaryViolation, refusal.Summary(violations))
	refused.Violations = violations
	return refused
}
