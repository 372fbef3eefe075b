package condition

import (
	"context"
	"errors"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/safe"
)

const (
	// maxCost bounds one evaluation, in CEL's cost units (about one for each
	// operation and each ten characters), and is also the most that a condition
	// may cost in the worst case foreseen at load.
	maxCost = 1_000_000
	// interruptEvery is how many steps of a loop pass between looks at the
	// caller's context.
	interruptEvery = 64
	// maxPattern bounds a compiled regular expression, in instructions; the
	// syntax is RE2's, so matching is linear.
	maxPattern = 1_000
	// maxExpression is the longest condition, in characters.
	maxExpression = 16 << 10
)

// The variables of a condition.
const (
	varArgs      = "args"
	varAgent     = "agent"
	varWorkspace = "workspace"
	varProject   = "project"
	varTool      = "tool"
)

// cause is why a condition failed, for operators: it never holds a value of the call.
type cause string

func (f cause) Error() string { return string(f) }

const (
	errAbsent      cause = "it read a member or an element that is not there"
	errMismatch    cause = "an operation met a value of a type that it does not take"
	errCost        cause = "it cost more than one evaluation may"
	errInterrupted cause = "it was interrupted"
	errArithmetic  cause = "arithmetic went out of range"
	errNotBool     cause = "it did not yield a bool"
	errEvaluation  cause = "it could not be evaluated"
	errKey         cause = "it gave a value for a key of the past that is no text, number or boolean"
)

// baseEnv is CEL as conditions know it, without the type of args.
func baseEnv() (*cel.Env, error) {
	return cel.NewEnv(append(pastOptions(),
		cel.CrossTypeNumericComparisons(true),
		cel.EnableIdentifierEscapeSyntax(),
		cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.RegexProgramSizeLimit(maxPattern),
		cel.CustomTypeAdapter(adapter{types.DefaultTypeAdapter}),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
		cel.Variable(varAgent, cel.StringType),
		cel.Variable(varWorkspace, cel.StringType),
		cel.Variable(varProject, cel.StringType),
		cel.Variable(varTool, cel.StringType),
	)...)
}

// Condition is one compiled expression, shared by the rows that bear it. Safe
// for concurrent use.
type Condition struct {
	program cel.Program
	reads   Reads
}

// Reads is what the condition reads of the past. Its list is shared and must not be changed.
func (c *Condition) Reads() Reads { return c.reads }

// Variables are the values that a condition can read. Arguments have passed the schema:
// numbers as encoding/json.Number, objects as map[string]any, arrays as []any; they
// are read during Evaluate, never kept. Past is the past as this call may ask it; a condition that
// asks fails where it is nil.
type Variables struct {
	Agent, Workspace, Project, Tool string
	Arguments                       map[string]any
	Past                            *history.View
}

// activation resolves the variables of one evaluation.
type activation struct {
	state     evalState
	args      jsonObject
	past      past
	variables *Variables
}

func newActivation(v *Variables) *activation {
	a := &activation{variables: v}
	a.args = jsonObject{members: v.Arguments, state: &a.state}
	a.past = past{view: v.Past, state: &a.state}
	return a
}

// ResolveName implements cel.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case varArgs:
		return &a.args, true
	case varAgent:
		return types.String(a.variables.Agent), true
	case varWorkspace:
		return types.String(a.variables.Workspace), true
	case varProject:
		return types.String(a.variables.Project), true
	case varTool:
		return types.String(a.variables.Tool), true
	case varPast:
		return &a.past, true
	case varLabels:
		return a.past.labels(), true
	}
	return nil, false
}

// Parent implements cel.Activation; there is none.
func (a *activation) Parent() interpreter.Activation { return nil }

// Evaluate evaluates the condition. An error means that it failed.
func (c *Condition) Evaluate(ctx context.Context, v *Variables) (met bool, err error) {
	defer safe.RecoverZero(&met, &err)
	if ctx.Err() != nil {
		return false, errInterrupted
	}
	reading := newActivation(v)
	out, _, err := c.program.ContextEval(ctx, reading)
	if failure := reading.state.failure; failure != nil {
		return false, failure
	}
	if err != nil {
		return false, failure(err)
	}
	answer, isBool := out.(types.Bool)
	if !isBool {
		return false, errNotBool
	}
	return bool(answer), nil
}

// failure names what went wrong without repeating it: CEL's own texts quote
// keys, times and patterns that the model wrote.
func failure(err error) error {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return errCost
	}
	if errors.Is(err, interpreter.InterruptError{}) {
		return errInterrupted
	}
	text := err.Error()
	for _, known := range []struct {
		part string
		err  error
	}{
		{"no such key", errAbsent},
		{"index out of range", errAbsent},
		{"index out of bounds", errAbsent},
		{"no such overload", errMismatch},
		{"type conversion error", errMismatch},
		{"overflow", errArithmetic},
		{"divide by zero", errArithmetic},
		{"division by zero", errArithmetic},
		{"modulus by zero", errArithmetic},
	} {
		if strings.Contains(text, known.part) {
			return known.err
		}
	}
	return errEvaluation
}
