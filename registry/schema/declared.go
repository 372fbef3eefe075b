package schema

import "slices"

// objectLike reports whether a schema, or one of its branches, says that the value
// is or may be an object with members of its own.
func (b *bundler) objectLike(s *subschema) bool {
	return b.anySchema(s, b.objects, func(s *subschema) bool {
		object := s.object()
		if allowsObject(object) {
			return true
		}
		for name := range object {
			if keywords[name].object {
				return true
			}
		}
		return false
	})
}

// declares reports whether a schema, or a branch of it, declares a member or says
// what others there may be. properties: {} declares none: authors who write it
// mostly mean any, and are visited to say so.
func (b *bundler) declares(s *subschema) bool {
	return b.anySchema(s, b.declared, func(s *subschema) bool {
		for _, name := range []string{"additionalProperties", "unevaluatedProperties"} {
			if _, has := s.object()[name]; has {
				return true
			}
		}
		for _, name := range []string{"properties", "patternProperties"} {
			if members, _ := s.object()[name].(map[string]any); len(members) > 0 {
				return true
			}
		}
		return false
	})
}

// anySchema reports whether a schema or one of its branches, at any depth, has a
// property. Answers are kept in known.
func (b *bundler) anySchema(s *subschema, known map[*subschema]bool, has func(*subschema) bool) bool {
	if answer, ok := known[s]; ok {
		return answer
	}
	if has(s) {
		known[s] = true
		return true
	}
	branches := b.branches(s)
	if len(branches) == 0 {
		known[s] = false
		return false
	}
	visited := map[*subschema]bool{s: true}
	var visit func(s *subschema) bool
	visit = func(s *subschema) bool {
		if visited[s] {
			return false
		}
		visited[s] = true
		return known[s] || has(s) || slices.ContainsFunc(b.branches(s), visit)
	}
	found := slices.ContainsFunc(branches, visit)
	if !found {
		for v := range visited {
			known[v] = false
		}
	}
	known[s] = found
	return found
}

// branches lists the schemas that apply to the same value and may declare members.
func (b *bundler) branches(s *subschema) []*subschema {
	var list []*subschema
	for _, c := range s.children {
		if keywords[c.keyword].scope == inPlaceApplicator {
			for _, h := range c.schemas {
				list = append(list, h.sub)
			}
		}
	}
	if t := b.targets[s]; t != nil {
		list = append(list, t)
	}
	return list
}

// allowsObject reports whether a schema's type is object, alone or in a list.
func allowsObject(object map[string]any) bool {
	switch t := object["type"].(type) {
	case string:
		return t == "object"
	case []any:
		return slices.Contains(t, any("object"))
	}
	return false
}

// undeclaredObjects lists the schemas below the root that say their value is an
// object and nothing of its members: closed, they would accept {} alone, which
// nobody means; in a branch, they would accept anything, which nobody said.
func (b *bundler) undeclaredObjects(root *subschema) []*subschema {
	var list []*subschema
	type visit struct {
		sub    *subschema
		at     position
		member bool // the value is inside another
	}
	walkOnce(visit{root, rootPosition, false}, func(v visit, walk func(visit)) {
		s := v.sub
		bare := v.at == valuePosition && b.objectLike(s) || v.at == unchanged && v.member && allowsObject(s.object())
		if bare && !b.declares(s) && !slices.Contains(list, s) {
			list = append(list, s)
		}
		for _, c := range s.children {
			if sc := keywords[c.keyword].scope; sc == childApplicator || sc == inPlaceApplicator && c.keyword != "if" {
				for _, h := range c.schemas {
					walk(visit{h.sub, childPosition(v.at, c.keyword), sc == childApplicator})
				}
			}
		}
		if t := b.targets[s]; t != nil {
			walk(visit{t, targetPosition(v.at), v.member})
		}
	})
	return list
}

// definingSchema follows references to the schema that defines s.
func (b *bundler) definingSchema(s *subschema) *subschema {
	for range maxSchemaDepth {
		t := b.targets[s]
		if t == nil || allowsObject(s.object()) {
			break
		}
		s = t
	}
	return s
}

// rootFault reports why the root cannot describe arguments, or "".
func (b *bundler) rootFault(root *subschema) string {
	seen := map[*subschema]bool{}
	for s := root; s != nil && !seen[s]; s = b.targets[s] {
		seen[s] = true
		object := s.object()
		if object == nil && s == root {
			return "found " + kindOf(s.raw) + "; expected a schema of type object: arguments are always an object"
		}
		if object["type"] != nil && !allowsObject(object) {
			return "found another type; expected type object: arguments are always an object"
		}
	}
	return ""
}
