package registry

import "slices"

// nearMember finds the declared member that an unexpected one was meant to be,
// or "". Members that the call already has are not offered.
func nearMember(n *node, object map[string]any, name string) string {
	if len(name) > maxNameBytes*2 {
		return ""
	}
	skeleton := fold(name)
	limit := min(2, len(skeleton)/3)
	best, distance := "", limit+1
	names := n.memberNames(map[*node]bool{})
	slices.Sort(names)
	for _, declared := range names {
		if _, has := object[declared]; has {
			continue
		}
		if d := editDistance(skeleton, fold(declared), limit); d < distance {
			best, distance = declared, d
		}
	}
	return best
}

// memberNames lists the members that a schema, or one beside it, declares by
// name.
func (n *node) memberNames(asked map[*node]bool) []string {
	if asked[n] {
		return nil
	}
	asked[n] = true
	var names []string
	for _, name := range n.propertyNames {
		if !n.properties[name].never {
			names = append(names, name)
		}
	}
	for _, b := range n.beside() {
		names = append(names, b.memberNames(asked)...)
	}
	return names
}
