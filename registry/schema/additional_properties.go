package schema

import "slices"

// additionalKeywords constrain members that no other keyword names; read only.
var additionalKeywords = [...]string{"additionalProperties", "unevaluatedProperties"}

// dropAdditional removes additionalProperties and unevaluatedProperties from every
// schema that applies to the arguments themselves. The value false refuses as much
// as closing does and stays. Beside branches or references, a schema for additional
// members may also apply to members that those declare: it is kept as an assertion
// that declares nothing.
func (b *bundler) dropAdditional(s *subschema, st position, out map[string]any) {
	asserts := false
	for _, name := range additionalKeywords {
		value, has := s.object()[name]
		if !has || value == false && !b.verdictMayChange(s, st, name) {
			continue
		}
		delete(out, name)
		asserts = asserts || value != true
	}
	if !asserts {
		return
	}
	if st == rootPosition && b.noBranches(out) {
		b.secretAdditional = b.secretAdditional || b.containsSecret(s)
		return
	}
	twice := map[string]any{"not": map[string]any{"not": map[string]any{"$ref": "#/$defs/" + b.copy(s, unchanged)}}}
	all, _ := out["allOf"].([]any)
	out["allOf"] = append(slices.Clip(all), twice)
}

// verdictMayChange reports whether unevaluatedProperties: false would refuse more once
// other members are no longer evaluated beside it. That narrows wherever the
// schema must accept, but inside if and checkOneOf its verdict has to stay the same.
func (b *bundler) verdictMayChange(s *subschema, st position, name string) bool {
	return st == rootTest && name == "unevaluatedProperties" && (s.object()["additionalProperties"] != nil || !b.noBranches(s.object()))
}

// ignoredAdditional lists the schemas that dropAdditional removes.
func (b *bundler) ignoredAdditional(s *subschema) []subschemaRef {
	var list []subschemaRef
	for _, name := range additionalKeywords {
		if inside := s.under(name); len(inside) > 0 && !b.open {
			list = append(list, subschemaRef{name, inside[0].sub})
		}
	}
	return list
}

// containsSecret reports whether the schema for additional members marks any part
// of them as secret.
func (b *bundler) containsSecret(s *subschema) bool {
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
		for _, c := range s.children {
			if keywords[c.keyword].shape != definitions &&
				slices.ContainsFunc(c.schemas, func(h subschemaRef) bool { return visit(h.sub) }) {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(b.ignoredAdditional(s), func(h subschemaRef) bool { return visit(h.sub) })
}
