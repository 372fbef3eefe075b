package registry

import "strconv"

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

	secretOthers bool // members that the root does not declare were marked secret
}

func newBundle(targets map[*subschema]*subschema) *bundle {
	return &bundle{targets: targets, objects: map[*subschema]bool{}, declared: map[*subschema]bool{}}
}

// stand is the way in which a schema stands.
type stand int

const (
	asWritten   stand = iota // in a branch or a test
	asKept                   // for a place of a value that is judged as written: results
	asPlace                  // for a place below the root
	asRoot                   // for the arguments themselves
	inPlace                  // target of a reference that a place holds
	inRoot                   // target of a reference that the root holds
	besideRoot               // a branch that judges the arguments themselves
	askedOfRoot              // the same inside if or oneOf, where to refuse more may be to accept more
)

// sure tells that a value is valid only if a schema that stands so accepts the
// part of it that it stands for.
func (st stand) sure() bool {
	return st == asKept || st == asPlace || st == asRoot || st == inPlace || st == inRoot
}

// ofRoot tells that a schema judges the arguments themselves.
func (st stand) ofRoot() bool {
	return st == asRoot || st == inRoot || st == besideRoot || st == askedOfRoot
}

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
			if name == "enum" && !b.shown && st.sure() && longList(value) {
				name = ownEnumKey
			}
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
	return st
}

func childStand(st stand, name string) stand {
	switch keywords[name].scope {
	case inMember:
		switch st {
		case asKept:
			return asKept
		case asPlace, inPlace, asRoot, inRoot:
			return asPlace
		}
	case inBranch:
		switch {
		case !st.ofRoot():
		case st == askedOfRoot || name == "if" || name == "oneOf":
			return askedOfRoot
		default:
			return besideRoot
		}
	}
	return asWritten
}

// close makes an object schema accept the members it declares and no others.
func (b *bundle) close(s *subschema, st stand, out map[string]any) {
	if st.ofRoot() && !b.open {
		b.dropOthers(s, st, out)
	}
	b.shut(s, st, out)
}

// shut says of a place that it takes no other members.
func (b *bundle) shut(s *subschema, st stand, out map[string]any) {
	switch {
	case st == asRoot:
		rooted(out)
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

// lonely tells that no other schema judges the same value beside this one.
func (b *bundle) lonely(out map[string]any) bool {
	for name := range out {
		if keywords[name].scope == inBranch {
			return false
		}
	}
	return true
}
