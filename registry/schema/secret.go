package schema

import (
	"slices"

	"github.com/callgate/callgate/internal/ascii"
)

// Secret reports whether the place at path, or one above it, is marked x-secret
// in any schema that may evaluate it, branches included. A place that no schema
// describes is not secret, unless the author marked members secret that the
// root does not declare: then it may not be known by its name.
func (s *Schema) Secret(path []string) bool {
	if !s.hasSecrets {
		return false
	}
	at := inPlaceClosure([]*node{s.root})
	if s.secretAdditional && len(path) > 0 && !slices.ContainsFunc(at, func(n *node) bool { return n.declares(path[0]) }) {
		return true
	}
	for i := 0; ; i++ {
		if slices.ContainsFunc(at, func(n *node) bool { return n.secret }) {
			return true
		}
		if i == len(path) || len(at) == 0 {
			return false
		}
		at = inPlaceClosure(step(at, path[i]))
	}
}

// declares reports whether a schema declares a member of this name.
func (n *node) declares(name string) bool {
	_, listed := n.properties[name]
	return listed || slices.ContainsFunc(n.patternProperties, func(p patternProperty) bool { return p.expr.MatchString(name) })
}

// inPlaceClosure adds every schema that applies to the same value.
func inPlaceClosure(at []*node) []*node {
	for i := 0; i < len(at); i++ {
		next := at[i].inPlace()
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

// step follows one token, which may be a member's name or an index.
func step(at []*node, token string) []*node {
	list := memberSchemas(at, token)
	add := func(n *node) {
		if n != nil && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	if ascii.AllDigits(token) && len(token) < 10 {
		for _, n := range itemSchemas(at, ascii.Number(token)) {
			add(n)
		}
		for _, n := range at {
			add(n.contains)
		}
	}
	for _, n := range at {
		add(n.unevaluatedProperties)
	}
	return list
}
