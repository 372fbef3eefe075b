package schema

import "strconv"

// bundler rewrites a definition into the one document that both judges read:
// closed, self-contained, and free of everything that asserts nothing. Every
// reference leads to #/$defs/N; there are no identifiers, dialects or anchors
// left to be read in two ways.
//
// A schema is closed where it describes a place in the arguments, never where
// it is a branch or a test. Both may refer to one definition, so
// that each position gets its own copy.
type bundler struct {
	targets    map[*subschema]*subschema
	open       bool // the root keeps what its author wrote of other members
	forDisplay bool // for readers: annotations stay, extensions go
	format     bool // format is asserted

	names    map[copyKey]string
	defs     map[string]any
	objects  map[*subschema]bool
	declared map[*subschema]bool

	marked           bool // a place has a boundary, or is or is not a secret
	secretAdditional bool // members that the root does not declare were marked secret
}

func newBundler(targets map[*subschema]*subschema) *bundler {
	return &bundler{targets: targets, objects: map[*subschema]bool{}, declared: map[*subschema]bool{}}
}

type copyKey struct {
	sub      *subschema
	position position
}

func (b *bundler) document(root *subschema, at position) any {
	b.names, b.defs = map[copyKey]string{}, map[string]any{}
	out := b.emit(root, at)
	object, ok := out.(map[string]any)
	if !ok {
		return out
	}
	if len(b.defs) > 0 {
		object["$defs"] = b.defs
	}
	return object
}

func (b *bundler) emit(s *subschema, st position) any {
	object := s.object()
	if object == nil {
		if s.raw == true && !b.forDisplay {
			// The same, but the library takes true for a schema that has
			// evaluated every member and item.
			return map[string]any{}
		}
		return s.raw
	}
	out := make(map[string]any, len(object)+1)
	for name, value := range object {
		def, known := keywords[name]
		switch {
		case !known:
			if !b.forDisplay && (name == boundaryKey || name == secretKey) {
				out[name], b.marked = value, true
			}
			continue
		case name == "format" && !b.format && !b.forDisplay:
			continue
		}
		switch def.shape {
		case plainValue:
			if pattern, ok := value.(string); ok && name == "pattern" && !b.forDisplay {
				value = RE2(pattern)
			}
			out[name] = value
		case annotation:
			if b.forDisplay && name != "$comment" {
				out[name] = value
			}
		case reference:
			if t := b.targets[s]; t != nil {
				out[name] = "#/$defs/" + b.copy(t, targetPosition(st))
			}
		case oneSchema:
			out[name] = b.emit(s.under(name)[0].sub, childPosition(st, name))
		case schemaList:
			list := []any{}
			for _, h := range s.under(name) {
				list = append(list, b.emit(h.sub, childPosition(st, name)))
			}
			out[name] = list
		case schemaMap:
			members := map[string]any{}
			for _, h := range s.under(name) {
				key := h.name
				if name == "patternProperties" && !b.forDisplay {
					for key = RE2(key); members[key] != nil; key = "(?:" + key + ")" { // one pattern in two spellings
					}
				}
				members[key] = b.emit(h.sub, childPosition(st, name))
			}
			out[name] = members
		}
	}
	b.closeObject(s, st, out)
	return out
}

// copy returns the name of the copy of a target for one way of standing, and
// makes it when it is asked for first. The name is reserved before the copy is
// made, so that recursion ends.
func (b *bundler) copy(t *subschema, st position) string {
	key := copyKey{t, st}
	name, ok := b.names[key]
	if !ok {
		name = strconv.Itoa(len(b.names) + 1)
		b.names[key] = name
		b.defs[name] = b.emit(t, st)
	}
	return name
}

// closeObject makes an object schema accept the members it declares and no others.
func (b *bundler) closeObject(s *subschema, st position, out map[string]any) {
	if st.atRoot() && !b.open {
		b.dropAdditional(s, st, out)
	}
	b.forbidAdditional(s, st, out)
}

// forbidAdditional makes a place refuse additional properties.
func (b *bundler) forbidAdditional(s *subschema, st position, out map[string]any) {
	switch {
	case st == rootPosition:
		defaultToObject(out)
	case st != valuePosition || !b.objectLike(s):
		return
	}
	if st == valuePosition || b.open {
		if out["additionalProperties"] != nil || out["unevaluatedProperties"] != nil {
			return
		}
	}
	if b.noBranches(out) {
		// Without a schema beside it that may declare more, this says the same
		// and every reader knows it.
		out["additionalProperties"] = false
		return
	}
	out["unevaluatedProperties"] = false
}

// noBranches reports whether a schema has no in-place applicators.
func (b *bundler) noBranches(out map[string]any) bool {
	for name := range out {
		if keywords[name].scope == inPlaceApplicator {
			return false
		}
	}
	return true
}

// defaultToObject says of the root that it is an object.
func defaultToObject(out map[string]any) map[string]any {
	if _, has := out["type"]; !has {
		out["type"] = "object"
	}
	return out
}
