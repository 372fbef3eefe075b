package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/decimal"
)

// typeSet is a set of JSON types.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeNumber
	typeString
	typeArray
	typeObject
)

// typeNames is read only, in the order in which messages name types.
var typeNames = []struct {
	name   string
	phrase string
	bit    typeSet
}{
	{"string", "a string", typeString},
	{"integer", "an integer", typeInteger},
	{"number", "a number", typeNumber},
	{"boolean", "true or false", typeBoolean},
	{"array", "an array", typeArray},
	{"object", "an object", typeObject},
	{"null", "null", typeNull},
}

func parseTypes(v any) typeSet {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var set typeSet
	for _, name := range list {
		for _, t := range typeNames {
			if t.name == name {
				set |= t.bit
			}
		}
	}
	if set == 0 {
		panic(Fault{"", "found no type"})
	}
	return set
}

// holds reports whether a value has one of the types. A number with a fraction
// of zero is an integer.
func (s typeSet) holds(v any) bool {
	switch v := v.(type) {
	case nil:
		return s&typeNull != 0
	case bool:
		return s&typeBoolean != 0
	case string:
		return s&typeString != 0
	case []any:
		return s&typeArray != 0
	case map[string]any:
		return s&typeObject != 0
	case json.Number:
		if s&typeNumber != 0 {
			return true
		}
		if s&typeInteger == 0 {
			return false
		}
		d, ok := decimal.Parse(string(v))
		return ok && d.IsInteger()
	}
	return false
}

// String names the types as a message does: "a string, a number or null".
func (s typeSet) String() string {
	var names []string
	for _, t := range typeNames {
		if s&t.bit != 0 {
			names = append(names, t.phrase)
		}
	}
	return join(names, "or")
}

func join(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " " + last + " " + names[len(names)-1]
}

// valueSet is a set of JSON values that are compared as JSON Schema compares:
// numbers by value, objects without order.
type valueSet struct {
	list         []any
	set          map[string]int // canonical forms and their first index
	flat         bool           // none is an array or object
	compareCosts []int          // of all values up to an index
}

func newValueSet(list []any) *valueSet {
	v := &valueSet{list: list, set: make(map[string]int, len(list)), flat: true, compareCosts: make([]int, len(list))}
	sum := 0
	for i, item := range list {
		sum += compareCost(item)
		v.compareCosts[i] = sum
		form := string(appendCanonical(nil, item))
		if _, twice := v.set[form]; !twice {
			v.set[form] = i
		}
		switch item.(type) {
		case []any, map[string]any:
			v.flat = false
		}
	}
	return v
}

// has reports whether a value is in the set, and the steps that took.
func (v *valueSet) has(item any) (ok bool, cost int) {
	switch item.(type) {
	case []any, map[string]any:
		if v.flat {
			return false, 0
		}
	}
	var small [64]byte
	form := appendCanonical(small[:0], item)
	_, ok = v.set[string(form)]
	return ok, len(form) / bytesWrittenPerStep
}

// appendCanonical writes the one form that equal JSON values share.
func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 'n')
	case bool:
		if v {
			return append(b, 't')
		}
		return append(b, 'f')
	case string:
		// The length keeps neighbours apart without escaping.
		b = append(strconv.AppendInt(append(b, 's'), int64(len(v)), 10), ':')
		return append(b, v...)
	case json.Number:
		d, ok := decimal.Parse(string(v))
		if !ok {
			return append(append(b, '?'), v...)
		}
		return append(d.AppendCanonical(append(b, 'd')), ';')
	case []any:
		b = append(b, '[')
		for _, item := range v {
			b = appendCanonical(b, item)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			b = appendCanonical(b, k)
			b = appendCanonical(b, v[k])
		}
		return append(b, '}')
	}
	return append(b, '?')
}

// numberOf returns the number that a value is; ok is false for other values and for literals
// beyond the limits.
func numberOf(v any) (d decimal.Decimal, ok bool) {
	n, ok := v.(json.Number)
	if !ok {
		return d, false
	}
	return decimal.Parse(string(n))
}

// numberCost is the cost of computing with a number exactly.
func numberCost(v json.Number) int {
	d, ok := decimal.Parse(string(v))
	if !ok {
		return 0
	}
	return (len(d.Digits) + max(d.Exponent, -d.Exponent)) / bytesPerStep
}

// compareCost is the cost of comparing with a value, in plain values.
func compareCost(v any) int {
	switch v := v.(type) {
	case string:
		return 1 + len(v)/bytesPerStep
	case json.Number:
		return 3 + 4*numberCost(v)
	case []any:
		sum := 1
		for _, item := range v {
			sum += compareCost(item)
		}
		return sum
	case map[string]any:
		sum := 1
		for name, item := range v {
			sum += 1 + len(name)/bytesPerStep + compareCost(item)
		}
		return sum
	}
	return 1
}

// secondaryCompareCost is the cost for the secondary evaluator of looking a value up
// in this set.
func (v *valueSet) secondaryCompareCost(item any) int {
	last := len(v.list) - 1
	if last < 0 {
		return 0
	}
	if at, has := v.set[string(appendCanonical(nil, item))]; has {
		last = at
	}
	cost := v.compareCosts[last]
	if n, is := item.(json.Number); is {
		cost += (last + 1) * (3 + 4*numberCost(n))
	}
	return cost / comparedPerStep
}
