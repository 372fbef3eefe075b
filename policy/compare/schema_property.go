package compare

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/decimal"
)

// property is what all schemas of a tool, of both sides, say alike of one member of the
// arguments. A value that it excludes is excluded for certain; it allows every value that it does not know.
type property struct {
	required bool
	types    []string // JSON types, with integer; nil is any
	enum     []any    // nil is any
	bounds   []float64
	low      float64 // inclusive or not: nothing below is accepted
	high     float64
}

// readSchema reads a schema that was loaded, as an object; nil where it is none.
func readSchema(raw json.RawMessage) map[string]any {
	var schema map[string]any
	if decimal.Unmarshal(raw, &schema) != nil {
		return nil
	}
	return schema
}

// propertyOf reads one member; a schema that does not declare it allows everything.
func propertyOf(schemas []map[string]any, name string) property {
	p := property{low: math.Inf(-1), high: math.Inf(1)}
	for i, schema := range schemas {
		one := readProperty(schema, name)
		if i == 0 {
			p = one
			continue
		}
		p.required = p.required && one.required
		p.types = union(p.types, one.types)
		if p.enum == nil || one.enum == nil {
			p.enum = nil
		} else {
			p.enum = append(p.enum, one.enum...)
		}
		p.bounds = append(p.bounds, one.bounds...)
		p.low, p.high = min(p.low, one.low), max(p.high, one.high)
	}
	return p
}

func union(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	return append(slices.Clone(a), b...)
}

func readProperty(schema map[string]any, name string) property {
	p := property{low: math.Inf(-1), high: math.Inf(1)}
	p.required = slices.Contains(texts(schema["required"]), name)
	declared, _ := schema["properties"].(map[string]any)
	of, isObject := declared[name].(map[string]any)
	if !isObject {
		return p
	}
	switch kind := of["type"].(type) {
	case string:
		p.types = []string{kind}
	case []any:
		p.types = texts(kind)
	}
	if values, ok := of["enum"].([]any); ok && !slices.ContainsFunc(values, isComposite) {
		p.enum = values
	}
	if value, ok := of["const"]; ok && !isComposite(value) {
		p.enum = []any{value}
	}
	for _, keyword := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
		n, isNumber := of[keyword].(json.Number)
		if !isNumber {
			continue
		}
		v, ok := exactNumber(n)
		if !ok {
			continue
		}
		p.bounds = append(p.bounds, v)
		if strings.HasSuffix(strings.ToLower(keyword), "minimum") {
			p.low = max(p.low, v)
		} else {
			p.high = min(p.high, v)
		}
	}
	return p
}

func texts(value any) []string {
	list, _ := value.([]any)
	found := []string{}
	for _, v := range list {
		if text, ok := v.(string); ok {
			found = append(found, text)
		}
	}
	return found
}

func isComposite(value any) bool {
	switch value.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// allows reports whether a value may be accepted, as far as type and bounds go.
func (p property) allows(value any) bool {
	n, isNumber := value.(json.Number)
	if isNumber {
		if v, exact := exactNumber(n); exact && (v < p.low || v > p.high) {
			return false
		}
	}
	if p.types == nil {
		return true
	}
	switch value := value.(type) {
	case nil:
		return slices.Contains(p.types, "null")
	case bool:
		return slices.Contains(p.types, "boolean")
	case string:
		return slices.Contains(p.types, "string")
	case []any:
		return slices.Contains(p.types, "array")
	case map[string]any:
		return slices.Contains(p.types, "object")
	case json.Number:
		return slices.Contains(p.types, "number") || slices.Contains(p.types, "integer") && isInteger(value)
	}
	return true
}

// integers reports whether every number that is accepted is an integer.
func (p property) integers() bool {
	return p.types != nil && slices.Contains(p.types, "integer") && !slices.Contains(p.types, "number")
}

func isInteger(n json.Number) bool {
	if v, exact := exactNumber(n); exact {
		return v == math.Trunc(v)
	}
	return !strings.ContainsAny(string(n), ".eE")
}

// maxExact and maxDigits bound the numbers that are compared here without rounding.
const (
	maxExact  = 1e15
	maxDigits = 15
)

// exactNumber is a number that a double holds and that conditions compare exactly.
func exactNumber(n json.Number) (float64, bool) {
	v, err := n.Float64()
	mantissa, _, _ := strings.Cut(strings.ToLower(string(n)), "e")
	digits := strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0")
	return v, err == nil && math.Abs(v) <= maxExact && len(digits) <= maxDigits
}

// numberBetween is a short number strictly between two.
func numberBetween(a, b float64) (json.Number, bool) {
	for digits := 1; digits <= maxDigits; digits++ {
		text := strconv.FormatFloat(a+(b-a)/2, 'g', digits, 64)
		if v, err := strconv.ParseFloat(text, 64); err == nil && a < v && v < b {
			return jsonNumber(v), true
		}
	}
	return "", false
}

// jsonNumber writes a number as JSON.
func jsonNumber(v float64) json.Number {
	if v == math.Trunc(v) && math.Abs(v) <= 2*maxExact {
		return json.Number(strconv.FormatFloat(v, 'f', -1, 64))
	}
	return json.Number(strings.Replace(strconv.FormatFloat(v, 'g', -1, 64), "e+", "e", 1))
}
