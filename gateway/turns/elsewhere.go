package turns

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
)

// Elsewhere is the member of a call in which a server may have written the arguments, under a name that is not theirs:
// without them the call would be another one. Empty: there is none.
type Elsewhere string

// Note takes a member of a call that its wire does not read.
func (e *Elsewhere) Note(name, value []byte) {
	const most = 64
	switch folded := ascii.Folded(string(name)); {
	case *e != "" || slices.Contains(besideArguments, folded) || !mayHoldArguments(folded, value):
	case len(name) > most || !ascii.IsPlainID(string(name)):
		*e = "of another name"
	default:
		*e = Elsewhere(name)
	}
}

// Check returns why a call is not taken: its arguments, as the model wrote them, say nothing, and may stand elsewhere.
func (e Elsewhere) Check(arguments []byte) error {
	if e == "" || !SaysNothing(arguments) {
		return nil
	}
	return fmt.Errorf("a call without arguments: they may stand in the member %s", string(e))
}

// CheckPiece is Check for a piece of the arguments: the call would be taken without it, as another one.
func (e Elsewhere) CheckPiece(piece []byte) error {
	if e == "" || !SaysNothing(piece) {
		return nil
	}
	return fmt.Errorf("a piece of a call without arguments: they may stand in the member %s", string(e))
}

// NamesArguments reports whether any text is arguments in a member of such a name.
func NamesArguments(name []byte) bool {
	return slices.Contains(argumentNames, ascii.Folded(string(name)))
}

// NamesCalls reports whether a member has calls by its name. Where a wire reads none they would be lost, and the rest taken
// for the answer.
func NamesCalls(name []byte) bool { return slices.Contains(callNames, ascii.Folded(string(name))) }

// callNames are names of members with calls, see ascii.Folded.
var callNames = []string{"toolcall", "toolcalls", "tooluse", "tooluses", "functioncall", "functioncalls"}

// SameArguments reports whether a call that is stated twice has the same arguments.
func SameArguments(a, b []byte) bool {
	const most, times = 64, 8 // white space and escapes make no more of it
	return bytes.Equal(a, b) || SaysNothing(a) && SaysNothing(b) ||
		max(len(a), len(b)) <= most+times*min(len(a), len(b)) && rawjson.Alike(a, b)
}

// besideArguments are the members of calls that are known to hold objects that are no arguments, and argumentNames those
// of which any text may be some, see ascii.Folded.
var (
	besideArguments = []string{"caller", "createdby", "cachecontrol", "extracontent", "providerspecificfields", "metadata", "agent",
		"amazonbedrockinvocationmetrics"}
	argumentNames = []string{"arguments", "args", "kwargs", "parameters", "params", "input", "code", "partialjson", "delta",
		"argument", "argumentdelta", "argumentsdelta"}
)

// mayHoldArguments reports whether a member is an object or a list that says something, or a text that begins like one. Any
// other text, which servers write beside calls under many names, is arguments by its name alone.
func mayHoldArguments(name string, value []byte) bool {
	switch value[0] {
	case '{', '[':
		return !isEmpty(value)
	case '"':
		text, err := rawjson.Unquote(value)
		if err != nil || SaysNothing(text) {
			return err != nil
		}
		first := text[parser.SkipSpace(text, 0)]
		return first == '{' || first == '[' || slices.Contains(argumentNames, name)
	}
	return false
}

// SaysNothing reports whether the arguments of a call are none: absent, blank, or an empty object.
func SaysNothing(arguments []byte) bool {
	start := parser.SkipSpace(arguments, 0)
	return start == len(arguments) || arguments[start] == '{' && isEmpty(arguments[start:])
}

// isEmpty reports whether an object or a list has nothing in it.
func isEmpty(value []byte) bool {
	end := parser.SkipSpace(value, 1)
	return end < len(value) && (value[end] == '}' || value[end] == ']') && parser.SkipSpace(value, end+1) == len(value)
}

// IsNothing reports whether a value says nothing: it, or each value in it, is absent, empty, null, false or 0. Some servers write
// such an error where there is none. Some members of an object do not count, but for those of the objects in it.
func IsNothing(value []byte, besides ...string) bool {
	nothing := true
	switch {
	case len(value) == 0:
	case value[0] == '{':
		_ = rawjson.Each(value, func(name, value []byte) error {
			nothing = nothing && (slices.Contains(besides, string(name)) || IsNothing(value))
			return nil
		})
	case value[0] == '[':
		_ = rawjson.EachOf(value, func(element []byte) error {
			nothing = nothing && IsNothing(element)
			return nil
		})
	default:
		nothing = slices.Contains([]string{"null", `""`, "false", "0"}, string(value))
	}
	return nothing
}
