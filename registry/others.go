package registry

import "slices"

// otherKeywords say what the members may be that nothing names; read only.
var otherKeywords = [...]string{"additionalProperties", "unevaluatedProperties"}

// dropOthers ignores what the author wrote of other members at the root, in
// every schema that judges the arguments themselves. What says false refuses as
// much as closing does and stays. A schema for other members may, beside
// branches or references, judge members that those declare: it is kept as an
// assertion that declares nothing.
func (b *bundle) dropOthers(s *subschema, st stand, out map[string]any) {
	judges := false
	for _, name := range otherKeywords {
		value, has := s.object()[name]
		if !has || value == false && !b.depends(s, st, name) {
			continue
		}
		delete(out, name)
		judges = judges || value != true
	}
	if !judges {
		return
	}
	if st == asRoot && b.lonely(out) {
		b.secretOthers = b.secretOthers || b.holdsSecret(s)
		return
	}
	twice := map[string]any{"not": map[string]any{"not": map[string]any{"$ref": "#/$defs/" + b.copy(s, asWritten)}}}
	all, _ := out["allOf"].([]any)
	out["allOf"] = append(slices.Clip(all), twice)
}

// depends tells whether unevaluatedProperties: false would refuse more once
// other members are no longer judged beside it. That narrows wherever the
// schema must accept, but inside if and oneOf its verdict has to stay the same.
func (b *bundle) depends(s *subschema, st stand, name string) bool {
	return st == askedOfRoot && name == "unevaluatedProperties" && (s.object()["additionalProperties"] != nil || !b.lonely(s.object()))
}

// ignoredOthers lists what dropOthers ignores of a schema of the root.
func (b *bundle) ignoredOthers(s *subschema) []held {
	var list []held
	for _, name := range otherKeywords {
		if len(s.children[name]) > 0 && !b.open {
			list = append(list, held{name, s.children[name][0].sub})
		}
	}
	return list
}

// holdsSecret tells whether what a schema says of other members marks any of
// it as secret.
func (b *bundle) holdsSecret(s *subschema) bool {
	seen := map[*subschema]bool{}
	var visit func(s *subschema) bool
	visit = func(s *subschema) bool {
		if s == nil || seen[s] {
			return false
		}
		seen[s] = true
		if s.object()[secretKey] == true || visit(b.targets[s]) {
			return true
		}
		for name, list := range s.children {
			if keywords[name].shape != container && slices.ContainsFunc(list, func(h held) bool { return visit(h.sub) }) {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(b.ignoredOthers(s), func(h held) bool { return visit(h.sub) })
}
