package grammar

import (
	"encoding/json"
	"fmt"
	"slices"
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

// place is what was made of a place: its height is how many levels it nests, unless it was cut.
type place struct {
	expr          expr
	height, depth int
	cut           bool
}

// fits reports whether so many levels more may nest here.
func (c *compiler) fits(levels int) bool { return c.maxDepth == 0 || c.depth+levels <= c.maxDepth }

// tooDeep notes that something would nest too deep.
func (c *compiler) tooDeep() {
	c.cut = true
	c.note("calls that nest deeper than %d levels are left out", c.maxDepth)
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
