package condition

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// maxExactNumber bounds the literals of a condition that is Exact: below it, integers and
// doubles compare without rounding.
const maxExactNumber = 1e15

// Facts are the facts that a condition states directly: the members of args that it reads, and the
// literals that it can compare them with. It is for the search of arguments that two
// policies decide differently. All lists are sorted, each value once.
type Facts struct {
	Paths    [][]string    // below args; a member of a member has two steps
	Texts    []string      // string literals
	Patterns []string      // the literal patterns of matches
	Numbers  []json.Number // number literals
	// ReadsCaller says that it reads agent, workspace, project or tool.
	ReadsCaller bool
	// Exact says that the condition tells arguments apart only by these: whether a member
	// of args is there, its JSON type, whether it is true, whether it equals a literal, and
	// for numbers whether it is below or above a literal. So one value for each of these
	// cases stands for all.
	Exact bool
}

// Inspect reads the facts of an expression that compiles.
func Inspect(expression string) (Facts, error) {
	env, err := baseEnv()
	if err != nil {
		return Facts{}, err
	}
	if env, err = env.Extend(cel.Variable(varArgs, cel.MapType(cel.StringType, cel.DynType))); err != nil {
		return Facts{}, err
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return Facts{}, issues.Err()
	}
	i := &inspector{}
	root := parsed.NativeRep().Expr()
	i.walk(root)
	i.facts.Exact = exactBool(root) && !i.wide
	slices.SortFunc(i.facts.Paths, slices.Compare)
	i.facts.Paths = slices.CompactFunc(i.facts.Paths, slices.Equal)
	slices.Sort(i.facts.Texts)
	i.facts.Texts = slices.Compact(i.facts.Texts)
	slices.Sort(i.facts.Patterns)
	i.facts.Patterns = slices.Compact(i.facts.Patterns)
	slices.Sort(i.facts.Numbers)
	i.facts.Numbers = slices.Compact(i.facts.Numbers)
	return i.facts, nil
}

// inspector gathers the facts of one expression.
type inspector struct {
	facts Facts
	wide  bool // a number literal is too large or too precise to be compared without rounding
}

func (i *inspector) walk(e celast.Expr) {
	if path, ok := memberPath(e); ok {
		i.facts.Paths = append(i.facts.Paths, path)
		return
	}
	switch e.Kind() {
	case celast.IdentKind:
		switch e.AsIdent() {
		case varAgent, varWorkspace, varProject, varTool:
			i.facts.ReadsCaller = true
		}
	case celast.LiteralKind:
		i.literal(e.AsLiteral())
	case celast.SelectKind:
		i.walk(e.AsSelect().Operand())
	case celast.CallKind:
		i.call(e.AsCall())
	case celast.ListKind:
		for _, element := range e.AsList().Elements() {
			i.walk(element)
		}
	case celast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			i.walk(entry.AsMapEntry().Key())
			i.walk(entry.AsMapEntry().Value())
		}
	case celast.ComprehensionKind:
		c := e.AsComprehension()
		for _, part := range []celast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			i.walk(part)
		}
	}
}

func (i *inspector) call(c celast.CallExpr) {
	if c.IsMemberFunction() {
		i.walk(c.Target())
	}
	args := c.Args()
	if c.FunctionName() == "matches" && len(args) > 0 {
		if pattern, ok := literalText(args[len(args)-1]); ok {
			i.facts.Patterns = append(i.facts.Patterns, pattern)
			args = args[:len(args)-1]
		}
	}
	if c.FunctionName() == operators.In && len(args) == 2 && isArgs(args[1]) {
		if name, ok := literalText(args[0]); ok {
			i.facts.Paths = append(i.facts.Paths, []string{name})
			return
		}
	}
	for _, arg := range args {
		i.walk(arg)
	}
}

func (i *inspector) literal(v ref.Val) {
	switch v := v.(type) {
	case types.String:
		i.facts.Texts = append(i.facts.Texts, string(v))
	case types.Int:
		i.number(strconv.FormatInt(int64(v), 10), float64(v))
	case types.Uint:
		i.number(strconv.FormatUint(uint64(v), 10), float64(v))
	case types.Double:
		i.number(strconv.FormatFloat(float64(v), 'g', -1, 64), float64(v))
	}
}

func (i *inspector) number(text string, value float64) {
	digits := strings.Trim(strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, strings.SplitN(text, "e", 2)[0]), "0")
	if math.Abs(value) > maxExactNumber || len(digits) > maxDigits || value != 0 && math.Abs(value) < 1/maxExactNumber {
		i.wide = true
	}
	if !math.IsInf(value, 0) && !math.IsNaN(value) {
		i.facts.Numbers = append(i.facts.Numbers, json.Number(strings.Replace(text, "e+", "e", 1)))
	}
}

func isArgs(e celast.Expr) bool { return e.Kind() == celast.IdentKind && e.AsIdent() == varArgs }

// memberPath reads args.a.b, args["a"].b and has(args.a.b).
func memberPath(e celast.Expr) ([]string, bool) {
	var owner celast.Expr
	var name string
	switch e.Kind() {
	case celast.SelectKind:
		owner, name = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case celast.CallKind:
		c := e.AsCall()
		text, ok := "", false
		if c.FunctionName() == operators.Index && len(c.Args()) == 2 {
			owner = c.Args()[0]
			text, ok = literalText(c.Args()[1])
		}
		if !ok {
			return nil, false
		}
		name = text
	default:
		return nil, false
	}
	if isArgs(owner) {
		return []string{name}, true
	}
	path, ok := memberPath(owner)
	return append(path, name), ok
}

// exactBool reports whether an expression is of the forms that Facts.Exact names.
func exactBool(e celast.Expr) bool {
	if !readsArgs(e) {
		return true
	}
	if path, ok := memberPath(e); ok {
		return len(path) == 1
	}
	if e.Kind() != celast.CallKind {
		return false
	}
	c := e.AsCall()
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
		for _, arg := range args {
			if !exactBool(arg) {
				return false
			}
		}
		return true
	case operators.Equals, operators.NotEquals:
		return len(args) == 2 && comparison(args, isScalar)
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return len(args) == 2 && comparison(args, isNumber)
	case operators.In:
		if len(args) != 2 {
			return false
		}
		if _, isName := literalText(args[0]); isName && isArgs(args[1]) {
			return true
		}
		if args[1].Kind() != celast.ListKind || !oneStep(args[0]) {
			return false
		}
		for _, element := range args[1].AsList().Elements() {
			if !isScalar(element) {
				return false
			}
		}
		return true
	}
	return false
}

// comparison reports whether one of two operands is a member of args, and the other a
// literal.
func comparison(args []celast.Expr, literal func(celast.Expr) bool) bool {
	return oneStep(args[0]) && literal(args[1]) || oneStep(args[1]) && literal(args[0])
}

func oneStep(e celast.Expr) bool {
	path, ok := memberPath(e)
	return ok && len(path) == 1 && (e.Kind() != celast.SelectKind || !e.AsSelect().IsTestOnly())
}

func isScalar(e celast.Expr) bool {
	if e.Kind() != celast.LiteralKind {
		return false
	}
	switch e.AsLiteral().(type) {
	case types.String, types.Bool, types.Null:
		return true
	}
	return isNumber(e)
}

func isNumber(e celast.Expr) bool {
	if e.Kind() != celast.LiteralKind {
		return false
	}
	switch v := e.AsLiteral().(type) {
	case types.Int, types.Uint:
		return true
	case types.Double:
		return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0)
	}
	return false
}

// readsArgs reports whether args stands anywhere in an expression.
func readsArgs(e celast.Expr) bool {
	found := false
	celast.PostOrderVisit(e, celast.NewExprVisitor(func(part celast.Expr) { found = found || isArgs(part) }))
	return found
}
