package schema

import (
	"encoding/json"
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

// valueSet is the values of an enum, or the one of a const.
type valueSet struct {
	list []any
	cost int // of comparing with each
}

func newValueSet(list []any) *valueSet { return &valueSet{list, compareCost(list)} }

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

// compareCost is the steps that the library takes to look a value up in this set: it compares with
// one after another.
func (v *valueSet) compareCost(item any) int {
	cost := v.cost
	if n, is := item.(json.Number); is {
		cost += len(v.list) * (3 + 4*numberCost(n))
	}
	return cost / comparedPerStep
}
