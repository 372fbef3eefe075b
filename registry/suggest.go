package registry

import (
	"cmp"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/similar"
)

// candidate is one name that may be offered, as near names are compared.
type candidate struct {
	name     string
	skeleton string
	last     string // skeleton of the part behind the last dot
	letters  uint64 // which bytes the skeleton has
}

func newCandidates(entries []*Entry) []candidate {
	var list []candidate
	for i, e := range entries {
		if i > 0 && entries[i-1].tool.Name == e.tool.Name {
			continue
		}
		name := e.tool.Name
		skeleton := similar.Skeleton(name)
		list = append(list, candidate{name, skeleton, similar.Skeleton(name[strings.LastIndexByte(name, '.')+1:]),
			similar.LetterSet(skeleton)})
	}
	return list
}

const (
	sameSkeleton = iota
	samePart
	fewEdits
	sharedPart
)

// maxSuggestBytes is the longest name for which near ones are looked for.
const maxSuggestBytes = 128

// Suggest lists at most max names that are near to one that no tool has: equal but
// for case, separators and look-alikes, equal in the part behind the last dot,
// or a few typing errors away, nearest first. Only names that allowed accepts
// are listed; nil accepts none. A near name is offered and never used.
func (r *Registry) Suggest(name string, allowed func(name string) bool, max int) []string {
	if r == nil || allowed == nil || max <= 0 || name == "" || len(name) > maxSuggestBytes {
		return nil
	}
	type hit struct {
		name           string
		rank, distance int
	}
	wanted := newQuery(name)
	var hits []hit
	for layer := r; layer != nil; layer = layer.base {
		for i := range layer.candidates {
			c := &layer.candidates[i]
			if rank, distance, ok := wanted.compare(c); ok {
				hits = append(hits, hit{c.name, rank, distance})
			}
		}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	var names []string
	for _, h := range hits {
		if len(names) == max {
			break
		}
		if allowed(h.name) {
			names = append(names, h.name)
		}
	}
	return names
}

// query is a name that no tool has, prepared for comparing.
type query struct {
	skeleton string
	last     string
	parts    []string
	letters  uint64
	limit    int
}

func newQuery(name string) *query {
	a := &query{skeleton: similar.Skeleton(name), last: similar.Skeleton(name[strings.LastIndexByte(name, '.')+1:])}
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune("._-/:@ ", r) }) {
		if p := similar.Skeleton(part); len(p) >= 4 {
			a.parts = append(a.parts, p)
		}
	}
	a.letters = similar.LetterSet(a.skeleton)
	a.limit = min(3, len(a.skeleton)/4)
	return a
}

func (a *query) compare(c *candidate) (rank, distance int, ok bool) {
	switch {
	case a.skeleton == "":
		return 0, 0, false
	case a.skeleton == c.skeleton:
		return sameSkeleton, 0, true
	case a.skeleton == c.last, a.last != "" && a.last == c.last, a.last == c.skeleton:
		return samePart, 0, true
	case len(c.skeleton) >= 4 && strings.HasPrefix(a.skeleton, c.skeleton):
		return samePart, len(a.skeleton) - len(c.skeleton), true
	}
	// One edit changes the set of letters by two at most.
	if a.limit > 0 && similar.LetterDifference(a.letters, c.letters) <= 2*a.limit {
		if d := similar.Distance(a.skeleton, c.skeleton, a.limit); d <= a.limit {
			return fewEdits, d, true
		}
	}
	if slices.Contains(a.parts, c.last) {
		return sharedPart, 0, true
	}
	return 0, 0, false
}
