package condition

import (
	"fmt"
	"slices"
	"sync"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// parserEnv is CEL as conditions are parsed for questions on their text. Without its macros, a loop
// has no text.
var parserEnv = sync.OnceValues(func() (*cel.Env, error) {
	env, err := baseEnv()
	if err != nil {
		return nil, err
	}
	return env.Extend(cel.EnableMacroCallTracking(), cel.Variable(varArgs, cel.MapType(cel.StringType, cel.DynType)))
})

func parse(expression string) (*celast.AST, error) {
	env, err := parserEnv()
	if err != nil {
		return nil, fmt.Errorf("policy: conditions: %w", err)
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return nil, fmt.Errorf("policy: conditions: %w", issues.Err())
	}
	return parsed.NativeRep(), nil
}

// Paths lists the members of args that an expression that compiles reads or asks for, sorted, each
// once. A member of a member has two steps.
func Paths(expression string) ([][]string, error) {
	parsed, err := parse(expression)
	if err != nil {
		return nil, err
	}
	paths := appendPaths(nil, parsed.Expr())
	slices.SortFunc(paths, slices.Compare)
	return slices.CompactFunc(paths, slices.Equal), nil
}

func appendPaths(paths [][]string, e celast.Expr) [][]string {
	if path, ok := memberPath(e); ok {
		return append(paths, path)
	}
	var parts []celast.Expr
	switch e.Kind() {
	case celast.SelectKind:
		parts = []celast.Expr{e.AsSelect().Operand()}
	case celast.CallKind:
		c := e.AsCall()
		if c.FunctionName() == operators.In && isArgs(c.Args()[1]) {
			if name, ok := literalText(c.Args()[0]); ok {
				return append(paths, []string{name})
			}
		}
		if parts = c.Args(); c.IsMemberFunction() {
			parts = append([]celast.Expr{c.Target()}, parts...)
		}
	case celast.ListKind:
		parts = e.AsList().Elements()
	case celast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			parts = append(parts, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case celast.ComprehensionKind:
		c := e.AsComprehension()
		parts = []celast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	}
	for _, part := range parts {
		paths = appendPaths(paths, part)
	}
	return paths
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
