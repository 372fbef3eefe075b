package schema

// authored returns a definition in its author's words, for readers that ask for
// them: dialect, anchors, definitions and extensions stay where they stand. It is
// closed where that takes no more than a word beside them: at the root, and at the
// places below it that are not within a definition. The schema that values are
// evaluated by (Closed) is closed everywhere.
func (b *bundler) authored(s *subschema, st position) any {
	object := s.object()
	if object == nil {
		return s.raw
	}
	out := make(map[string]any, len(object)+1)
	for name, value := range object {
		if name == boundaryKey || name == secretKey {
			continue
		}
		out[name] = value
		list := s.under(name)
		switch keywords[name].shape {
		case oneSchema:
			out[name] = b.authored(list[0].sub, childPosition(st, name))
		case schemaList:
			schemas := []any{}
			for _, h := range list {
				schemas = append(schemas, b.authored(h.sub, childPosition(st, name)))
			}
			out[name] = schemas
		case schemaMap, definitions:
			members := map[string]any{}
			for _, h := range list {
				members[h.name] = b.authored(h.sub, childPosition(st, name))
			}
			out[name] = members
		}
	}
	if st == rootPosition && !b.open {
		for _, name := range additionalKeywords {
			if out[name] != false {
				delete(out, name)
			}
		}
		if out["additionalProperties"] == false {
			return defaultToObject(out)
		}
	}
	b.forbidAdditional(s, st, out)
	return out
}
