package plain

import "unicode/utf8"

// Judge says what is certain of a value, as JSON: that it is accepted, or that it is refused. Neither is
// certain of one that takes too many steps or nests too deeply.
func (p *Program) Judge(value []byte) (accepted, refused bool) {
	r := run{p: p, b: value}
	accepted = r.whole()
	return accepted, !accepted && !r.tooDeep && r.steps <= p.maxSteps
}

// Within reports whether a value is valid and all its texts that have a boundary are within
// it, as within says. False has, beside those of Judge, the reason that one is not.
func (p *Program) Within(value []byte, within func(boundary, text string) bool) bool {
	r := run{p: p, b: value, within: within}
	return r.whole()
}

func (r *run) whole() bool {
	r.space()
	ok := r.value(r.p.root, 1)
	r.space()
	return ok && r.i == len(r.b)
}

func (r *run) value(at, depth int) bool {
	n := &r.p.nodes[at]
	if depth > maxDepth {
		r.tooDeep = true
		return false
	}
	if !r.spend(n.steps) {
		return false
	}
	switch r.peek() {
	case '{':
		return n.kinds&kindObject != 0 && n.enums == nil && r.object(n.objects, depth)
	case '[':
		return n.kinds&kindArray != 0 && n.enums == nil && r.array(n.arrays, depth)
	case '"':
		return n.kinds&kindString != 0 && r.text(n)
	case 't':
		return n.kinds&kindBoolean != 0 && r.word("true") && n.lists(func(s *scalars) bool { return s.yes })
	case 'f':
		return n.kinds&kindBoolean != 0 && r.word("false") && n.lists(func(s *scalars) bool { return s.no })
	case 'n':
		return n.kinds&kindNull != 0 && r.word("null") && n.lists(func(s *scalars) bool { return s.null })
	}
	return n.kinds&(kindNumber|kindInteger) != 0 && r.number(n)
}

// lists reports whether every enum and const has a value.
func (n *node) lists(has func(*scalars) bool) bool {
	for _, s := range n.enums {
		if !has(s) {
			return false
		}
	}
	return true
}

func (r *run) object(o *objectRules, depth int) bool {
	r.i++
	r.space()
	var seen [maxNames / 64]uint64
	count := 0
	for r.peek() != '}' {
		if count > 0 {
			if !r.take(',') {
				return false
			}
			r.space()
		}
		name, ok := r.literal()
		if !ok || !r.spend(4+(name.to-name.from)/bytesPerStep) {
			return false
		}
		count++
		child := anything
		if o != nil {
			child = o.additional
			if i := r.find(&o.names, name); i >= 0 {
				bit := uint64(1) << (i % 64)
				if seen[i/64]&bit != 0 {
					return false
				}
				seen[i/64] |= bit
				child = o.children[i]
			}
		}
		r.space()
		if !r.take(':') {
			return false
		}
		r.space()
		if !r.value(child, depth+1) {
			return false
		}
		r.space()
	}
	r.i++
	if o == nil {
		return true
	}
	for i, required := range o.required {
		if seen[i]&required != required {
			return false
		}
	}
	return count >= o.minProperties && count <= o.maxProperties
}

func (r *run) array(a *arrayRules, depth int) bool {
	r.i++
	r.space()
	items := anything
	if a != nil {
		items = a.items
	}
	count := 0
	for r.peek() != ']' {
		if count > 0 {
			if !r.take(',') {
				return false
			}
			r.space()
		}
		count++
		if !r.value(items, depth+1) {
			return false
		}
		r.space()
	}
	r.i++
	return a == nil || count >= a.minItems && count <= a.maxItems
}

// find looks a text up.
func (r *run) find(t *table, s literal) int {
	if s.escapes == 0 {
		return t.find(r.b[s.from:s.to])
	}
	var short [64]byte
	return t.find(appendUnescaped(short[:0], r.b[s.from:s.to]))
}

func (r *run) text(n *node) bool {
	s, ok := r.literal()
	size := s.to - s.from
	if !ok || !r.spend(size/bytesPerStep) {
		return false
	}
	for _, e := range n.enums {
		if r.find(&e.texts, s) < 0 {
			return false
		}
	}
	if n.texts != nil && !r.textRules(n.texts, s) {
		return false
	}
	return n.boundary == "" || r.within == nil || r.within(n.boundary, string(appendUnescaped(nil, r.b[s.from:s.to])))
}

func (r *run) textRules(t *textRules, s literal) bool {
	raw := r.b[s.from:s.to]
	length := len(raw)
	if !s.ascii {
		length = utf8.RuneCount(raw)
	}
	if length -= s.escapes; length < t.minLength || length > t.maxLength {
		return false
	}
	if t.pattern == nil && t.format == nil {
		return true
	}
	if s.escapes > 0 {
		raw = appendUnescaped(make([]byte, 0, len(raw)), raw)
	}
	if t.pattern != nil && (!r.spend(1+len(raw)*t.patternSize/bytesPerStep) || !t.pattern.Match(raw)) {
		return false
	}
	return t.format == nil || t.format.Valid(string(raw))
}
