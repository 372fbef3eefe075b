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

// checkBoundaries reports where x-boundary stands but would not surely be found:
// below a combinator, where the root's word on other members is ignored, or on
// what is not text.
func (b *bundler) checkBoundaries(l *resolver, root *subschema) {
	type visit struct {
		sub     *subschema
		below   string // the combinator above, or ""
		ignored string // the keyword of the root above that is ignored, or ""
		root    bool   // the value is the arguments themselves
	}
	seen := map[visit]bool{}
	var walk func(v visit)
	walk = func(v visit) {
		if seen[v] {
			return
		}
		seen[v] = true
		s := v.sub
		if _, has := s.object()[boundaryKey]; has {
			at := child(s.pointer, boundaryKey)
			switch {
			case v.ignored != "":
				l.report(at, "found x-boundary in "+v.ignored+" at the root, which is ignored there; expected the member to be declared in properties, or open: true on the tool")
			case v.below != "":
				l.report(at, "found x-boundary below "+v.below+"; expected it where every value of that place meets it")
			case !b.textual(s, true):
				l.report(at, "found x-boundary on what is not text; expected type string, or type array with items of type string")
			}
		}
		ignored := b.ignoredAdditional(s)
		for _, name := range slices.Sorted(maps.Keys(s.children)) {
			below := v.below
			if below == "" && (keywords[name].scope == inPlaceApplicator || keywords[name].scope == testApplicator) {
				below = name
			}
			if keywords[name].shape == definitions {
				continue
			}
			for _, h := range s.children[name] {
				next := visit{sub: h.sub, below: below, ignored: v.ignored, root: v.root && keywords[name].scope == inPlaceApplicator}
				if v.root && slices.ContainsFunc(ignored, func(i subschemaRef) bool { return i.name == name }) {
					next.ignored = name
				}
				walk(next)
			}
		}
		if t := b.targets[s]; t != nil {
			walk(visit{t, v.below, v.ignored, v.root})
		}
	}
	walk(visit{sub: root, root: true})
}

// textual tells whether a schema allows only text and null, or arrays of them.
func (b *bundler) textual(s *subschema, arrays bool) bool {
	for range maxSchemaDepth {
		object := s.object()
		if types := object["type"]; types != nil {
			list, ok := types.([]any)
			if !ok {
				list = []any{types}
			}
			return !slices.ContainsFunc(list, func(t any) bool {
				return t != "string" && t != "null" && (t != "array" || !arrays || !b.textItems(s))
			})
		}
		next := b.targets[s]
		if next == nil {
			return false
		}
		s = next
	}
	return false
}

func (b *bundler) textItems(s *subschema) bool {
	if len(s.children["items"]) == 0 {
		return false
	}
	for _, h := range slices.Concat(s.children["items"], s.children["prefixItems"]) {
		if h.sub.raw != false && !b.textual(h.sub, false) {
			return false
		}
	}
	return true
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

// withRefs adds what the schemas refer to.
func withRefs(at []*node) []*node {
	for i := 0; i < len(at); i++ {
		if r := at[i].ref; r != nil && !slices.Contains(at, r) {
			at = append(at, r)
		}
	}
	return at
}

// memberSchemas lists the schemas that may judge a member.
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

// itemSchemas lists the schemas that may judge an item.
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
