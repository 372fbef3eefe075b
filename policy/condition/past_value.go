package condition

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/callgate/callgate/history"
)

// pastOptions declare what an expression that asks the past is compiled to. The functions take the past, the ID of a
// term, and the values of its keys.
func pastOptions() []cel.EnvOption {
	function := func(name string, result *cel.Type, value func(int64) (ref.Val, bool)) cel.EnvOption {
		return cel.Function(name, cel.Overload(name, []*cel.Type{cel.DynType, cel.UintType, cel.ListType(cel.DynType)}, result,
			cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				past, id, keys := args[0].(*past), args[1].(types.Uint), args[2].(traits.Lister)
				return past.read(history.ID(id), keys, value)
			})))
	}
	return []cel.EnvOption{
		cel.Variable(varPast, cel.DynType),
		cel.Variable(varLabels, cel.ListType(cel.StringType)),
		function(callCount, cel.IntType, func(n int64) (ref.Val, bool) { return types.Int(n), true }),
		function(callSum, cel.DynType, sumValue),
	}
}

// past is the past of one call as the functions of an expression take it.
type past struct {
	view  *history.View
	state *evalState
}

var _ ref.Val = (*past)(nil)

// labels are those of the thread.
func (p *past) labels() ref.Val {
	labels, err := p.view.Labels()
	if err != nil {
		return p.state.fail(err)
	}
	return types.NewStringList(types.DefaultTypeAdapter, labels)
}

// read answers a term.
func (p *past) read(term history.ID, keys traits.Lister, value func(int64) (ref.Val, bool)) ref.Val {
	given := make([]any, int(keys.Size().(types.Int)))
	for i := range given {
		var ok bool
		if given[i], ok = argumentValue(keys.Get(types.Int(i))); !ok {
			return p.state.fail(errKey)
		}
	}
	n, err := p.view.Value(term, given...)
	if err != nil {
		return p.state.fail(err)
	}
	v, ok := value(n)
	if !ok {
		return p.state.fail(errUnrepresentable)
	}
	return v
}

// argumentValue is a text, number or boolean as arguments have it.
func argumentValue(v ref.Val) (any, bool) {
	switch v := v.(type) {
	case types.String:
		return string(v), true
	case types.Bool:
		return bool(v), true
	case types.Int:
		return json.Number(strconv.FormatInt(int64(v), 10)), true
	case types.Uint:
		return json.Number(strconv.FormatUint(uint64(v), 10)), true
	case types.Double:
		return json.Number(strconv.FormatFloat(float64(v), 'g', -1, 64)), !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0)
	}
	return nil, false
}

// perUnit is how many of the millionths that sums are kept in make one.
const perUnit = 1_000_000

// sumValue is a number of millionths as a number that is compared as those of arguments are: with 15 significant
// digits at most where it is not whole.
func sumValue(millionths int64) (ref.Val, bool) {
	if millionths%perUnit == 0 {
		return types.Int(millionths / perUnit), true
	}
	return numberValue(json.Number(strconv.FormatInt(millionths, 10) + "e-6"))
}

func (p *past) Type() ref.Type                            { return types.DynType }
func (p *past) Value() any                                { return p.view }
func (p *past) Equal(ref.Val) ref.Val                     { return types.False }
func (p *past) ConvertToType(ref.Type) ref.Val            { return types.NewErr("type conversion error") }
func (p *past) ConvertToNative(reflect.Type) (any, error) { return nil, errUnrepresentable }
