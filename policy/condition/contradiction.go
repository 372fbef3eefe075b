package condition

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// maxExactInteger is the largest integer up to which doubles hold every one.
const maxExactInteger = 1 << 53

// Contradiction returns the member of the arguments, as a dotted path, for which the condition
// asks for what cannot be: no value meets what it asks for together with what the schemas of all
// versions of the tool allow. It is empty where none was found, which does not say that the
// condition can be true. Schemas may be absent.
func (a *Analysis) Contradiction(versions ...Tool) string {
	if len(versions) == 0 {
		versions = []Tool{{}}
	}
	var member string
	for _, t := range versions {
		c := &asked{schema: plainSchema(t), ranges: map[string]*valueRange{}}
		if member = c.contradiction(a.root); member == "" {
			return ""
		}
	}
	return member
}

// valueRange is what a asked leaves of a value. All bounds are of one value.
type valueRange struct {
	allowed   []any // strings, float64s and bools; nil: not restricted to a list
	low, high float64
	lowOpen   bool // low itself is not allowed
	highOpen  bool
	numeric   bool // a comparison of size asks for a number
}

// asked gathers what must hold together.
type asked struct {
	schema map[string]any
	ranges map[string]*valueRange // by dotted path
}

// contradiction adds what an expression asks for, and returns a path for which nothing is left.
func (c *asked) contradiction(e celast.Expr) string {
	if e.Kind() != celast.CallKind {
		return ""
	}
	call := e.AsCall()
	args := call.Args()
	switch function := call.FunctionName(); function {
	case operators.LogicalAnd:
		for _, part := range args {
			if path := c.contradiction(part); path != "" {
				return path
			}
		}
	case operators.LogicalOr:
		path := ""
		for _, part := range args {
			branch := c.clone()
			if path = branch.contradiction(part); path == "" {
				return ""
			}
		}
		return path
	case operators.Equals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.In:
		if path, ok := memberPath(args[0]); ok && !isPresence(args[0]) {
			return c.compare(path, function, args[1])
		}
		if path, ok := memberPath(args[1]); ok && !isPresence(args[1]) && function != operators.In {
			return c.compare(path, mirrored[function], args[0])
		}
	}
	return ""
}

func (c *asked) clone() *asked {
	other := &asked{schema: c.schema, ranges: map[string]*valueRange{}}
	for path, r := range c.ranges {
		own := *r
		own.allowed = slices.Clone(r.allowed)
		other.ranges[path] = &own
	}
	return other
}

// compare adds one comparison of a member with a literal.
func (c *asked) compare(path []string, function string, with celast.Expr) string {
	key := strings.Join(path, ".")
	r := c.ranges[key]
	if r == nil {
		r = schemaRange(c.schema, path)
		c.ranges[key] = r
	}
	switch function {
	case operators.Equals:
		if v, ok := literal(with); ok {
			r.restrict([]any{v})
		}
	case operators.In:
		if with.Kind() == celast.ListKind {
			var all []any
			for _, e := range with.AsList().Elements() {
				v, ok := literal(e)
				if !ok {
					return ""
				}
				all = append(all, v)
			}
			r.restrict(all)
		}
	default:
		v, ok := literal(with)
		n, isNumber := v.(float64)
		if !ok || !isNumber {
			return ""
		}
		r.numeric = true
		r.bound(function, n)
	}
	if r.empty() {
		return key
	}
	return ""
}

// schemaRange is what a tool's schema leaves of a member: its enum, const and bounds, where every
// schema on the way is a plain object's.
func schemaRange(schema map[string]any, path []string) *valueRange {
	r := &valueRange{low: math.Inf(-1), high: math.Inf(1)}
	for _, name := range path {
		properties, _ := schema["properties"].(map[string]any)
		if schema, _ = properties[name].(map[string]any); schema == nil {
			return r
		}
	}
	if enum, stated := schema["enum"].([]any); stated {
		r.restrictBySchema(enum)
	}
	if only, stated := schema["const"]; stated {
		r.restrictBySchema([]any{only})
	}
	for keyword, function := range map[string]string{
		"minimum": operators.GreaterEquals, "exclusiveMinimum": operators.Greater, "maximum": operators.LessEquals, "exclusiveMaximum": operators.Less,
	} {
		if n, ok := schemaValue(schema[keyword]).(float64); ok {
			r.bound(function, n)
		}
	}
	return r
}

// restrictBySchema restricts to values of a schema, unless one is neither a text, a number nor a
// bool.
func (r *valueRange) restrictBySchema(values []any) {
	all := make([]any, len(values))
	for i, v := range values {
		if all[i] = schemaValue(v); all[i] == nil {
			return
		}
	}
	r.restrict(all)
}

func schemaValue(v any) any {
	switch v := v.(type) {
	case string, bool:
		return v
	case json.Number:
		// A number of so few characters is no other double than its neighbours of as few are.
		if f, err := v.Float64(); err == nil && len(v) <= maxDigits && math.Abs(f) <= maxExactInteger {
			return f
		}
	}
	return nil
}

// restrict leaves the values of a list alone.
func (r *valueRange) restrict(values []any) {
	if r.allowed != nil {
		values = slices.DeleteFunc(slices.Clone(values), func(v any) bool { return !slices.Contains(r.allowed, v) })
	}
	r.allowed = append([]any{}, values...)
}

// bound adds a bound of numbers. A schema's bound does not hold for a value of another type.
func (r *valueRange) bound(function string, n float64) {
	switch function {
	case operators.Less, operators.LessEquals:
		if open := function == operators.Less; n < r.high || n == r.high && open {
			r.high, r.highOpen = n, open
		}
	case operators.Greater, operators.GreaterEquals:
		if open := function == operators.Greater; n > r.low || n == r.low && open {
			r.low, r.lowOpen = n, open
		}
	}
}

// empty reports whether no value is left.
func (r *valueRange) empty() bool {
	if r.allowed == nil {
		return r.numeric && (r.low > r.high || r.low == r.high && (r.lowOpen || r.highOpen))
	}
	return !slices.ContainsFunc(r.allowed, func(v any) bool {
		n, isNumber := v.(float64)
		if !isNumber {
			return !r.numeric
		}
		return (n > r.low || n == r.low && !r.lowOpen) && (n < r.high || n == r.high && !r.highOpen)
	})
}
