package schema

import "github.com/callgate/callgate/internal/similar"

// maxCompared bounds with how many members of one place an unexpected one is
// compared letter by letter.
const maxCompared = 200

// maxUnexpectedBytes is the longest unexpected member for which near ones are
// looked for.
const maxUnexpectedBytes = 128

// memberSuggestions keeps the members that schemas declare, as they are compared, for
// the messages of one refusal.
type memberSuggestions map[*node][]memberName

// memberName is a declared member, prepared for comparing.
type memberName struct {
	name     string
	skeleton string
	letters  uint64
}

// suggest finds the declared member that an unexpected one was meant to be, or
// "". Members that the call already has are not offered.
func (m *memberSuggestions) suggest(n *node, object map[string]any, name string) string {
	if len(name) > maxUnexpectedBytes {
		return ""
	}
	skeleton := similar.Skeleton(name)
	set := similar.LetterSet(skeleton)
	limit := min(2, len(skeleton)/3)
	best, distance, compared := "", limit+1, 0
	visited := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		if visited[n] {
			return
		}
		visited[n] = true
		for _, c := range m.of(n) {
			// One edit changes the set of letters by two at most.
			if abs(len(c.skeleton)-len(skeleton)) > limit || similar.LetterDifference(c.letters, set) > 2*limit {
				continue
			}
			if _, has := object[c.name]; has {
				continue
			}
			if compared++; compared > maxCompared {
				return
			}
			if d := similar.Distance(skeleton, c.skeleton, limit); d < distance || d == distance && best != "" && c.name < best {
				best, distance = c.name, d
			}
		}
		for _, b := range n.inPlace() {
			visit(b)
		}
	}
	visit(n)
	return best
}

// of lists the members that a schema declares by name.
func (m *memberSuggestions) of(n *node) []memberName {
	list, known := (*m)[n]
	if !known {
		for _, name := range n.sortedProperties {
			if !n.properties[name].never {
				skeleton := similar.Skeleton(name)
				list = append(list, memberName{name: name, skeleton: skeleton, letters: similar.LetterSet(skeleton)})
			}
		}
		if *m == nil {
			*m = memberSuggestions{}
		}
		(*m)[n] = list
	}
	return list
}

func abs(n int) int { return max(n, -n) }
