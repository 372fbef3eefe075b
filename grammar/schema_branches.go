package grammar

import (
	"fmt"
	"maps"
	"slices"
)

// walk lists the ways to keep a schema: one for each branch of anyOf and oneOf.
type walk struct {
	*compiler
	last    int
	entered []string // references that were followed
}

func (w *walk) ways(schema any, within []int) ([][]part, error) {
	keywords, isObject := schema.(map[string]any)
	if !isObject {
		if schema == false {
			return nil, nil
		}
		return [][]part{nil}, nil
	}
	for _, name := range []string{"not", "contains", "dependentSchemas", "patternProperties", "propertyNames"} {
		if v, has := keywords[name]; has && !says(name, v) {
			continue
		} else if has && keywords["enum"] == nil && keywords["const"] == nil {
			return nil, fmt.Errorf("%s cannot be written as a grammar", name)
		}
	}
	if keywords["if"] != nil && (keywords["then"] != nil || keywords["else"] != nil) {
		return nil, fmt.Errorf("if cannot be written as a grammar")
	}
	w.last++
	within = append(slices.Clone(within), w.last)
	out := [][]part{{{keywords, w.last, within}}}
	add := func(more [][]part, err error) error {
		if err == nil {
			out, err = product(out, more)
		}
		return err
	}
	for _, s := range list(keywords["allOf"]) {
		if err := add(w.ways(s, within)); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		branches, has := keywords[name].([]any)
		if !has {
			continue
		}
		if name == "oneOf" && !w.apart(branches) {
			return nil, fmt.Errorf("oneOf with branches that may both hold cannot be written as a grammar")
		}
		if err := add(w.branches(branches, within)); err != nil {
			return nil, err
		}
	}
	if ref, has := keywords["$ref"].(string); has {
		if err := add(w.follow(ref, within)); err != nil {
			return nil, err
		}
	}
	dependent, _ := keywords["dependentRequired"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(dependent)) {
		absent := part{map[string]any{"properties": map[string]any{name: false}, "type": anyType}, 0, nil}
		present := part{map[string]any{"required": append([]any{name}, list(dependent[name])...), "type": "object"}, 0, nil}
		if err := add([][]part{{absent}, {present}}, nil); err != nil {
			return nil, err
		}
	}
	return out, nil
}

var anyType = []any{"null", "boolean", "number", "string", "array", "object"}

// says reports whether a keyword with this value says anything.
func says(name string, value any) bool {
	switch v := value.(type) {
	case bool:
		return !v || name == "not" || name == "contains"
	case map[string]any:
		return len(v) > 0 || name == "not" || name == "contains"
	}
	return true
}

func (w *walk) branches(branches []any, within []int) ([][]part, error) {
	var out [][]part
	for _, b := range branches {
		more, err := w.ways(b, within)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// follow gives the ways of the target of a reference. A schema that lies within itself
// ends after maxRecursion levels.
func (w *walk) follow(ref string, within []int) ([][]part, error) {
	times := 0
	for _, before := range w.path {
		if before == ref {
			times++
		}
	}
	if times > w.recursion {
		w.note("values that nest within themselves more than %d levels are left out", w.recursion)
		return nil, nil
	}
	if w.loops[ref] {
		w.entered = append(w.entered, ref)
	}
	const prefix = "#/$defs/"
	if len(ref) <= len(prefix) {
		return nil, fmt.Errorf("a reference leads nowhere")
	}
	target, has := w.defs[ref[len(prefix):]]
	if !has {
		return nil, fmt.Errorf("a reference leads nowhere")
	}
	return w.ways(target, within)
}

// product gives each way of the one with each of the other.
func product(a, b [][]part) ([][]part, error) {
	if len(a)*len(b) > maxAlternatives {
		return nil, fmt.Errorf("anyOf and oneOf have more than %d ways together", maxAlternatives)
	}
	var out [][]part
	for _, x := range a {
		for _, y := range b {
			out = append(out, append(slices.Clone(x), y...))
		}
	}
	return out, nil
}

// apart reports whether of some branches at most one can hold for any value.
func (w *walk) apart(branches []any) bool {
	for i, a := range branches {
		for _, b := range branches[i+1:] {
			if !w.disjoint(a, b) {
				return false
			}
		}
	}
	return true
}

// disjoint reports whether no value keeps both schemas, as far as their types, their enums
// and the members that they require show.
func (w *walk) disjoint(a, b any) bool {
	x, y := w.resolved(a), w.resolved(b)
	if x == nil || y == nil {
		return a == false || b == false
	}
	if values := enumOf(x); values != nil {
		return w.noneKeeps(values, b)
	}
	if values := enumOf(y); values != nil {
		return w.noneKeeps(values, a)
	}
	both := typesOf([]part{{keywords: x}, {keywords: y}})
	if len(both) == 0 {
		return true
	}
	if !slices.Equal(both, []string{"object"}) {
		return false
	}
	return w.lacks(x, y) || w.lacks(y, x) || w.tagged(x, y)
}

// resolved follows references that stand alone.
func (w *walk) resolved(s any) map[string]any {
	for range 8 {
		m, _ := s.(map[string]any)
		ref, has := m["$ref"].(string)
		if !has || len(m) > 1 || len(ref) <= len("#/$defs/") {
			return m
		}
		s = w.defs[ref[len("#/$defs/"):]]
	}
	return nil
}

func enumOf(m map[string]any) []any {
	if v, has := m["const"]; has {
		return []any{v}
	}
	return list(m["enum"])
}

func (w *walk) noneKeeps(values []any, schema any) bool {
	accepts, err := w.evaluator([]any{schema})
	return err == nil && !slices.ContainsFunc(values, accepts)
}

// lacks reports whether the one requires a member that the other forbids.
func (w *walk) lacks(x, y map[string]any) bool {
	if y["additionalProperties"] != false || y["patternProperties"] != nil {
		return false
	}
	members, _ := y["properties"].(map[string]any)
	return slices.ContainsFunc(list(x["required"]), func(name any) bool {
		s, has := members[name.(string)]
		return !has || s == false
	})
}

// tagged reports whether both require a member whose values are apart.
func (w *walk) tagged(x, y map[string]any) bool {
	mine, _ := x["properties"].(map[string]any)
	other, _ := y["properties"].(map[string]any)
	return slices.ContainsFunc(list(x["required"]), func(name any) bool {
		a, inX := mine[name.(string)]
		b, inY := other[name.(string)]
		return inX && inY && slices.Contains(list(y["required"]), name) && w.disjoint(a, b)
	})
}
