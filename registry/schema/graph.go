package schema

import "slices"

// walk calls f once for every schema that can be reached.
func (n *node) walk(f func(*node)) {
	walkOnce(n, func(n *node, visit func(*node)) {
		f(n)
		for _, next := range n.inPlace() {
			visit(next)
		}
		for _, next := range n.children() {
			visit(next)
		}
		if n.not != nil {
			visit(n.not)
		}
	})
}

// walkOnce calls visit for start, and for all that visit hands to walk, once each.
func walkOnce[T comparable](start T, visit func(at T, walk func(T))) {
	seen := map[T]bool{}
	var walk func(T)
	walk = func(at T) {
		if !seen[at] {
			seen[at] = true
			visit(at, walk)
		}
	}
	walk(start)
}

// children lists the child applicators: the schemas that apply to a part of the value.
func (n *node) children() []*node {
	var list []*node
	for _, name := range n.sortedProperties {
		list = append(list, n.properties[name])
	}
	for _, p := range n.patternProperties {
		list = append(list, p.node)
	}
	list = append(list, n.prefixItems...)
	for _, next := range []*node{n.additionalProperties, n.propertyNames, n.items, n.contains, n.unevaluatedProperties,
		n.unevaluatedItems} {
		if next != nil {
			list = append(list, next)
		}
	}
	return list
}

// inPlace lists the in-place applicators: the schemas that apply to the same value
// and may mark parts of it as evaluated.
func (n *node) inPlace() []*node {
	list := slices.Concat(n.allOf, n.anyOf, n.oneOf)
	for _, d := range n.dependentSchemas {
		list = append(list, d.node)
	}
	for _, b := range []*node{n.ref, n.ifSchema, n.thenSchema, n.elseSchema} {
		if b != nil {
			list = append(list, b)
		}
	}
	return list
}
