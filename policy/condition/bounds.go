package condition

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// maxExactNumber bounds the number literals that are compared: below it, integers and doubles
// compare without rounding.
const maxExactNumber = 1e15

// Conjunction is what a condition asks for together, in the order of its text. No element is always
// met. Two conjunctions compare where both have bounds on the same members; of anything else only the
// same text is the same.
type Conjunction []bound

// boundKind is what a bound asks of a member.
type boundKind int

const (
	other   boundKind = iota // anything else: only the text is known
	present                  // has(args.a)
	most                     // args.a <= 1, args.a < 1
	least                    // args.a >= 1, args.a > 1
	oneOf                    // args.a == 1, args.a in ['x', 'y']
)

// bound is one element of a conjunction. A member that is not there fails every bound on its value;
// most and least also fail for what is no number, where oneOf is false.
type bound struct {
	kind   boundKind
	path   string // of the member below args, each step quoted
	name   string // of the member, for people
	number float64
	open   bool  // number itself is not within
	values []any // string, float64, bool or nil
	text   string
}

// ReadConjunction reads a condition that compiles; "" is always met.
func ReadConjunction(expression string) Conjunction {
	if expression == "" {
		return nil
	}
	whole := Conjunction{{text: expression}}
	parsed, err := parse(expression)
	if err != nil {
		return whole
	}
	c, ok := appendConjunction(nil, parsed.Expr(), parsed.SourceInfo())
	if !ok {
		return whole
	}
	return c
}

func appendConjunction(c Conjunction, e celast.Expr, info *celast.SourceInfo) (Conjunction, bool) {
	if e.Kind() == celast.CallKind && e.AsCall().FunctionName() == operators.LogicalAnd {
		for _, part := range e.AsCall().Args() {
			longer, ok := appendConjunction(c, part, info)
			if !ok {
				return nil, false
			}
			c = longer
		}
		return c, true
	}
	if b, ok := boundOf(e); ok {
		return append(c, b), true
	}
	text, err := cel.ExprToString(e, info)
	return append(c, bound{text: text}), err == nil
}

// mirrored are the comparisons with their sides exchanged.
var mirrored = map[string]string{
	operators.Equals: operators.Equals, operators.Less: operators.Greater, operators.LessEquals: operators.GreaterEquals,
	operators.Greater: operators.Less, operators.GreaterEquals: operators.LessEquals,
}

func boundOf(e celast.Expr) (bound, bool) {
	if isPresence(e) {
		path, ok := quotedPath(e)
		// An index may read what stands on the way.
		return bound{kind: present, path: path}, ok && !strings.Contains(path, "[")
	}
	if e.Kind() != celast.CallKind || len(e.AsCall().Args()) != 2 {
		return bound{}, false
	}
	function, args := e.AsCall().FunctionName(), e.AsCall().Args()
	member, with := args[0], args[1]
	if with.Kind() != celast.LiteralKind && mirrored[function] != "" {
		function, member, with = mirrored[function], with, member
	}
	path, ok := quotedPath(member)
	if !ok || path == "" || isPresence(member) {
		return bound{}, false
	}
	names, _ := memberPath(member)
	b := bound{path: path, name: strings.Join(names, ".")}
	if function == operators.Equals || function == operators.In {
		b.kind = oneOf
		list := []celast.Expr{with}
		if function == operators.In {
			if with.Kind() != celast.ListKind {
				return bound{}, false
			}
			list = with.AsList().Elements()
		}
		if len(list) == 0 { // CEL reads no member for it
			return bound{}, false
		}
		for _, element := range list {
			v, ok := literal(element)
			if !ok {
				return bound{}, false
			}
			b.values = append(b.values, v)
		}
		return b, true
	}
	v, exact := literal(with)
	number, isNumber := v.(float64)
	b.number = number
	b.open = function == operators.Less || function == operators.Greater
	switch function {
	case operators.Less, operators.LessEquals:
		b.kind = most
	case operators.Greater, operators.GreaterEquals:
		b.kind = least
	}
	return b, exact && isNumber && b.kind != other
}

// isPresence reports whether an expression asks whether a member is there: has(args.a).
func isPresence(e celast.Expr) bool {
	return e.Kind() == celast.SelectKind && e.AsSelect().IsTestOnly()
}

// quotedPath is the path of a member below args as it is written: args.a and args["a"] are not the
// same.
func quotedPath(e celast.Expr) (string, bool) {
	switch {
	case isArgs(e):
		return "", true
	case e.Kind() == celast.SelectKind:
		path, ok := quotedPath(e.AsSelect().Operand())
		return path + "." + strconv.Quote(e.AsSelect().FieldName()), ok
	case e.Kind() == celast.CallKind && e.AsCall().FunctionName() == operators.Index:
		name, isText := literalText(e.AsCall().Args()[1])
		path, ok := quotedPath(e.AsCall().Args()[0])
		return path + "[" + strconv.Quote(name), ok && isText
	}
	return "", false
}

// literal is the value of a literal, as a string, a float64, a bool or nil. Numbers that may be
// rounded are none.
func literal(e celast.Expr) (any, bool) {
	if e.Kind() != celast.LiteralKind {
		return nil, false
	}
	var number float64
	switch v := e.AsLiteral().(type) {
	case types.String:
		return string(v), true
	case types.Bool:
		return bool(v), true
	case types.Null:
		return nil, true
	case types.Int:
		number = float64(v)
	case types.Uint:
		number = float64(v)
	case types.Double:
		number = float64(v)
	default:
		return nil, false
	}
	return number, math.Abs(number) <= maxExactNumber
}

// Implies reports that wherever the conjunction is met, the other is. False is no proof of the
// contrary.
func (c Conjunction) Implies(other Conjunction) bool {
	return !slices.ContainsFunc(other, func(b bound) bool {
		return !slices.ContainsFunc(c, func(a bound) bool { return a.implies(b) })
	})
}

// FailsWithin reports that wherever the conjunction is met or fails, the other is met or fails too:
// so the row of the other denies or asks wherever the row of the conjunction does. False is no proof
// of the contrary.
//
// A conjunction is false by its first element that is, unless one before it has read a number that
// cannot be held. So each element of the other needs one here that is false with it, and before which
// nothing is read that the other has not read.
func (c Conjunction) FailsWithin(other Conjunction) bool {
	for j, b := range other {
		i := slices.IndexFunc(c, func(a bound) bool { return a.falseWith(b) })
		if i < 0 || slices.ContainsFunc(c[:i+1], func(a bound) bool { return !slices.ContainsFunc(other[:j+1], a.readsNoMoreThan) }) {
			return false
		}
	}
	return true
}

// Contradiction returns a member of the arguments, as a dotted path, of which two bounds exclude each
// other, so that the conjunction is never met; "" where no two do, which does not say that it can be.
func (c Conjunction) Contradiction() string {
	for i, b := range c {
		if slices.ContainsFunc(c[:i], func(a bound) bool { return a.path == b.path && (a.excludes(b) || b.excludes(a)) }) {
			return b.name
		}
	}
	return ""
}

// excludes reports that no value meets two bounds on one member, as far as a says.
func (a bound) excludes(b bound) bool {
	switch {
	case b.kind == other, b.kind == present:
		return false
	case a.kind == oneOf:
		return !slices.ContainsFunc(a.values, b.has)
	}
	return a.kind == most && b.kind == least && (!b.has(a.number) || a.open && a.number == b.number)
}

// implies reports that a is met only where b is.
func (a bound) implies(b bound) bool {
	switch {
	case b.kind == other:
		return a.kind == other && a.text == b.text
	case b.kind == present:
		return a.kind != other && strings.HasPrefix(a.path, b.path) // and below it
	case a.path != b.path:
		return false
	case a.kind == oneOf:
		return !slices.ContainsFunc(a.values, func(v any) bool { return !b.has(v) })
	}
	return a.kind == b.kind && b.has(a.number) || a.kind == b.kind && a.number == b.number && a.open
}

// falseWith reports that a is false wherever b is.
func (a bound) falseWith(b bound) bool {
	if b.kind == present { // bounds on a member that is not there fail
		return a.kind == present && a.path == b.path
	}
	return a.kind != present && a.implies(b)
}

// readsNoMoreThan reports that a reads no value that b does not read.
func (a bound) readsNoMoreThan(b bound) bool {
	switch a.kind {
	case present:
		// has(args.a) reads nothing, and has(args.a.b) reads args.a.
		return !strings.Contains(a.path, `".`) || b.kind == present && a.path == b.path
	case other:
		return b.kind == other && a.text == b.text
	}
	return b.kind != other && b.kind != present && a.path == b.path
}

// has reports whether a bound on a value is met by one.
func (a bound) has(value any) bool {
	if a.kind == oneOf {
		return slices.Contains(a.values, value)
	}
	number, isNumber := value.(float64)
	switch a.kind {
	case most:
		return isNumber && (number < a.number || number == a.number && !a.open)
	case least:
		return isNumber && (number > a.number || number == a.number && !a.open)
	}
	return false
}
