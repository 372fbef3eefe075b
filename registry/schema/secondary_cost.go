package schema

import "encoding/json"

// secondaryCost is what the second judge does for a schema whatever the value is: it
// walks all members that a schema names, notes each as judged, and copies the
// notes of every schema beside it. A thorough judgement counts it, so that a
// call which would keep the second judge busy is refused before it begins.
type secondaryCost struct {
	known          bool
	annotated      int // members that are noted as judged
	inherited      int // of them, those that schemas beside this one hand over
	annotatesParts bool
	inheriting     int // schemas beside this one that hand over notes of the value's parts
}

// The rates at which the second judge works, measured; see BenchmarkWorst.
const (
	deepPerStep        = 512 // schemas among which it looks for one applied twice
	annotationsPerStep = 6   // notes made or copied
	requiredPerStep    = 256 // comparisons of a member's name with those required
	comparedPerStep    = 3   // plain values of an enum
	missingPerStep     = 4   // absent members that it lists
)

// countSecondaryCost works out the burden of all schemas that can be reached.
func (n *node) countSecondaryCost() {
	n.walk(func(n *node) { n.ownSecondaryCost() })
}

func (n *node) ownSecondaryCost() *secondaryCost {
	m := &n.secondaryCost
	if m.known {
		return m
	}
	m.known = true
	m.annotatesParts = len(n.patternProperties)+len(n.prefixItems) > 0
	for _, part := range []*node{n.additionalProperties, n.unevaluatedProperties, n.items, n.contains, n.unevaluatedItems} {
		m.annotatesParts = m.annotatesParts || part != nil
	}
	for _, b := range n.inPlace() {
		of := b.ownSecondaryCost()
		m.inherited += of.annotated
		if of.annotatesParts {
			m.inheriting++
			m.annotatesParts = true
		}
	}
	m.annotated = len(n.properties) + m.inherited
	return m
}

// secondaryExtra is what the second judge spends on a value besides one step: it prints
// texts and names, computes with numbers of any size, and compiles the patterns
// of names each time.
func (n *node) secondaryExtra(v any) int {
	cost := 0
	for _, p := range n.patternProperties {
		cost += 16 + p.size/8
	}
	switch v := v.(type) {
	case string:
		cost += len(v) / bytesPerStep
	case json.Number:
		cost += 1 + numberCost(v)
	case []any:
		cost += n.secondaryCost.inheriting * len(v) / annotationsPerStep
	case map[string]any:
		cost += n.secondaryExtraOfMembers(v)
	}
	return cost
}

func (n *node) secondaryExtraOfMembers(v map[string]any) int {
	noted := n.secondaryCost.inherited + len(n.properties) + n.secondaryCost.inheriting*len(v)
	if n.additionalProperties != nil {
		noted += len(n.properties)
	}
	cost := noted/annotationsPerStep + len(n.properties)*len(n.required)/requiredPerStep
	if n.properties != nil || n.additionalProperties != nil || n.unevaluatedProperties != nil || n.propertyNames != nil || len(n.patternProperties) > 0 {
		for name := range v {
			cost += len(name) / bytesPerStep
		}
	}
	return cost
}

// numberCost is what a number adds to computing with it exactly.
func numberCost(v json.Number) int {
	d, ok := parseDecimal(string(v))
	if !ok {
		return 0
	}
	return (len(d.digits) + max(d.exp, -d.exp)) / bytesPerStep
}

// compareCost is what comparing with a value costs, in plain values.
func compareCost(v any) int {
	switch v := v.(type) {
	case string:
		return 1 + len(v)/bytesPerStep
	case json.Number:
		return 3 + 4*numberCost(v)
	case []any:
		sum := 1
		for _, item := range v {
			sum += compareCost(item)
		}
		return sum
	case map[string]any:
		sum := 1
		for name, item := range v {
			sum += 1 + len(name)/bytesPerStep + compareCost(item)
		}
		return sum
	}
	return 1
}

// secondaryCompareCost is what the second judge spends to find a value among these, or to
// find that it is not.
func (v *valueSet) secondaryCompareCost(item any) int {
	last := len(v.list) - 1
	if last < 0 {
		return 0
	}
	if at, has := v.set[string(appendCanonical(nil, item))]; has {
		last = at
	}
	cost := v.compareCosts[last]
	if n, is := item.(json.Number); is {
		cost += (last + 1) * (3 + 4*numberCost(n))
	}
	return cost / comparedPerStep
}
