package schema

import "encoding/json"

// The library is asked about a value only if its work is bounded before it begins. A walk counts it,
// which follows every schema that may apply to a part of the value, as the library does, without
// evaluating any: at most maxPerValue apply to one part (see complexity). A step is about a
// microsecond and a quarter of a kilobyte at most. The rates are measured; see BenchmarkWorst.
const (
	maxSteps            = 400_000 // up to 200,000 values
	bytesPerStep        = 64
	bytesWrittenPerStep = 16  // bytes of pointers
	deepPerStep         = 512 // schemas among which the library looks for one applied twice
	annotationsPerStep  = 6   // notes made or copied
	requiredPerStep     = 256 // comparisons of a member's name with those required
	comparedPerStep     = 2   // plain values of an enum
	missingPerStep      = 4   // members that it may list as absent
	namesPerStep        = 16  // names that are looked up
	// maxProgramSteps bounds the program of a plain schema, whose steps are much smaller.
	maxProgramSteps = 2_000_000
	// maxValueDepth bounds recursion for callers without a parser in front.
	maxValueDepth = 1_000
)

// costOf returns the steps that the library takes at most for a value, or more than maxSteps.
func (n *node) costOf(v any) int {
	var c costCount
	c.value(n, v)
	return c.steps
}

type costCount struct{ steps, depth int }

func (c *costCount) value(n *node, v any) {
	c.depth++
	defer func() { c.depth-- }()
	c.steps += 2 + c.depth/deepPerStep + n.ownCost(v)
	parts := func(n *node, v any) {
		if n != nil && c.steps <= maxSteps {
			c.value(n, v)
		}
	}
	for _, beside := range n.inPlace() {
		parts(beside, v)
	}
	parts(n.not, v)
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if i < len(n.prefixItems) {
				parts(n.prefixItems[i], item)
			} else {
				parts(n.items, item)
			}
			parts(n.contains, item)
			parts(n.unevaluatedItems, item)
		}
	case map[string]any:
		for name, member := range v {
			described := n.properties[name]
			parts(described, member)
			for _, p := range n.patternProperties {
				if c.steps += 1 + p.cost(name); c.steps <= maxSteps && p.expr.MatchString(name) {
					described = p.node
					parts(p.node, member)
				}
			}
			if described == nil {
				parts(n.additionalProperties, member)
				parts(n.unevaluatedProperties, member)
			}
			parts(n.propertyNames, name)
		}
		for _, name := range n.required {
			if _, has := v[name]; !has {
				parts(n.properties[name], nil) // the library evaluates null
			}
		}
	}
}

// ownCost is the cost of a value besides those of the schemas inside: the library prints texts and
// names, computes with numbers of any size, compiles the patterns of names each time, walks all members
// that a schema names, and copies the notes of every schema beside it.
func (n *node) ownCost(v any) int {
	cost := 0
	for _, set := range []*valueSet{n.enum, n.constant} {
		if set != nil {
			cost += set.compareCost(v)
		}
	}
	for _, p := range n.patternProperties {
		cost += 16 + p.size/8
	}
	switch v := v.(type) {
	case string:
		cost += len(v) / bytesPerStep
		if n.format != nil {
			cost += len(v) / bytesPerStep
		}
		if n.pattern != nil {
			cost += n.pattern.cost(v)
		}
	case json.Number:
		cost += 1 + numberCost(v)
		if n.minimum != nil || n.maximum != nil || n.exclusiveMinimum != nil || n.exclusiveMaximum != nil || n.multipleOf != nil {
			cost += 6 + 4*numberCost(v)
		}
	case []any:
		cost += len(n.inPlace()) * len(v) / annotationsPerStep
		if n.uniqueItems {
			cost += compareCost(v)
		}
	case map[string]any:
		notes := n.notes + len(n.inPlace())*len(v)
		if n.additionalProperties != nil {
			notes += len(n.properties)
		}
		cost += notes/annotationsPerStep + len(n.properties)*len(n.required)/requiredPerStep + len(n.required)/missingPerStep +
			len(n.dependentRequired)/namesPerStep
		for _, d := range n.dependentRequired {
			if _, has := v[d.name]; has {
				cost += len(d.required) / missingPerStep
			}
		}
		for name := range v {
			cost += len(name) / bytesPerStep
		}
	}
	return cost
}

// countNotes counts the notes of a schema and those beside it.
func (n *node) countNotes() int {
	if n.notes == 0 {
		n.notes = len(n.properties)
		for _, beside := range n.inPlace() {
			n.notes += beside.countNotes()
		}
	}
	return n.notes
}
