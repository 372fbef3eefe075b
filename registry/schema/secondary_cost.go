package schema

import "encoding/json"

// countSecondaryCost computes the cost of all schemas that can be reached.
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

// secondaryExtra is the cost for the secondary evaluator of a value besides one step: it prints
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
