package registry

import "slices"

// object judges an object by the keywords for objects, but for those of other
// schemas beside this one.
func (j *judge) object(n *node, v map[string]any, seen *judged) bool {
	ok := true
	if len(v) < n.minProperties {
		j.invalid(n, v, faultMinProperties)
		ok = false
	}
	if n.maxProperties >= 0 && len(v) > n.maxProperties {
		j.invalid(n, v, faultMaxProperties)
		ok = false
	}
	ok = j.present(n, v, n.required) && ok
	if !j.spend(len(n.needs) / namesPerStep) {
		return false
	}
	for _, d := range n.needs {
		if _, has := v[d.name]; has {
			ok = j.present(n, v, d.needs) && ok
		}
		if !ok && j.brief() || j.spent {
			return false
		}
	}
	if !ok && j.brief() {
		return false
	}
	return j.members(n, v, seen) && ok
}

// present tells whether an object has all these members.
func (j *judge) present(n *node, v map[string]any, names []string) bool {
	if !j.spend(len(names) / namesPerStep) {
		return false
	}
	ok, missed := true, 0
	for _, name := range names {
		if _, has := v[name]; has {
			continue
		}
		ok = false
		missed++
		if j.thorough && n.properties[name] != nil {
			// The second judge judges null where a member is required and absent.
			j.test(n.properties[name], nil, nil)
		}
		j.missing(n, name)
		if j.brief() || j.spent {
			break
		}
	}
	return (!j.thorough || j.spend(missed/missedPerStep)) && ok
}

// named lists the members of a value that a schema names, in order: walking the
// shorter of both, so that the value pays for it.
func (j *judge) named(n *node, v map[string]any) []string {
	if len(n.propertyNames) <= namesPerStep*(1+len(v)) {
		return n.propertyNames
	}
	return slices.DeleteFunc(j.sorted(v), func(name string) bool { return n.properties[name] == nil })
}

// sorted lists the members of a value.
func (j *judge) sorted(v map[string]any) []string {
	if !j.spend(len(v) / sortedPerStep) {
		return nil
	}
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (j *judge) members(n *node, v map[string]any, seen *judged) bool {
	ok, known := true, 0
	for _, name := range j.named(n, v) {
		_, has := v[name]
		if !has {
			continue
		}
		known++
		seen.member(name)
		ok = j.member(n, v, name, n.properties[name]) && ok
		if !ok && j.brief() || j.spent {
			return false
		}
	}
	if n.names == nil && len(n.patterns) == 0 && (n.others == nil || known == len(v)) {
		return ok
	}
	for _, name := range j.sorted(v) {
		_, listed := n.properties[name]
		ok = j.unlisted(n, v, name, listed, seen) && ok
		if !ok && j.brief() || j.spent {
			return false
		}
	}
	return ok
}

// unlisted judges a member by all that does not name it.
func (j *judge) unlisted(n *node, v map[string]any, name string, listed bool, seen *judged) bool {
	ok := true
	if n.names != nil {
		j.quiet++
		good := j.apply(n.names, name, nil)
		j.quiet--
		if !good {
			j.badName(n, name)
			ok = false
		}
	}
	for _, p := range n.patterns {
		if !j.spend(1+p.cost(name)) || !p.expr.MatchString(name) {
			continue
		}
		listed = true
		seen.member(name)
		ok = j.member(n, v, name, p.node) && ok
	}
	if !listed && n.others != nil {
		seen.member(name)
		ok = j.member(n, v, name, n.others) && ok
	}
	return ok
}

// member judges the value of a member. A member that may have no value at all
// is one that is not part of the tool.
func (j *judge) member(n *node, v map[string]any, name string, by *node) bool {
	if by.never {
		j.spend(1)
		j.unexpected(n, v, name)
		return false
	}
	j.enter(token{name, -1})
	ok := j.apply(by, v[name], nil)
	j.leave()
	return ok
}

// restOfMembers judges the members that no schema before has judged. Where a
// branch failed, it is not known what it would have judged: then only members
// that no branch declares are reported.
func (j *judge) restOfMembers(n *node, v map[string]any, seen *judged, branches bool) bool {
	if seen.all || len(seen.members) == len(v) {
		return true
	}
	ok := true
	for _, name := range j.sorted(v) {
		if _, has := seen.members[name]; has {
			continue
		}
		if !branches && !j.thorough && j.mayDeclare(n, name, map[*node]bool{}) {
			continue
		}
		ok = j.member(n, v, name, n.restProps) && ok
		if !ok && j.brief() || j.spent {
			return false
		}
	}
	return ok
}

// mayDeclare tells whether a schema, or one beside it, declares a member of
// this name for whatever value.
func (j *judge) mayDeclare(n *node, name string, asked map[*node]bool) bool {
	if asked[n] || !j.spend(1) {
		return false
	}
	asked[n] = true
	if p, listed := n.properties[name]; listed && !p.never {
		return true
	}
	for _, p := range n.patterns {
		if !p.node.never && j.spend(1+p.cost(name)) && p.expr.MatchString(name) {
			return true
		}
	}
	if n.others != nil && !n.others.never {
		return true
	}
	for _, beside := range n.beside() {
		if j.mayDeclare(beside, name, asked) {
			return true
		}
	}
	return false
}

// beside lists the schemas that judge the same value together with this one
// and may mark parts of it as judged.
func (n *node) beside() []*node {
	list := slices.Concat(n.all, n.any, n.one)
	for _, d := range n.dependents {
		list = append(list, d.node)
	}
	for _, b := range []*node{n.ref, n.cond, n.then, n.other} {
		if b != nil {
			list = append(list, b)
		}
	}
	return list
}
