package schema

import "slices"

// objectKeywords evaluates an object by the schema's own keywords for objects.
func (j *evaluation) objectKeywords(n *node, v map[string]any, seen *evaluated) bool {
	ok := true
	if len(v) < n.minProperties {
		j.invalid(n, v, faultMinProperties)
		ok = false
	}
	if n.maxProperties >= 0 && len(v) > n.maxProperties {
		j.invalid(n, v, faultMaxProperties)
		ok = false
	}
	ok = j.requireMembers(n, v, n.required) && ok
	if !j.spend(len(n.dependentRequired) / namesPerStep) {
		return false
	}
	for _, d := range n.dependentRequired {
		if _, has := v[d.name]; has {
			ok = j.requireMembers(n, v, d.required) && ok
		}
		if !ok && j.failFast() || j.exhausted {
			return false
		}
	}
	if !ok && j.failFast() {
		return false
	}
	return j.properties(n, v, seen) && ok
}

// requireMembers reports whether an object has all these members.
func (j *evaluation) requireMembers(n *node, v map[string]any, names []string) bool {
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
		if j.exhaustive && n.properties[name] != nil {
			// The secondary evaluator evaluates null where a member is required and absent.
			j.test(n.properties[name], nil, nil)
		}
		j.missing(n, name)
		if j.failFast() || j.exhausted {
			break
		}
	}
	return (!j.exhaustive || j.spend(missed/missingPerStep)) && ok
}

// declaredNames lists the members of a value that a schema names, in order: walking the
// shorter of both, so that the value pays for it.
func (j *evaluation) declaredNames(n *node, v map[string]any) []string {
	if len(n.sortedProperties) <= namesPerStep*(1+len(v)) {
		return n.sortedProperties
	}
	return slices.DeleteFunc(j.sortedNames(v), func(name string) bool { return n.properties[name] == nil })
}

// sortedNames lists the members of a value.
func (j *evaluation) sortedNames(v map[string]any) []string {
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

func (j *evaluation) properties(n *node, v map[string]any, seen *evaluated) bool {
	ok, known := true, 0
	for _, name := range j.declaredNames(n, v) {
		_, has := v[name]
		if !has {
			continue
		}
		known++
		seen.member(name)
		ok = j.property(n, v, name, n.properties[name]) && ok
		if !ok && j.failFast() || j.exhausted {
			return false
		}
	}
	if n.propertyNames == nil && len(n.patternProperties) == 0 && (n.additionalProperties == nil || known == len(v)) {
		return ok
	}
	for _, name := range j.sortedNames(v) {
		_, listed := n.properties[name]
		ok = j.undeclaredProperty(n, v, name, listed, seen) && ok
		if !ok && j.failFast() || j.exhausted {
			return false
		}
	}
	return ok
}

// undeclaredProperty evaluates a member by the keywords that do not name it.
func (j *evaluation) undeclaredProperty(n *node, v map[string]any, name string, listed bool, seen *evaluated) bool {
	ok := true
	if n.propertyNames != nil {
		j.quiet++
		good := j.apply(n.propertyNames, name, nil)
		j.quiet--
		if !good {
			j.invalidName(n, name)
			ok = false
		}
	}
	for _, p := range n.patternProperties {
		if !j.spend(1+p.cost(name)) || !p.expr.MatchString(name) {
			continue
		}
		listed = true
		seen.member(name)
		ok = j.property(n, v, name, p.node) && ok
	}
	if !listed && n.additionalProperties != nil {
		seen.member(name)
		ok = j.property(n, v, name, n.additionalProperties) && ok
	}
	return ok
}

// property evaluates the value of a member. A member that may have no value at all
// is one that is not part of the tool.
func (j *evaluation) property(n *node, v map[string]any, name string, by *node) bool {
	if by.never {
		j.spend(1)
		j.unexpected(n, v, name)
		return false
	}
	j.push(pathToken{name, -1})
	ok := j.apply(by, v[name], nil)
	j.pop()
	return ok
}

// unevaluatedProperties evaluates the members that no schema has evaluated yet. A
// branch that failed does not tell which members it would have evaluated: then only
// members that no branch declares are reported.
func (j *evaluation) unevaluatedProperties(n *node, v map[string]any, seen *evaluated, branches bool) bool {
	if seen.all || len(seen.members) == len(v) {
		return true
	}
	ok := true
	for _, name := range j.sortedNames(v) {
		if _, has := seen.members[name]; has {
			continue
		}
		if !branches && !j.exhaustive && j.mayDeclare(n, name, map[*node]bool{}) {
			continue
		}
		ok = j.property(n, v, name, n.unevaluatedProperties) && ok
		if !ok && j.failFast() || j.exhausted {
			return false
		}
	}
	return ok
}

// mayDeclare reports whether a schema, or one beside it, declares a member of
// this name for whatever value.
func (j *evaluation) mayDeclare(n *node, name string, visited map[*node]bool) bool {
	if visited[n] || !j.spend(1) {
		return false
	}
	visited[n] = true
	if p, listed := n.properties[name]; listed && !p.never {
		return true
	}
	for _, p := range n.patternProperties {
		if !p.node.never && j.spend(1+p.cost(name)) && p.expr.MatchString(name) {
			return true
		}
	}
	if n.additionalProperties != nil && !n.additionalProperties.never {
		return true
	}
	for _, beside := range n.inPlace() {
		if j.mayDeclare(beside, name, visited) {
			return true
		}
	}
	return false
}
