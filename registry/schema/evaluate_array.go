package schema

// arrayKeywords evaluates an array by the schema's own keywords for arrays.
func (j *evaluation) arrayKeywords(n *node, v []any, seen *evaluated) bool {
	ok := true
	fail := func(f faultKind) {
		j.invalid(n, v, f)
		ok = false
	}
	if len(v) < n.minItems {
		fail(faultMinItems)
	}
	if n.maxItems >= 0 && len(v) > n.maxItems {
		fail(faultMaxItems)
	}
	if n.uniqueItems && !j.distinctItems(v) {
		fail(faultUnique)
	}
	if n.contains != nil {
		switch count := j.countContains(n, v, seen); {
		case count < n.minContains:
			fail(faultContains)
		case n.maxContains >= 0 && count > n.maxContains:
			fail(faultContainsMany)
		}
	}
	if !ok && j.failFast() {
		return false
	}
	return j.itemKeywords(n, v, seen) && ok
}

func (j *evaluation) itemKeywords(n *node, v []any, seen *evaluated) bool {
	ok := true
	for i, item := range v {
		schema := n.items
		if i < len(n.prefixItems) {
			schema = n.prefixItems[i]
		}
		if schema == nil {
			break
		}
		ok = j.itemAt(schema, i, item) && ok
		if !ok && j.failFast() || j.exhausted {
			return false
		}
	}
	if seen != nil {
		seen.upTo = max(seen.upTo, min(len(n.prefixItems), len(v)))
		if n.items != nil {
			seen.upTo = len(v)
		}
	}
	return ok
}

func (j *evaluation) itemAt(n *node, i int, item any) bool {
	if n.empty && !j.exhaustive {
		return j.spend(1)
	}
	j.push(pathToken{index: i})
	ok := j.apply(n, item, nil)
	j.pop()
	return ok
}

func (j *evaluation) countContains(n *node, v []any, seen *evaluated) int {
	count := 0
	for i, item := range v {
		if j.test(n.contains, item, nil) {
			count++
			seen.item(i)
		}
		if j.exhausted {
			break
		}
	}
	return count
}

func (j *evaluation) unevaluatedItems(n *node, v []any, seen *evaluated) bool {
	ok := true
	for i := seen.upTo; i < len(v) && !seen.all; i++ {
		if _, has := seen.items[i]; has {
			continue
		}
		ok = j.itemAt(n.unevaluatedItems, i, v[i]) && ok
		if !ok && j.failFast() || j.exhausted {
			return false
		}
	}
	return ok
}

// distinctItems reports whether no two items are equal.
func (j *evaluation) distinctItems(v []any) bool {
	if len(v) < 2 {
		return true
	}
	forms := make(map[string]struct{}, len(v))
	var form []byte
	for _, item := range v {
		form = appendCanonical(form[:0], item)
		if _, twice := forms[string(form)]; twice || !j.spend(1+len(form)/bytesWrittenPerStep) {
			return false
		}
		forms[string(form)] = struct{}{}
	}
	return true
}
