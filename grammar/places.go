package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// arguments matches the arguments of a tool.
func (c *compiler) arguments(t Tool) (expr, error) {
	d := json.NewDecoder(bytes.NewReader(t.Schema))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	if m, is := root.(map[string]any); is {
		c.defs, _ = m["$defs"].(map[string]any)
	}
	c.loops = loopsOf(c.defs)
	for c.recursion = maxRecursion; ; c.recursion-- {
		c.known, c.path = map[string]place{}, nil
		c.places, c.states, c.depth = 0, 0, envelopeLevels
		clear(c.notes)
		e, err := c.value(t.Name, []any{root, map[string]any{"type": "object"}})
		if !errors.Is(err, errTooManyPlaces) || c.recursion == 0 {
			return e, err
		}
	}
}

// envelopeLevels is how many objects the arguments of a call lie in.
const envelopeLevels = 2

// maxPlaces bounds the places of a tool: schemas that lie within each other in several ways
// have many.
const maxPlaces = 5_000

var errTooManyPlaces = fmt.Errorf("the schema has more than %d places", maxPlaces)

// loopsOf lists the references to definitions that lie within themselves.
func loopsOf(defs map[string]any) map[string]bool {
	const at = "#/$defs/"
	to := map[string][]string{}
	for name, schema := range defs {
		to[at+name] = refsIn(schema, nil)
	}
	loops := map[string]bool{}
	for ref := range to {
		seen := map[string]bool{}
		for queue := slices.Clone(to[ref]); len(queue) > 0; queue = queue[1:] {
			if next := queue[0]; !seen[next] {
				seen[next] = true
				queue = append(queue, to[next]...)
			}
		}
		loops[ref] = seen[ref]
	}
	return loops
}

// refsIn lists the references within a schema. What only looks like one does no harm.
func refsIn(schema any, found []string) []string {
	switch s := schema.(type) {
	case []any:
		for _, item := range s {
			found = refsIn(item, found)
		}
	case map[string]any:
		for name, value := range s {
			if ref, is := value.(string); is && name == "$ref" {
				found = append(found, ref)
			}
			found = refsIn(value, found)
		}
	}
	return found
}

// place is what was made of a place: its height is how many levels it nests, unless it was cut.
type place struct {
	expr          expr
	height, depth int
	cut           bool
}

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

// fits reports whether so many levels more may nest here.
func (c *compiler) fits(levels int) bool { return c.maxDepth == 0 || c.depth+levels <= c.maxDepth }

// tooDeep notes that something would nest too deep.
func (c *compiler) tooDeep() {
	c.cut = true
	c.note("calls that nest deeper than %d levels are left out", c.maxDepth)
}
