package grammar

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/callgate/callgate/internal/decimal"
)

// maxPlaces bounds the places of a tool: schemas that lie within each other in several ways
// have many.
const maxPlaces = 5_000

var errTooManyPlaces = fmt.Errorf("the schema has more than %d places", maxPlaces)

// value matches the values that keep all of some schemas.
func (c *compiler) value(hint string, schemas []any) (expr, error) {
	key, err := json.Marshal([]any{schemas, slices.Sorted(slices.Values(c.path))})
	if err != nil {
		return nil, err
	}
	if p, known := c.known[string(key)]; known && (p.depth == c.depth || !p.cut && c.fits(p.height)) {
		c.deepest, c.cut = max(c.deepest, c.depth+p.height), c.cut || p.cut
		return p.expr, nil
	}
	if c.places++; c.places > maxPlaces {
		return nil, errTooManyPlaces
	}
	deepest, cut := c.deepest, c.cut
	c.deepest, c.cut = c.depth, false
	e, err := c.compiled(hint, schemas)
	if err != nil {
		return nil, err
	}
	c.known[string(key)] = place{e, c.deepest - c.depth, c.depth, c.cut}
	c.deepest, c.cut = max(c.deepest, deepest), c.cut || cut
	return e, nil
}

// compiled matches the values that keep all of some schemas.
func (c *compiler) compiled(hint string, schemas []any) (expr, error) {
	w := walk{compiler: c}
	ways := [][]part{nil}
	for _, s := range schemas {
		more, err := w.ways(s, nil)
		if err != nil {
			return nil, err
		}
		if ways, err = product(ways, more); err != nil {
			return nil, err
		}
	}
	depth := len(c.path)
	c.path = append(c.path, w.entered...)
	defer func() { c.path = c.path[:depth] }()
	var alternatives []expr
	for _, way := range ways {
		e, err := c.way(hint, schemas, way)
		if err != nil {
			return nil, err
		}
		alternatives = append(alternatives, e)
	}
	return c.rules.define(hint, oneOf(alternatives...)), nil
}

// way matches the values that keep all parts.
func (c *compiler) way(hint string, schemas []any, parts []part) (expr, error) {
	for _, p := range parts {
		values, has := p.keywords["enum"].([]any)
		if constant, is := p.keywords["const"]; is {
			values, has = []any{constant}, true
		}
		if has {
			return c.values(hint, schemas, values)
		}
	}
	types := typesOf(parts)
	var out []expr
	for _, t := range types {
		e, err := c.typed(hint, t, parts)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return oneOf(out...), nil
}

func (c *compiler) typed(hint, t string, parts []part) (expr, error) {
	switch t {
	case "null":
		return literal("null"), nil
	case "boolean":
		return oneOf(literal("false"), literal("true")), nil
	case "integer", "number":
		rules, err := numberRulesOf(parts)
		if err != nil {
			return nil, err
		}
		rules.integer = t == "integer"
		return c.number(hint, rules)
	case "string":
		return c.string(hint, textRulesOf(parts))
	}
	if !c.fits(1) {
		c.tooDeep()
		return nil, nil
	}
	c.depth++
	defer func() { c.depth-- }()
	c.deepest = max(c.deepest, c.depth)
	if t == "array" {
		return c.array(hint, parts)
	}
	return c.object(hint, parts)
}

func numberRulesOf(parts []part) (r numberRules, err error) {
	for _, p := range parts {
		for _, k := range []struct{ name, which string }{{"minimum", ">="}, {"maximum", "<="}, {"exclusiveMinimum", ">"}, {"exclusiveMaximum", "<"}, {"multipleOf", ""}} {
			n, has := p.keywords[k.name].(json.Number)
			if !has {
				continue
			}
			d, ok := decimal.Parse(n.String())
			if !ok || len(d.Digits)+max(d.Exponent, -d.Exponent) > maxIntegerDigits {
				return r, fmt.Errorf("%s %s cannot be written as a grammar", k.name, n)
			}
			if k.which == "" {
				r.multiples = append(r.multiples, d)
				continue
			}
			r.bounds = append(r.bounds, newBound(k.which, d))
		}
	}
	return r, nil
}

func textRulesOf(parts []part) textRules {
	r := textRules{least: 0, most: -1}
	for _, p := range parts {
		r.least = max(r.least, count(p.keywords["minLength"], 0))
		r.most = lower(r.most, count(p.keywords["maxLength"], -1))
		if text, has := p.keywords["pattern"].(string); has {
			r.patterns = append(r.patterns, text)
		}
		if text, has := p.keywords["format"].(string); has {
			r.formats = append(r.formats, text)
		}
	}
	return r
}
