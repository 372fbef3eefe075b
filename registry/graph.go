package registry

// each calls f once for every schema that can be reached.
func (n *node) each(f func(*node)) {
	seen := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		f(n)
		for _, next := range n.beside() {
			visit(next)
		}
		for _, next := range n.inside() {
			visit(next)
		}
		visit(n.not)
	}
	visit(n)
}

// inside lists the schemas that judge a part of the value.
func (n *node) inside() []*node {
	var list []*node
	for _, name := range n.propertyNames {
		list = append(list, n.properties[name])
	}
	for _, p := range n.patterns {
		list = append(list, p.node)
	}
	list = append(list, n.prefix...)
	for _, next := range []*node{n.others, n.names, n.items, n.contains, n.restProps, n.restList} {
		if next != nil {
			list = append(list, next)
		}
	}
	return list
}
