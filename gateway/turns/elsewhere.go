package turns

import (
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

// besideArguments are the members of calls that are known to hold objects that are no arguments, and argumentNames those
// of which any text may be some, see ascii.Folded.
var (
	besideArguments = []string{"caller", "createdby", "cachecontrol", "extracontent", "providerspecificfields", "metadata", "agent",
		"amazonbedrockinvocationmetrics"}
	argumentNames = []string{"arguments", "args", "kwargs", "parameters", "params", "input", "code", "partialjson", "delta"}
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
