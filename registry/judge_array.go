package registry

// array judges an array by the keywords for arrays, but for those of other
// schemas beside this one.
func (j *judge) array(n *node, v []any, seen *judged) bool {
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
	if n.unique && !j.distinct(v) {
		fail(faultUnique)
	}
	if n.contains != nil {
		switch count := j.containing(n, v, seen); {
		case count < n.minContains:
			fail(faultContains)
		case n.maxContains >= 0 && count > n.maxContains:
			fail(faultContainsMany)
		}
	}
	if !ok && j.brief() {
		return false
	}
	return j.items(n, v, seen) && ok
}

func (j *judge) items(n *node, v []any, seen *judged) bool {
	ok := true
	for i, item := range v {
		schema := n.items
		if i < len(n.prefix) {
			schema = n.prefix[i]
		}
		if schema == nil {
			break
		}
		ok = j.itemAt(schema, i, item) && ok
		if !ok && j.brief() || j.spent {
			return false
		}
	}
	if seen != nil {
		seen.upTo = max(seen.upTo, min(len(n.prefix), len(v)))
		if n.items != nil {
			seen.upTo = len(v)
		}
	}
	return ok
}

func (j *judge) itemAt(n *node, i int, item any) bool {
	if n.empty && !j.thorough {
		return j.spend(1)
	}
	j.enter(token{index: i})
	ok := j.apply(n, item, nil)
	j.leave()
	return ok
}

func (j *judge) containing(n *node, v []any, seen *judged) int {
	count := 0
	for i, item := range v {
		if j.test(n.contains, item, nil) {
			count++
			seen.item(i)
		}
		if j.spent {
			break
		}
	}
	return count
}

func (j *judge) restOfItems(n *node, v []any, seen *judged) bool {
	ok := true
	for i := seen.upTo; i < len(v) && !seen.all; i++ {
		if _, has := seen.items[i]; has {
			continue
		}
		ok = j.itemAt(n.restList, i, v[i]) && ok
		if !ok && j.brief() || j.spent {
			return false
		}
	}
	return ok
}

// distinct tells whether no two items are equal.
func (j *judge) distinct(v []any) bool {
	if len(v) < 2 {
		return true
	}
	forms := make(map[string]struct{}, len(v))
	var form []byte
	for _, item := range v {
		form = appendCanonical(form[:0], item)
		if _, twice := forms[string(form)]; twice || !j.spend(1+len(form)/writtenPerStep) {
			return false
		}
		forms[string(form)] = struct{}{}
	}
	return true
}
