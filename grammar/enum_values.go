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

// object is a closed object schema.
func object(members map[string]any, required ...any) map[string]any {
	return map[string]any{"type": "object", "properties": members, "required": required, "additionalProperties": false}
}
