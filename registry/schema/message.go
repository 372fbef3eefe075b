package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/parser"
)

// maxListed bounds how many expectations a message lists.
const maxListed = 10

// maxText is how many characters of a pattern or a value a message shows.
const maxText = 80

// words are those of a value that is judged, in messages.
type words struct {
	by, requires string // whose schema it is, within a sentence and at its beginning
	root, member string // the value, and what is in it
	again        string // how it is sent once more
	whole        string // the value in its own sentences
	less         string // what to do where it is too large
	unable       string // what to do where it cannot be judged
}

// ofArguments are the words of the arguments of a call.
func ofArguments(tool string) *words {
	return &words{
		by: tool, requires: tool, root: "The arguments object", member: "Argument", again: "Send the call again", whole: "The arguments",
		less: "Send less in one call.", unable: "Use other values, or say what you cannot do.",
	}
}

// ofAnswer are those of an answer that is asked to be JSON.
var ofAnswer = &words{
	by: "the schema", requires: "The schema", root: "The answer", member: "Member", again: "Send the answer again",
	whole: "The values of the answer",
	less:  "Send less in one answer.", unable: "Use other values.",
}

// place names a place of the value.
func (w *words) place(path []pathToken) string {
	if len(path) == 0 {
		return w.root
	}
	var b strings.Builder
	for _, t := range path {
		switch {
		case t.name == "" && t.index >= 0:
			fmt.Fprintf(&b, "[%d]", t.index)
		case b.Len() > 0:
			b.WriteString("." + t.name)
		default:
			b.WriteString(t.name)
		}
	}
	return w.member + " " + parser.Quote(b.String())
}

func wrongTypeMessage(n *node, v any, place string) string {
	found := kindOf(v)
	if _, isNumber := v.(json.Number); isNumber && n.types&typeInteger != 0 {
		found = "a number with a fraction"
	}
	return fmt.Sprintf("%s must be %s, not %s.", place, n.types, found)
}

func missingMessage(n *node, name, place string, w *words) string {
	want := ""
	if p := n.declared(name); p != nil {
		if d := describe(p, 0); d != "" {
			want = ": " + d
		}
	}
	return fmt.Sprintf("%s is missing. %s requires it%s.", place, w.requires, want)
}

// declared finds the schema of a member, for a message only.
func (n *node) declared(name string) *node {
	for range maxSchemaDepth {
		if p := n.properties[name]; p != nil {
			return p
		}
		if n.ref == nil {
			break
		}
		n = n.ref
	}
	return nil
}

func unexpectedMessage(n *node, v map[string]any, name, place string, w *words, suggestions *memberSuggestions) string {
	say := fmt.Sprintf("%s is not part of %s.", place, w.by)
	if suggestion := suggestions.suggest(n, v, name); suggestion != "" {
		return say + " Did you mean " + parser.Quote(suggestion) + "?"
	}
	return say + " " + w.again + " without it."
}

func invalidNameMessage(n *node, place string) string {
	want := describe(n.propertyNames, 0)
	if want == "" {
		want = "another name"
	}
	return fmt.Sprintf("%s has a name that is not allowed. The name must be %s.", place, want)
}

// requirement renders the requirement that a value failed, from the schema alone.
func (n *node) requirement(v any, f faultKind, by string) string {
	switch f {
	case faultNever:
		return "cannot have a value here; leave it out"
	case faultEnum:
		return "must be one of " + listValues(n.enum.list)
	case faultConst:
		return "must be " + listValues(n.constant.list)
	case faultMinLength:
		return fmt.Sprintf("must be at least %s long, not %d", text.Count(n.minLength, "character"), lengthOf(v))
	case faultMaxLength:
		return fmt.Sprintf("must be at most %s long, not %d", text.Count(n.maxLength, "character"), lengthOf(v))
	case faultPattern:
		return "must match the pattern " + text.Shorten(n.pattern.source, maxText)
	case faultFormat:
		return "must be " + n.format.Description
	case faultMinimum:
		return "must be at least " + n.minimum.String()
	case faultMaximum:
		return "must be at most " + n.maximum.String()
	case faultExclusiveMinimum:
		return "must be greater than " + n.exclusiveMinimum.String()
	case faultExclusiveMaximum:
		return "must be less than " + n.exclusiveMaximum.String()
	case faultMultiple:
		return "must be a multiple of " + n.multipleOf.String()
	case faultMinItems:
		return fmt.Sprintf("must hold at least %s, not %d", text.Count(n.minItems, "item"), lengthOf(v))
	case faultMaxItems:
		return fmt.Sprintf("must hold at most %s, not %d", text.Count(n.maxItems, "item"), lengthOf(v))
	case faultUnique:
		return "must not hold two equal items"
	case faultContains:
		return fmt.Sprintf("must hold at least %s%s", text.Count(n.minContains, "item"), matching(n.contains))
	case faultContainsMany:
		return fmt.Sprintf("must hold at most %s%s", text.Count(n.maxContains, "item"), matching(n.contains))
	case faultMinProperties:
		return fmt.Sprintf("must hold at least %s, not %d", text.Count(n.minProperties, "member"), lengthOf(v))
	case faultMaxProperties:
		return fmt.Sprintf("must hold at most %s, not %d", text.Count(n.maxProperties, "member"), lengthOf(v))
	case faultAnyOf:
		return fmt.Sprintf("has none of the forms that %s allows%s", by, forms(n.anyOf, expected))
	case faultOneOf:
		return fmt.Sprintf("has none of the forms that %s allows%s", by, forms(n.oneOf, expected))
	case faultOneOfMany:
		return fmt.Sprintf("has more than one of the forms of which %s allows exactly one%s", by, forms(n.oneOf, metBy(v)))
	case faultNot:
		return fmt.Sprintf("has a form that %s excludes%s", by, forms([]*node{n.not}, metBy(v)))
	case faultThen:
		return fmt.Sprintf("does not meet a condition that %s sets for such a value%s", by, forms([]*node{n.thenSchema}, expected))
	case faultElse:
		return fmt.Sprintf("does not meet a condition that %s sets for such a value%s", by, forms([]*node{n.elseSchema}, expected))
	}
	return "is not valid"
}

func matching(n *node) string {
	if d := describe(n, 0); d != "" {
		return " that is " + d
	}
	return " of the kind that is asked for"
}

// forms describes branches, if they can be described in a few words.
func forms(branches []*node, describe func(*node) string) string {
	var list []string
	for _, b := range branches {
		d := describe(b)
		if d == "" || len(list) == maxListed {
			return ""
		}
		if !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return ": " + join(list, "or")
}

// expected is what a schema expects, in a few words.
func expected(n *node) string { return describe(n, 0) }

// metBy is expected for schemas that a value meets. Keywords of objects alone, or of texts, hold for all
// else: what they describe is not that value then.
func metBy(v any) func(*node) string {
	_, isObject := v.(map[string]any)
	_, isText := v.(string)
	return func(n *node) string {
		for n.types == 0 && n.ref != nil && n.constant == nil && n.enum == nil {
			n = n.ref
		}
		switch {
		case n.constant != nil || n.enum != nil || n.types != 0:
		case len(n.required) > 0 && !isObject:
			return "anything but an object"
		case len(n.required) == 0 && textRange(n) != "" && !isText:
			return "anything but a string"
		}
		return expected(n)
	}
}

// describe renders in a few words what a schema expects; "" where it cannot.
func describe(n *node, depth int) string {
	if depth > 4 || n.never || n.empty {
		return ""
	}
	switch {
	case n.constant != nil:
		return listValues(n.constant.list)
	case n.enum != nil:
		if len(n.enum.list) == 1 {
			return listValues(n.enum.list)
		}
		return "one of " + listValues(n.enum.list)
	case n.types == 0 && n.ref != nil:
		return describe(n.ref, depth+1)
	case n.types == 0 && len(n.required) > 0:
		return "an object with " + listNames(n.required)
	case n.types == 0 && textRange(n) != "":
		return "a string" + textRange(n)
	case n.types == 0:
		return ""
	}
	d := n.types.String()
	switch n.types {
	case typeString:
		d += textRange(n)
	case typeInteger, typeNumber:
		d += numberRange(n)
	case typeObject:
		if len(n.required) > 0 {
			d += " with " + listNames(n.required)
		}
	}
	return d
}

func textRange(n *node) string {
	switch {
	case n.format != nil:
		return " that is " + n.format.Description
	case n.pattern != nil:
		return " that matches " + text.Shorten(n.pattern.source, maxText)
	case n.minLength > 0 && n.maxLength >= 0:
		return fmt.Sprintf(" of %d to %s", n.minLength, text.Count(n.maxLength, "character"))
	case n.minLength > 0:
		return fmt.Sprintf(" of at least %s", text.Count(n.minLength, "character"))
	case n.maxLength >= 0:
		return fmt.Sprintf(" of at most %s", text.Count(n.maxLength, "character"))
	}
	return ""
}

func numberRange(n *node) string {
	switch {
	case n.minimum != nil && n.maximum != nil:
		return " from " + n.minimum.String() + " to " + n.maximum.String()
	case n.minimum != nil:
		return " of at least " + n.minimum.String()
	case n.maximum != nil:
		return " of at most " + n.maximum.String()
	case n.exclusiveMinimum != nil:
		return " greater than " + n.exclusiveMinimum.String()
	case n.exclusiveMaximum != nil:
		return " less than " + n.exclusiveMaximum.String()
	}
	return ""
}

func listNames(names []string) string {
	var list []string
	for _, name := range names[:min(len(names), maxListed)] {
		list = append(list, parser.Quote(name))
	}
	if len(names) > maxListed {
		list = append(list, "others")
	}
	return join(list, "and")
}

// listValues renders values of the schema.
func listValues(values []any) string {
	var list []string
	for _, v := range values[:min(len(values), maxListed)] {
		raw, err := json.Marshal(v)
		if err != nil {
			continue
		}
		list = append(list, text.Shorten(string(raw), maxText))
	}
	if len(values) > maxListed {
		list = append(list, fmt.Sprintf("%d more values", len(values)-maxListed))
	}
	return join(list, "or")
}

func lengthOf(v any) int {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v)
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	return 0
}
