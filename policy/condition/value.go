package condition

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// errUnrepresentable is why a condition fails that read a number which CEL cannot
// hold, or a value that is not JSON.
var errUnrepresentable = errors.New("it read a number outside int64 with more than 15 significant digits, or outside a double's range")

// evalState is the state of one evaluation. Values turn into CEL values only when
// they are read, and the first that could not be is remembered here, because CEL's
// equality, "in" and logical operators would pass over it.
type evalState struct{ failure error }

func (r *evalState) fail(err error) ref.Val {
	if r.failure == nil {
		r.failure = err
	}
	return types.WrapErr(err)
}

// read turns a JSON value into a CEL value.
func (r *evalState) read(v any) ref.Val {
	switch v := v.(type) {
	case nil:
		return types.NullValue
	case bool:
		return types.Bool(v)
	case string:
		return types.String(v)
	case json.Number:
		if value, ok := numberValue(v); ok {
			return value
		}
		return r.fail(errUnrepresentable)
	case []any:
		return &jsonList{types.NewDynamicList(r, v), v, r}
	case map[string]any:
		return &jsonObject{members: v, state: r}
	default:
		return r.fail(errUnrepresentable)
	}
}

// NativeToValue implements types.Adapter.
func (r *evalState) NativeToValue(v any) ref.Val { return r.read(v) }

// jsonList is a JSON array as a CEL list, whose elements are read when they are used.
type jsonList struct {
	traits.Lister
	elements []any
	state    *evalState
}

var _ traits.Foldable = (*jsonList)(nil)

// Add concatenates; it reads every element.
func (l *jsonList) Add(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	size := o.Size().(types.Int)
	all := make([]ref.Val, 0, len(l.elements)+int(size))
	for _, e := range l.elements {
		all = append(all, l.state.read(e))
	}
	for i := types.Int(0); i < size; i++ {
		all = append(all, o.Get(i))
	}
	return types.NewRefValList(types.DefaultTypeAdapter, all)
}

// Fold walks the elements for a loop, leaving each unread until it is used.
func (l *jsonList) Fold(f traits.Folder) {
	for i, e := range l.elements {
		if !f.FoldEntry(i, lazyValue{e, l.state}) {
			return
		}
	}
}

// jsonObject is a JSON object as a CEL map.
type jsonObject struct {
	members map[string]any
	state   *evalState
}

var _ traits.Mapper = (*jsonObject)(nil)

// Contains reports whether a member is there, without reading it.
func (o *jsonObject) Contains(key ref.Val) ref.Val {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key)
	}
	_, found := o.members[string(name)]
	return types.Bool(found)
}

// Equal compares member by member.
func (o *jsonObject) Equal(other ref.Val) ref.Val {
	m, ok := other.(traits.Mapper)
	if !ok || m.Size() != o.Size() {
		return types.False
	}
	for _, name := range o.names() {
		theirs, found := m.Find(types.String(name))
		if !found {
			return types.False
		}
		if equal := types.Equal(o.state.read(o.members[name]), theirs); equal != types.True {
			return equal
		}
	}
	return types.True
}

// Find reads a member.
func (o *jsonObject) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	v, found := o.members[string(name)]
	if !found {
		return nil, false
	}
	return o.state.read(v), true
}

// FindStringKey selects a member without reading it, as CEL asks for it.
func (o *jsonObject) FindStringKey(name string) (any, bool) {
	return lazyValue{o.members, o.state}.FindStringKey(name)
}

// Get reads a member that must be there.
func (o *jsonObject) Get(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if !found {
		return types.ValOrErr(v, "no such key")
	}
	return v
}

// Iterator walks the members' names in the order of their bytes.
func (o *jsonObject) Iterator() traits.Iterator {
	return types.NewStringList(o.state, o.names()).Iterator()
}

func (o *jsonObject) names() []string { return slices.Sorted(maps.Keys(o.members)) }

func (o *jsonObject) Size() ref.Val  { return types.Int(len(o.members)) }
func (o *jsonObject) Type() ref.Type { return types.MapType }
func (o *jsonObject) Value() any     { return o.members }

// ConvertToNative is for embedding Go programs; conditions have none.
func (o *jsonObject) ConvertToNative(reflect.Type) (any, error) { return nil, errUnrepresentable }

func (o *jsonObject) ConvertToType(to ref.Type) ref.Val {
	switch to {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("type conversion error")
}

// lazyValue is a value that was selected and not yet read: it is read when it is
// used, so that has() reads nothing.
type lazyValue struct {
	value any
	state *evalState
}

// FindStringKey selects a member of an object.
func (u lazyValue) FindStringKey(name string) (any, bool) {
	members, ok := u.value.(map[string]any)
	if !ok {
		return nil, false
	}
	v, found := members[name]
	return lazyValue{v, u.state}, found
}

// adapter reads lazy values when CEL uses them.
type adapter struct{ types.Adapter }

func (a adapter) NativeToValue(v any) ref.Val {
	if u, ok := v.(lazyValue); ok {
		return u.state.read(u.value)
	}
	return a.Adapter.NativeToValue(v)
}
