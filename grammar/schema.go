package grammar

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/callgate/callgate/internal/decimal"
)

// compiler writes the schemas of one tool as rules.
type compiler struct {
	rules   *rules
	compact bool
	tool    string
	defs    map[string]any
	known   map[string]place // compiled places, by their schemas
	common  map[string]expr  // rules that several places share
	loops   map[string]bool  // the references whose target lies within itself
	path    []string         // those of them on the way to this place
	notes   map[string]bool
	states  int
	places  int
	// recursion is how often a schema may lie within itself here.
	recursion int
	// depth is how many objects and arrays this place lies in; deepest, how deep what was compiled
	// reaches, and cut, that it would reach beyond maxDepth. A maxDepth of 0 is no bound.
	depth, deepest, maxDepth int
	cut                      bool
}

const (
	// maxRecursion is how often a schema may lie within itself in the grammar.
	maxRecursion = 3
	// maxAlternatives bounds the ways to keep a schema with several anyOf.
	maxAlternatives = 64
	// maxGrammarStates bounds the rules of a tool that are made of states.
	maxGrammarStates = 100_000
)

// shared returns a rule of the whole grammar, and makes it when it is asked for first.
func (c *compiler) shared(name string, body func() expr) expr {
	if e, known := c.common[name]; known {
		return e
	}
	c.common[name] = reference(name)
	c.rules.name(name)
	made := body()
	c.rules.list = append(c.rules.list, rule{name, made})
	return reference(name)
}

// note says that the grammar is narrower than the schema somewhere.
func (c *compiler) note(format string, a ...any) {
	c.notes[fmt.Sprintf(format, a...)] = true
}

// part is one schema of those that hold for a place, of one way to keep them all. Within
// lists the schemas that it stands in, itself included: their unevaluatedProperties see
// what it declares.
type part struct {
	keywords map[string]any
	id       int
	within   []int
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

// walk lists the ways to keep a schema: one for each branch of anyOf and oneOf.
type walk struct {
	*compiler
	last    int
	entered []string // references that were followed
}

func (w *walk) ways(schema any, within []int) ([][]part, error) {
	keywords, isObject := schema.(map[string]any)
	if !isObject {
		if schema == false {
			return nil, nil
		}
		return [][]part{nil}, nil
	}
	for _, name := range []string{"not", "contains", "dependentSchemas", "patternProperties", "propertyNames"} {
		if v, has := keywords[name]; has && !says(name, v) {
			continue
		} else if has && keywords["enum"] == nil && keywords["const"] == nil {
			return nil, fmt.Errorf("%s cannot be written as a grammar", name)
		}
	}
	if keywords["if"] != nil && (keywords["then"] != nil || keywords["else"] != nil) {
		return nil, fmt.Errorf("if cannot be written as a grammar")
	}
	w.last++
	within = append(slices.Clone(within), w.last)
	out := [][]part{{{keywords, w.last, within}}}
	add := func(more [][]part, err error) error {
		if err == nil {
			out, err = product(out, more)
		}
		return err
	}
	for _, s := range list(keywords["allOf"]) {
		if err := add(w.ways(s, within)); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		branches, has := keywords[name].([]any)
		if !has {
			continue
		}
		if name == "oneOf" && !w.apart(branches) {
			return nil, fmt.Errorf("oneOf with branches that may both hold cannot be written as a grammar")
		}
		if err := add(w.branches(branches, within)); err != nil {
			return nil, err
		}
	}
	if ref, has := keywords["$ref"].(string); has {
		if err := add(w.follow(ref, within)); err != nil {
			return nil, err
		}
	}
	dependent, _ := keywords["dependentRequired"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(dependent)) {
		absent := part{map[string]any{"properties": map[string]any{name: false}, "type": anyType}, 0, nil}
		present := part{map[string]any{"required": append([]any{name}, list(dependent[name])...), "type": "object"}, 0, nil}
		if err := add([][]part{{absent}, {present}}, nil); err != nil {
			return nil, err
		}
	}
	return out, nil
}

var anyType = []any{"null", "boolean", "number", "string", "array", "object"}

// says reports whether a keyword with this value says anything.
func says(name string, value any) bool {
	switch v := value.(type) {
	case bool:
		return !v || name == "not" || name == "contains"
	case map[string]any:
		return len(v) > 0 || name == "not" || name == "contains"
	}
	return true
}

func (w *walk) branches(branches []any, within []int) ([][]part, error) {
	var out [][]part
	for _, b := range branches {
		more, err := w.ways(b, within)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// follow gives the ways of the target of a reference. A schema that lies within itself
// ends after maxRecursion levels.
func (w *walk) follow(ref string, within []int) ([][]part, error) {
	times := 0
	for _, before := range w.path {
		if before == ref {
			times++
		}
	}
	if times > w.recursion {
		w.note("values that nest within themselves more than %d levels are left out", w.recursion)
		return nil, nil
	}
	if w.loops[ref] {
		w.entered = append(w.entered, ref)
	}
	const prefix = "#/$defs/"
	if len(ref) <= len(prefix) {
		return nil, fmt.Errorf("a reference leads nowhere")
	}
	target, has := w.defs[ref[len(prefix):]]
	if !has {
		return nil, fmt.Errorf("a reference leads nowhere")
	}
	return w.ways(target, within)
}

// product gives each way of the one with each of the other.
func product(a, b [][]part) ([][]part, error) {
	if len(a)*len(b) > maxAlternatives {
		return nil, fmt.Errorf("anyOf and oneOf have more than %d ways together", maxAlternatives)
	}
	var out [][]part
	for _, x := range a {
		for _, y := range b {
			out = append(out, append(slices.Clone(x), y...))
		}
	}
	return out, nil
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

// typesOf gives the types that all parts allow.
func typesOf(parts []part) []string {
	types := []string{"null", "boolean", "number", "string", "array", "object"}
	for _, p := range parts {
		own, has := p.keywords["type"]
		if !has {
			continue
		}
		allowed := list(own)
		if name, is := own.(string); is {
			allowed = []any{name}
		}
		var both []string
		for _, t := range types {
			switch {
			case slices.Contains(allowed, any(t)):
				both = append(both, t)
			case t == "integer" && slices.Contains(allowed, any("number")):
				both = append(both, t)
			case t == "number" && slices.Contains(allowed, any("integer")):
				both = append(both, "integer")
			}
		}
		types = both
	}
	return types
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

// lower is the lower of two bounds; -1 is none.
func lower(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// count reads a count, which has been checked; beyond a million it is a million.
func count(v any, otherwise int) int {
	n, has := v.(json.Number)
	if !has {
		return otherwise
	}
	f, err := n.Float64()
	if err != nil || f > 1e6 {
		return 1e6
	}
	return int(f)
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
