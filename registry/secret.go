package registry

import "slices"

// Secret tells whether the place at path, or one above it, is marked x-secret
// in any schema that may judge it, branches included. A place that no schema
// describes is not secret, unless the author marked members secret that the
// root does not declare: then it may not be known by its name.
func (e *Entry) Secret(path []string) bool {
	if !e.secretive {
		return false
	}
	at := everyNode([]*node{e.input.root})
	if e.input.secretOthers && len(path) > 0 && !slices.ContainsFunc(at, func(n *node) bool { return n.lists(path[0]) }) {
		return true
	}
	for i := 0; ; i++ {
		if slices.ContainsFunc(at, func(n *node) bool { return n.secret }) {
			return true
		}
		if i == len(path) || len(at) == 0 {
			return false
		}
		at = everyNode(onward(at, path[i]))
	}
}

// lists tells whether a schema declares a member of this name.
func (n *node) lists(name string) bool {
	_, listed := n.properties[name]
	return listed || slices.ContainsFunc(n.patterns, func(p patternNode) bool { return p.expr.MatchString(name) })
}

// everyNode adds everything that judges the same value.
func everyNode(at []*node) []*node {
	for i := 0; i < len(at); i++ {
		next := at[i].beside()
		if at[i].not != nil {
			next = append(next, at[i].not)
		}
		for _, n := range next {
			if !slices.Contains(at, n) {
				at = append(at, n)
			}
		}
	}
	return at
}

// onward follows one token, which may be a member's name or an index.
func onward(at []*node, token string) []*node {
	list := ofMember(at, token)
	add := func(n *node) {
		if n != nil && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	if allDigits(token) && len(token) < 10 {
		for _, n := range ofItem(at, digits(token)) {
			add(n)
		}
		for _, n := range at {
			add(n.contains)
		}
	}
	for _, n := range at {
		add(n.restProps)
	}
	return list
}
