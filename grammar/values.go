package grammar

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/callgate/callgate/internal/decimal"
	"github.com/callgate/callgate/registry/schema"
)

// maxValues bounds the values of an enum.
const maxValues = 10_000

// values matches those of some values that keep the schemas.
func (c *compiler) values(hint string, schemas, values []any) (expr, error) {
	if len(values) > maxValues {
		return nil, fmt.Errorf("an enum of more than %d values is too large for a grammar", maxValues)
	}
	accepts, err := c.evaluator(schemas)
	if err != nil {
		return nil, err
	}
	var out []expr
	for _, v := range values {
		if !accepts(v) {
			continue
		}
		levels := levelsOf(v)
		if !c.fits(levels) {
			c.tooDeep()
			continue
		}
		c.deepest = max(c.deepest, c.depth+levels)
		e, err := c.constant(hint, v)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return oneOf(out...), nil
}

// levelsOf is how many objects and arrays nest in a value.
func levelsOf(value any) int {
	deepest := 0
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			deepest = max(deepest, levelsOf(item))
		}
	case map[string]any:
		for _, member := range v {
			deepest = max(deepest, levelsOf(member))
		}
	default:
		return 0
	}
	return deepest + 1
}

// evaluator returns a function that reports whether a value keeps some schemas.
func (c *compiler) evaluator(schemas []any) (func(any) bool, error) {
	around := object(map[string]any{"value": map[string]any{"allOf": schemas}}, "value")
	if len(c.defs) > 0 {
		around["$defs"] = c.defs
	}
	raw, err := json.Marshal(around)
	if err != nil {
		return nil, err
	}
	compiled, faults := schema.NewCompiler(false).Compile(raw, schema.Options{})
	if len(faults) > 0 {
		return nil, fmt.Errorf("an enum beside other keywords cannot be written as a grammar (%s)", faults[0].Message)
	}
	return func(v any) bool { return compiled.Evaluate(c.tool, map[string]any{"value": v}) == nil }, nil
}

// constant matches one value: a number in each form without an exponent, a string in each
// spelling.
func (c *compiler) constant(hint string, value any) (expr, error) {
	switch v := value.(type) {
	case nil:
		return literal("null"), nil
	case bool:
		return literal(fmt.Sprint(v)), nil
	case string:
		return c.text(v), nil
	case json.Number:
		d, ok := decimal.Parse(v.String())
		if !ok || len(d.Digits)+max(d.Exponent, -d.Exponent) > maxIntegerDigits/2 {
			return nil, fmt.Errorf("the number %s cannot be written as a grammar", v)
		}
		if c.compact {
			return literal(v.String()), nil
		}
		return c.number(hint, numberRules{bounds: []bound{newBound("=", d)}})
	case []any:
		parts := []expr{literal("["), c.space()}
		for i, item := range v {
			e, err := c.constant(hint, item)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				parts = append(parts, c.comma())
			}
			parts = append(parts, e)
		}
		return seq(append(parts, c.space(), literal("]"))...), nil
	}
	members, _ := value.(map[string]any)
	o := objectRules{least: 0, most: -1}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		e, err := c.constant(hint, members[name])
		if err != nil {
			return nil, err
		}
		o.names, o.required = append(o.names, name), append(o.required, true)
		o.entries = append(o.entries, c.rules.define(hint+"-"+name, c.member(name, e)))
	}
	return c.members(hint, o), nil
}

// maxAnyDepth is how deep a value nests for which the schema says nothing.
const maxAnyDepth = 4

// anything matches any value.
func (c *compiler) anything() expr {
	levels := maxAnyDepth
	if !c.fits(levels) {
		c.tooDeep()
		levels = max(c.maxDepth-c.depth, 0)
	} else {
		c.note("values that no schema describes nest at most %d levels", maxAnyDepth)
	}
	c.deepest = max(c.deepest, c.depth+levels)
	return c.anyValue(levels)
}

func (c *compiler) anyValue(depth int) expr {
	name := fmt.Sprint("any", depth)
	if e, known := c.common[name]; known {
		return e
	}
	text, _ := c.string("", textRules{most: -1}) // has no fault
	ways := []expr{literal("null"), literal("false"), literal("true"), c.plainNumber(false), text}
	if depth > 0 {
		inner := c.anyValue(depth - 1)
		items := seq(literal("["), c.space(), c.items(nil, inner, 0, -1), c.space(), literal("]"))
		ways = append(ways, items, c.members(name, objectRules{open: inner, most: -1}))
	}
	return c.shared(name, func() expr { return oneOf(ways...) })
}

// apart reports whether of some branches at most one can hold for any value.
func (w *walk) apart(branches []any) bool {
	for i, a := range branches {
		for _, b := range branches[i+1:] {
			if !w.disjoint(a, b) {
				return false
			}
		}
	}
	return true
}

// disjoint reports whether no value keeps both schemas, as far as their types, their enums
// and the members that they require show.
func (w *walk) disjoint(a, b any) bool {
	x, y := w.resolved(a), w.resolved(b)
	if x == nil || y == nil {
		return a == false || b == false
	}
	if values := enumOf(x); values != nil {
		return w.noneKeeps(values, b)
	}
	if values := enumOf(y); values != nil {
		return w.noneKeeps(values, a)
	}
	both := typesOf([]part{{keywords: x}, {keywords: y}})
	if len(both) == 0 {
		return true
	}
	if !slices.Equal(both, []string{"object"}) {
		return false
	}
	return w.lacks(x, y) || w.lacks(y, x) || w.tagged(x, y)
}

// resolved follows references that stand alone.
func (w *walk) resolved(s any) map[string]any {
	for range 8 {
		m, _ := s.(map[string]any)
		ref, has := m["$ref"].(string)
		if !has || len(m) > 1 || len(ref) <= len("#/$defs/") {
			return m
		}
		s = w.defs[ref[len("#/$defs/"):]]
	}
	return nil
}

func enumOf(m map[string]any) []any {
	if v, has := m["const"]; has {
		return []any{v}
	}
	return list(m["enum"])
}

func (w *walk) noneKeeps(values []any, schema any) bool {
	accepts, err := w.evaluator([]any{schema})
	return err == nil && !slices.ContainsFunc(values, accepts)
}

// lacks reports whether the one requires a member that the other forbids.
func (w *walk) lacks(x, y map[string]any) bool {
	if y["additionalProperties"] != false || y["patternProperties"] != nil {
		return false
	}
	members, _ := y["properties"].(map[string]any)
	return slices.ContainsFunc(list(x["required"]), func(name any) bool {
		s, has := members[name.(string)]
		return !has || s == false
	})
}

// tagged reports whether both require a member whose values are apart.
func (w *walk) tagged(x, y map[string]any) bool {
	mine, _ := x["properties"].(map[string]any)
	other, _ := y["properties"].(map[string]any)
	return slices.ContainsFunc(list(x["required"]), func(name any) bool {
		a, inX := mine[name.(string)]
		b, inY := other[name.(string)]
		return inX && inY && slices.Contains(list(y["required"]), name) && w.disjoint(a, b)
	})
}
