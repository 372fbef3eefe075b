package registry

import (
	"slices"

	"github.com/callgate/callgate/refusal"
)

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
	for _, name := range n.required {
		if _, has := v[name]; !has {
			j.missing(n, name)
			ok = false
		}
	}
	for _, d := range n.needs {
		if _, has := v[d.name]; !has {
			continue
		}
		for _, name := range d.needs {
			if _, has := v[name]; !has {
				j.missing(n, name)
				ok = false
			}
		}
	}
	if !ok && j.brief() {
		return false
	}
	return j.members(n, v, seen) && ok
}

func (j *judge) members(n *node, v map[string]any, seen *judged) bool {
	ok, known := true, 0
	for _, name := range n.propertyNames {
		_, has := v[name]
		if !has {
			continue
		}
		known++
		seen.member(name)
		ok = j.member(n, v, name, n.properties[name]) && ok
		if !ok && j.brief() {
			return false
		}
	}
	if n.names == nil && len(n.patterns) == 0 && (n.others == nil || known == len(v)) {
		return ok
	}
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
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
	if seen.all {
		return true
	}
	ok := true
	names := make([]string, 0, len(v))
	for name := range v {
		if _, has := seen.members[name]; !has {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if !branches && n.mayDeclare(name, map[*node]bool{}) {
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
func (n *node) mayDeclare(name string, asked map[*node]bool) bool {
	if n == nil || asked[n] {
		return false
	}
	asked[n] = true
	if p, listed := n.properties[name]; listed && !p.never {
		return true
	}
	for _, p := range n.patterns {
		if !p.node.never && p.expr.MatchString(name) {
			return true
		}
	}
	if n.others != nil && !n.others.never {
		return true
	}
	for _, beside := range n.beside() {
		if beside.mayDeclare(name, asked) {
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

func (j *judge) missing(n *node, name string) {
	if j.quiet == 0 {
		j.found.add(j.path, &token{name, -1}, refusal.MissingArgument, Parent, func() string { return j.sayMissing(n, name) })
	}
}

func (j *judge) unexpected(n *node, v map[string]any, name string) {
	if j.quiet == 0 {
		j.found.add(j.path, &token{name, -1}, refusal.UnexpectedArgument, Name, func() string { return j.sayUnexpected(n, v, name) })
	}
}

func (j *judge) badName(n *node, name string) {
	if j.quiet == 0 {
		j.found.add(j.path, &token{name, -1}, refusal.InvalidValue, Value, func() string { return j.sayBadName(n, name) })
	}
}
