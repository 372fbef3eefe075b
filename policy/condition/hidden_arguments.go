package condition

import (
	"context"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/callgate/callgate/internal/safe"
)

// Hidden evaluates the condition of a call whose arguments and whose past are not known. It answers met or
// not met where it is that whatever they are, unless reading them fails; known is
// false where it depends on them. An error means that it fails whatever they are.
func (c *Condition) Hidden(ctx context.Context, v *Variables) (met, known bool, err error) {
	defer safe.RecoverZero(&met, &err)
	out, _, err := c.program.ContextEval(ctx, &hidden{activation: newActivation(v), arguments: true})
	switch {
	case err != nil:
		return false, false, failure(err)
	case types.IsUnknown(out):
		return false, false, nil
	}
	answer, isBool := out.(types.Bool)
	if !isBool {
		return false, false, errNotBool
	}
	return bool(answer), true, nil
}

// TurnsOnPast reports whether a condition that is not met, or fails, could be met by a call that is the same but for the
// past of its thread and its caller.
func (c *Condition) TurnsOnPast(ctx context.Context, v *Variables) (turns bool) {
	var err error
	defer safe.RecoverZero(&turns, &err)
	reading := newActivation(v)
	out, _, err := c.program.ContextEval(ctx, &hidden{activation: reading})
	return err == nil && reading.state.failure == nil && types.IsUnknown(out)
}

// hidden are the variables of a call whose past is not known, nor its arguments if so set.
type hidden struct {
	*activation
	arguments bool
}

// ResolveName implements cel.Activation.
func (h *hidden) ResolveName(name string) (any, bool) {
	if name == varPast || name == varLabels || name == varArgs && h.arguments {
		return types.NewUnknown(1, types.NewAttributeTrail(name)), true
	}
	return h.activation.ResolveName(name)
}

// Parent implements cel.Activation; there is none.
func (h *hidden) Parent() interpreter.Activation { return nil }
