package schema

import (
	"maps"
	"slices"
	"strconv"
)

// BoundaryValue is one text of the arguments that must stay within a boundary.
type BoundaryValue struct {
	Kind  string   // as x-boundary names it: path, host, url, workspace, project or a resource
	Path  []string // from the arguments: member names, unescaped, and indices
	Value string
}

// Boundaries lists every text of valid arguments that stands under x-boundary,
// sorted by path. Null is skipped.
func (s *Schema) Boundaries(args map[string]any) []BoundaryValue {
	if !s.bounded {
		return nil
	}
	f := finder{}
	f.walk([]*node{s.root}, args)
	return f.found
}

// WithinJSON reports whether a value, as strict JSON, is valid and every text that Boundaries
// would list is within its boundary, where the program of a plain schema can tell. False means
// that Judge and Boundaries decide.
func (s *Schema) WithinJSON(value []byte, within func(kind, text string) bool) bool {
	return s.plain != nil && s.plain.Within(value, within)
}

type finder struct {
	path  []string
	found []BoundaryValue
}

// walk meets one value with the schemas that stand for its place.
func (f *finder) walk(at []*node, v any) {
	at = withRefs(at)
	for _, n := range at {
		if n.boundary != "" {
			f.take(n.boundary, v)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			f.enter(name, memberSchemas(at, name), v[name])
		}
	case []any:
		for i, item := range v {
			f.enter(strconv.Itoa(i), itemSchemas(at, i), item)
		}
	}
}

func (f *finder) enter(token string, at []*node, v any) {
	if len(at) == 0 {
		return
	}
	f.path = append(f.path, token)
	f.walk(at, v)
	f.path = f.path[:len(f.path)-1]
}

func (f *finder) take(kind string, v any) {
	switch v := v.(type) {
	case string:
		f.found = append(f.found, BoundaryValue{Kind: kind, Path: slices.Clone(f.path), Value: v})
	case []any:
		for i, item := range v {
			if text, ok := item.(string); ok {
				f.found = append(f.found, BoundaryValue{Kind: kind, Path: append(slices.Clone(f.path), strconv.Itoa(i)), Value: text})
			}
		}
	}
}

// withRefs adds the targets of references.
func withRefs(at []*node) []*node {
	for i := 0; i < len(at); i++ {
		if r := at[i].ref; r != nil && !slices.Contains(at, r) {
			at = append(at, r)
		}
	}
	return at
}

// memberSchemas lists the schemas that may apply to a member.
func memberSchemas(at []*node, name string) []*node {
	var list []*node
	add := func(n *node) {
		if n != nil && !n.never && !n.empty && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	for _, n := range at {
		p, known := n.properties[name]
		add(p)
		for _, p := range n.patternProperties {
			if p.expr.MatchString(name) {
				known = true
				add(p.node)
			}
		}
		if !known {
			add(n.additionalProperties)
			add(n.unevaluatedProperties)
		}
	}
	return list
}

// itemSchemas lists the schemas that may apply to an item.
func itemSchemas(at []*node, i int) []*node {
	var list []*node
	add := func(n *node) {
		if n != nil && !n.never && !n.empty && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	for _, n := range at {
		if i < len(n.prefixItems) {
			add(n.prefixItems[i])
		} else {
			add(n.items)
			add(n.unevaluatedItems)
		}
	}
	return list
}
