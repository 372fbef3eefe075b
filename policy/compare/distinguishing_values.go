package compare

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/policy/condition"
)

// absent is the value of a member that is not there.
type absent struct{}

// unreadable is a number that no condition can read: it has too many digits.
const unreadable = json.Number("12345678901234567890123")

// cells lists one value of a member for each case that Exact conditions can tell apart and
// its property may allow. ok is false where that cannot be done.
func cells(f condition.Facts, p property) (values []any, ok bool) {
	if p.enum != nil {
		values = slices.Clone(p.enum)
	} else {
		for _, v := range []any{nil, true, false, []any{}, map[string]any{}, unreadable, freshText(f.Texts)} {
			if p.allows(v) {
				values = append(values, v)
			}
		}
		for _, text := range f.Texts {
			if p.allows(text) {
				values = append(values, text)
			}
		}
		numbers, exact := numberCells(f, p)
		if !exact {
			return nil, false
		}
		values = append(values, numbers...)
	}
	if !p.required {
		values = append(values, absent{})
	}
	return values, true
}

// numberCells lists each literal and bound, and a number between every two.
func numberCells(f condition.Facts, p property) (values []any, ok bool) {
	if p.types != nil && !slices.Contains(p.types, "number") && !slices.Contains(p.types, "integer") {
		return nil, true
	}
	var edges []float64
	for _, n := range f.Numbers {
		v, exact := exactNumber(n)
		if !exact {
			return nil, false
		}
		edges = append(edges, v)
	}
	edges = append(edges, p.bounds...)
	if len(edges) == 0 {
		edges = []float64{0}
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	found := []json.Number{jsonNumber(edges[0] - 1)}
	for i, edge := range edges {
		found = append(found, jsonNumber(edge))
		if i+1 == len(edges) {
			found = append(found, jsonNumber(edge+1))
			break
		}
		next := edges[i+1]
		if p.integers() {
			if whole := wholeAbove(edge); whole < next {
				found = append(found, jsonNumber(whole))
			}
			continue
		}
		between, exact := numberBetween(edge, next)
		if !exact {
			return nil, false
		}
		found = append(found, between)
	}
	if p.integers() {
		found[0] = jsonNumber(-wholeAbove(-edges[0]))
		found[len(found)-1] = jsonNumber(wholeAbove(edges[len(edges)-1]))
	}
	for _, n := range found {
		if p.allows(n) {
			values = append(values, n)
		}
	}
	return values, true
}

// wholeAbove is the least integer above a number.
func wholeAbove(v float64) float64 {
	whole := float64(int64(v))
	for whole <= v {
		whole++
	}
	for whole-1 > v {
		whole--
	}
	return whole
}

// freshText is a text that is none of these.
func freshText(texts []string) string {
	text := "other"
	for slices.Contains(texts, text) {
		text += "-"
	}
	return text
}

// maxSize bounds the lists and texts that are made to have a length of a condition.
const maxSize = 64

// candidates lists values of a member to look for examples with: its cells first, then values
// around them, texts that begin and end as literals do or match patterns, and lists and texts
// of the lengths that conditions name.
func candidates(f condition.Facts, p property, schema map[string]any) []any {
	values, _ := cells(f, p)
	sample := &sampler{}
	if schema != nil {
		values = append(values, sample.value(schema))
	}
	var items map[string]any
	if declared, isObject := schema["items"].(map[string]any); isObject {
		items = declared
	}
	for _, n := range f.Numbers {
		v, exact := exactNumber(n)
		if !exact {
			continue
		}
		for _, shift := range []float64{-1, -0.5, 0, 0.5, 1} {
			values = append(values, jsonNumber(v+shift))
		}
		if v != float64(int(v)) || v < 0 || v >= maxSize {
			continue
		}
		for _, size := range []int{int(v) - 1, int(v), int(v) + 1} {
			if size >= 0 {
				values = append(values, strings.Repeat("x", size), listOf(size, func(i int) any { return sample.item(items, i) }))
			}
		}
	}
	for _, text := range f.Texts {
		values = append(values, text, text+"x", "x"+text, []any{text}, []any{text, freshText(f.Texts)})
	}
	for _, n := range f.Numbers {
		values = append(values, []any{n})
	}
	for _, pattern := range f.Patterns {
		if text, ok := matching(pattern); ok {
			values = append(values, text)
		}
	}
	values = append(values, "0."+unreadable, "", listOf(1, func(i int) any { return sample.item(items, i) }), absent{})
	return distinct(slices.DeleteFunc(values, func(v any) bool { _, gone := v.(absent); return !gone && !p.allows(v) }))
}

func listOf(size int, item func(int) any) []any {
	list := make([]any, size)
	for i := range list {
		list[i] = item(i)
	}
	return list
}

// distinct drops values that are there already, in order.
func distinct(values []any) []any {
	seen := map[string]bool{}
	return slices.DeleteFunc(values, func(v any) bool {
		key := "absent"
		if _, gone := v.(absent); !gone {
			text, err := json.Marshal(v)
			if err != nil {
				return true
			}
			key = strconv.Quote(string(text))
		}
		again := seen[key]
		seen[key] = true
		return again
	})
}
