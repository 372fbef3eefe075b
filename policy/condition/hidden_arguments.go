package condition

import (
	"context"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/callgate/callgate/internal/safe"
)

// Hidden evaluates the condition of a call whose arguments are not known. It answers met or
// not met where it is that whatever the arguments are, unless reading them fails; known is
// false where it depends on them. An error means that it fails whatever they are.
func (c *Condition) Hidden(ctx context.Context, v *Variables) (met, known bool, err error) {
	defer safe.RecoverZero(&met, &err)
	out, _, err := c.program.ContextEval(ctx, &hiddenArguments{activation{variables: v}})
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

// hiddenArguments are the variables of a call whose arguments are not known.
type hiddenArguments struct{ activation }

// ResolveName implements cel.Activation.
func (h *hiddenArguments) ResolveName(name string) (any, bool) {
	if name == varArgs {
		return types.NewUnknown(1, types.NewAttributeTrail(varArgs)), true
	}
	return h.activation.ResolveName(name)
}

// Parent implements cel.Activation; there is none.
func (h *hiddenArguments) Parent() interpreter.Activation { return nil }
