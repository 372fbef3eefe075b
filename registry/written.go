package registry

// written returns a definition in its author's words, for readers that ask for
// them: dialect, anchors, definitions and extensions stay where they stand. It is
// closed where that takes no more than a word beside them: at the root, and at the
// places below it that are not within a definition. What is judged by is closed
// everywhere.
func (b *bundle) written(s *subschema, st stand) any {
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
		list := s.children[name]
		switch keywords[name].shape {
		case oneSchema:
			out[name] = b.written(list[0].sub, childStand(st, name))
		case schemaList:
			schemas := []any{}
			for _, h := range list {
				schemas = append(schemas, b.written(h.sub, childStand(st, name)))
			}
			out[name] = schemas
		case schemaMap, container:
			members := map[string]any{}
			for _, h := range list {
				members[h.name] = b.written(h.sub, childStand(st, name))
			}
			out[name] = members
		}
	}
	if st == asRoot && !b.open {
		for _, name := range otherKeywords {
			if out[name] != false {
				delete(out, name)
			}
		}
		if out["additionalProperties"] == false {
			return rooted(out)
		}
	}
	b.shut(s, st, out)
	return out
}

// rooted says of the root that it is an object.
func rooted(out map[string]any) map[string]any {
	if _, has := out["type"]; !has {
		out["type"] = "object"
	}
	return out
}
