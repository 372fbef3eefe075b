package schema

import "slices"

// checkBoundaries reports each x-boundary that an evaluation might not find: below a
// combinator, where the root's rule for other members is ignored, or on a value that is not
// text.
func (b *bundler) checkBoundaries(l *resolver, root *subschema) {
	if !l.bounded {
		return
	}
	type visit struct {
		sub     *subschema
		below   string // the combinator above, or ""
		ignored string // the keyword of the root above that is ignored, or ""
		root    bool   // the value is the arguments themselves
	}
	walkOnce(visit{sub: root, root: true}, func(v visit, walk func(visit)) {
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
		for _, c := range s.children {
			name, below := c.keyword, v.below
			if below == "" && (keywords[name].scope == inPlaceApplicator || keywords[name].scope == testApplicator) {
				below = name
			}
			if keywords[name].shape == definitions {
				continue
			}
			for _, h := range c.schemas {
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
	})
}

// textual reports whether a schema allows only text and null, or arrays of them.
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
	if len(s.under("items")) == 0 {
		return false
	}
	for _, h := range slices.Concat(s.under("items"), s.under("prefixItems")) {
		if h.sub.raw != false && !b.textual(h.sub, false) {
			return false
		}
	}
	return true
}
