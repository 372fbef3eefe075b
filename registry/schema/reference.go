package schema

// references resolves every $ref of a document, reports those that lead
// nowhere, and documents that a test supplies on the way.
func (l *resolver) references(d *document) map[*subschema]*subschema {
	targets := map[*subschema]*subschema{}
	seen := map[*document]bool{d: true}
	queue := []*document{d}
	for len(queue) > 0 {
		doc := queue[0]
		queue = queue[1:]
		for _, s := range doc.all {
			if _, has := s.object()["$ref"]; !has {
				continue
			}
			t, problem := l.target(s)
			if problem != "" {
				l.report(child(s.pointer, "$ref"), problem)
				continue
			}
			targets[s] = t
			if !seen[t.doc] {
				seen[t.doc] = true
				l.lint(t.doc)
				queue = append(queue, t.doc)
			}
		}
	}
	return targets
}

// cycles reports references that come back to where they started without ever
// looking at a part of the value: evaluating them would never end.
func (l *resolver) cycles(d *document, targets map[*subschema]*subschema) {
	if len(targets) == 0 {
		return
	}
	const (
		open = 1
		done = 2
	)
	state := map[*subschema]int{}
	var visit func(s *subschema)
	visit = func(s *subschema) {
		state[s] = open
		for _, same := range sameValue(s, targets) {
			switch state[same] {
			case open:
				l.report(s.pointer, "found a reference cycle that asserts nothing; expected each cycle to pass through properties, items or another part of the value")
			case done:
			default:
				visit(same)
			}
		}
		state[s] = done
	}
	for _, s := range d.all {
		if state[s] == 0 {
			visit(s)
		}
	}
}

// sameValue lists the schemas that apply to the same value as s: branches,
// tests of the value itself, and the target of $ref.
func sameValue(s *subschema, targets map[*subschema]*subschema) []*subschema {
	var list []*subschema
	for _, c := range s.children {
		if keywords[c.keyword].scope == inPlaceApplicator || c.keyword == "not" {
			for _, h := range c.schemas {
				list = append(list, h.sub)
			}
		}
	}
	if t := targets[s]; t != nil {
		list = append(list, t)
	}
	return list
}
