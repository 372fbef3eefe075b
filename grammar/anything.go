package grammar

import "fmt"

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
