package registry

import (
	"slices"
	"strconv"
)

// bundle rewrites a definition into the one document that all judges see:
// closed, self-contained, and free of everything that judges nothing. Every
// reference leads to #/$defs/N; there are no identifiers, dialects or anchors
// left to be read in two ways.
//
// A schema is closed where it stands for a place in the arguments, never where
// it is a branch or a test. One definition may be referred to from both, so
// that each way of standing gets its own copy.
type bundle struct {
	targets map[*subschema]*subschema
	open    bool // the root keeps what its author wrote of other members
	shown   bool // for readers: annotations stay, extensions go
	format  bool // format is asserted

	names    map[copyOf]string
	defs     map[string]any
	objects  map[*subschema]bool
	declared map[*subschema]bool
}

func newBundle(targets map[*subschema]*subschema) *bundle {
	return &bundle{targets: targets, objects: map[*subschema]bool{}, declared: map[*subschema]bool{}}
}

// stand is the way in which a schema stands.
type stand int

const (
	asWritten stand = iota // in a branch or a test
	asPlace                // for a place below the root
	asRoot                 // for the arguments themselves
	inPlace                // target of a reference that a place holds
	inRoot                 // target of a reference that the root holds
)

type copyOf struct {
	sub   *subschema
	stand stand
}

func (b *bundle) document(root *subschema, stand stand) any {
	b.names, b.defs = map[copyOf]string{}, map[string]any{}
	out := b.emit(root, stand)
	object, ok := out.(map[string]any)
	if !ok {
		return out
	}
	if len(b.defs) > 0 {
		object["$defs"] = b.defs
	}
	return object
}

func (b *bundle) emit(s *subschema, st stand) any {
	object := s.object()
	if object == nil {
		if s.raw == true && !b.shown {
			// The same, but the second judge takes true for a schema that has
			// judged every member and item.
			return map[string]any{}
		}
		return s.raw
	}
	out := make(map[string]any, len(object)+1)
	for name, value := range object {
		def, known := keywords[name]
		switch {
		case !known:
			if !b.shown && (name == boundaryKey || name == secretKey) {
				out[name] = value
			}
			continue
		case name == "format" && !b.format && !b.shown:
			continue
		}
		switch def.shape {
		case plainValue:
			out[name] = value
		case annotation:
			if b.shown && name != "$comment" {
				out[name] = value
			}
		case reference:
			if t := b.targets[s]; t != nil {
				out[name] = "#/$defs/" + b.copy(t, targetStand(st))
			}
		case oneSchema:
			out[name] = b.emit(s.children[name][0].sub, childStand(st, name))
		case schemaList:
			list := []any{}
			for _, h := range s.children[name] {
				list = append(list, b.emit(h.sub, childStand(st, name)))
			}
			out[name] = list
		case schemaMap:
			members := map[string]any{}
			for _, h := range s.children[name] {
				members[h.name] = b.emit(h.sub, childStand(st, name))
			}
			out[name] = members
		}
	}
	b.close(s, st, out)
	return out
}

// copy returns the name of the copy of a target for one way of standing, and
// makes it when it is asked for first. The name is reserved before the copy is
// made, so that recursion ends.
func (b *bundle) copy(t *subschema, st stand) string {
	key := copyOf{t, st}
	name, ok := b.names[key]
	if !ok {
		name = strconv.Itoa(len(b.names) + 1)
		b.names[key] = name
		b.defs[name] = b.emit(t, st)
	}
	return name
}

func targetStand(st stand) stand {
	switch st {
	case asPlace, inPlace:
		return inPlace
	case asRoot, inRoot:
		return inRoot
	}
	return asWritten
}

func childStand(st stand, name string) stand {
	if st == asWritten || keywords[name].scope != inMember {
		return asWritten
	}
	return asPlace
}

// close makes an object schema accept the members it declares and no others.
func (b *bundle) close(s *subschema, st stand, out map[string]any) {
	root := st == asRoot || st == inRoot
	if root && !b.open {
		b.dropOthers(s, st, out)
	}
	switch {
	case st == asRoot:
		if _, has := out["type"]; !has {
			out["type"] = "object"
		}
	case st != asPlace || !b.objectLike(s):
		return
	}
	if st == asPlace || b.open {
		if out["additionalProperties"] != nil || out["unevaluatedProperties"] != nil {
			return
		}
	}
	if b.lonely(out) {
		// Without a schema beside it that may declare more, this says the same
		// and every reader knows it.
		out["additionalProperties"] = false
		return
	}
	out["unevaluatedProperties"] = false
}

// dropOthers ignores what the author wrote of other members at the root. What
// says false refuses as much as closing does and stays. A schema for other
// members may, beside branches or references, judge members that those
// declare: it is kept as an assertion that declares nothing.
func (b *bundle) dropOthers(s *subschema, st stand, out map[string]any) {
	judges := false
	for _, name := range []string{"additionalProperties", "unevaluatedProperties"} {
		value, has := s.object()[name]
		if !has || value == false {
			continue
		}
		delete(out, name)
		judges = judges || value != true
	}
	if !judges || st == asRoot && b.lonely(out) {
		return
	}
	twice := map[string]any{"not": map[string]any{"not": map[string]any{"$ref": "#/$defs/" + b.copy(s, asWritten)}}}
	all, _ := out["allOf"].([]any)
	out["allOf"] = append(slices.Clip(all), twice)
}

// lonely tells that no other schema judges the same value beside this one.
func (b *bundle) lonely(out map[string]any) bool {
	for name := range out {
		if keywords[name].scope == inBranch {
			return false
		}
	}
	return true
}

// objectLike tells whether a schema, or one that judges the same value for it,
// says that the value is or may be an object with members of its own.
func (b *bundle) objectLike(s *subschema) bool {
	return b.any(s, b.objects, func(s *subschema) bool {
		object := s.object()
		if saysType(object, "object") {
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

// declares tells whether a schema, or a branch of it, declares a member or says
// what others there may be. properties: {} declares none: authors who write it
// mostly mean any, and are asked to say so.
func (b *bundle) declares(s *subschema) bool {
	return b.any(s, b.declared, func(s *subschema) bool {
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

// any tells whether a schema or one of its branches, at any depth, has a
// property. What is found out is kept in known.
func (b *bundle) any(s *subschema, known map[*subschema]bool, has func(*subschema) bool) bool {
	if answer, ok := known[s]; ok {
		return answer
	}
	visited := map[*subschema]bool{}
	var visit func(s *subschema) bool
	visit = func(s *subschema) bool {
		if visited[s] {
			return false
		}
		visited[s] = true
		return known[s] || has(s) || slices.ContainsFunc(b.branches(s), visit)
	}
	found := visit(s)
	if !found {
		for v := range visited {
			known[v] = false
		}
	}
	known[s] = found
	return found
}

// branches lists the schemas that judge the same value and may declare members.
func (b *bundle) branches(s *subschema) []*subschema {
	var list []*subschema
	for _, name := range sortedKeys(s.children) {
		if keywords[name].scope == inBranch {
			for _, h := range s.children[name] {
				list = append(list, h.sub)
			}
		}
	}
	if t := b.targets[s]; t != nil {
		list = append(list, t)
	}
	return list
}

func saysType(object map[string]any, name string) bool {
	switch t := object["type"].(type) {
	case string:
		return t == name
	case []any:
		return slices.Contains(t, any(name))
	}
	return false
}

// memberless lists the schemas below the root that say their value is an
// object and nothing of its members: closed, they would accept {} alone, which
// nobody means; in a branch, they would accept anything, which nobody said.
func (b *bundle) memberless(root *subschema) []*subschema {
	var list []*subschema
	type visit struct {
		sub    *subschema
		stand  stand
		member bool // the value is inside another
	}
	seen := map[visit]bool{}
	var walk func(v visit)
	walk = func(v visit) {
		if seen[v] {
			return
		}
		seen[v] = true
		s := v.sub
		bare := v.stand == asPlace && b.objectLike(s) || v.stand == asWritten && v.member && saysType(s.object(), "object")
		if bare && !b.declares(s) && !slices.Contains(list, s) {
			list = append(list, s)
		}
		for _, name := range sortedKeys(s.children) {
			if sc := keywords[name].scope; sc == inMember || sc == inBranch && name != "if" {
				for _, h := range s.children[name] {
					walk(visit{h.sub, childStand(v.stand, name), sc == inMember})
				}
			}
		}
		if t := b.targets[s]; t != nil {
			walk(visit{t, targetStand(v.stand), v.member})
		}
	}
	walk(visit{root, asRoot, false})
	return list
}

// ownTarget follows references to the schema that says what s is.
func (b *bundle) ownTarget(s *subschema) *subschema {
	for range maxSchemaDepth {
		t := b.targets[s]
		if t == nil || saysType(s.object(), "object") {
			break
		}
		s = t
	}
	return s
}

// mustBeObject reports why the root cannot describe arguments, or "".
func (b *bundle) mustBeObject(root *subschema) string {
	seen := map[*subschema]bool{}
	for s := root; s != nil && !seen[s]; s = b.targets[s] {
		seen[s] = true
		object := s.object()
		if object == nil && s == root {
			return "found " + kindOf(s.raw) + "; expected a schema of type object: arguments are always an object"
		}
		if object["type"] != nil && !saysType(object, "object") {
			return "found another type; expected type object: arguments are always an object"
		}
	}
	return ""
}
