package schema

import (
	"maps"
	"slices"

	"github.com/callgate/callgate/internal/similar"
	"github.com/callgate/callgate/parser"
)

// maxDoubtSteps bounds the schemas that are looked at for doubts: a definition may be written to have many.
const maxDoubtSteps = 100_000

// undeclarable lists the members that a closed object, or a branch of it, requires and none of its schemas
// declares, so that nothing fits.
func (b *bundler) undeclarable(root *subschema) []Fault {
	var list []Fault
	type visit struct {
		sub *subschema
		at  position
	}
	left, seen := maxDoubtSteps, map[string]bool{}
	walkOnce(visit{root, rootPosition}, func(v visit, walk func(visit)) {
		if left > 0 && (v.at == rootPosition || v.at == valuePosition && b.objectLike(v.sub)) {
			for _, f := range b.undeclarableOf(v.sub, v.at, &left) {
				if !seen[f.Pointer] && len(list) < maxFaults {
					seen[f.Pointer] = true
					list = append(list, f)
				}
			}
		}
		for _, c := range v.sub.children {
			if sc := keywords[c.keyword].scope; sc == childApplicator || sc == inPlaceApplicator {
				for _, h := range c.schemas {
					walk(visit{h.sub, childPosition(v.at, c.keyword)})
				}
			}
		}
		if t := b.targets[v.sub]; t != nil {
			walk(visit{t, targetPosition(v.at)})
		}
	})
	return list
}

// undeclarableOf lists them for one place.
func (b *bundler) undeclarableOf(place *subschema, at position, left *int) []Fault {
	var all []*subschema
	walkOnce(place, func(s *subschema, walk func(*subschema)) {
		all = append(all, s)
		for _, next := range b.branches(s) {
			walk(next)
		}
	})
	if *left -= len(all); *left < 0 {
		return nil
	}
	declared := map[string]bool{}
	for _, s := range all {
		object := s.object()
		if len(s.under("patternProperties")) > 0 {
			return nil
		}
		for _, name := range additionalKeywords {
			if others, stated := object[name]; stated && others != false && (at == valuePosition || b.open) {
				return nil
			}
		}
		for _, h := range s.under("properties") {
			declared[h.name] = true
		}
	}
	var list []Fault
	for _, s := range all {
		required, _ := s.object()["required"].([]any)
		for i, value := range required {
			if name, _ := value.(string); !declared[name] && len(list) < maxFaults {
				list = append(list, Fault{childIndex(child(s.pointer, "required"), i), "requires " + parser.Quote(name) +
					", which it does not declare, so nothing fits it" + similar.DidYouMean(name, slices.Sorted(maps.Keys(declared)))})
			}
		}
	}
	return list
}
