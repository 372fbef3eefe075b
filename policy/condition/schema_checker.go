package condition

import (
	"fmt"
	"maps"
	"slices"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// schemaTypes tells CEL's checker the types of one tool's arguments.
type schemaTypes struct {
	types.Provider
	objects map[string]*valueType
}

// FindStructType implements types.Provider.
func (p schemaTypes) FindStructType(name string) (*types.Type, bool) {
	if _, found := p.objects[name]; found {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (p schemaTypes) FindStructFieldNames(name string) ([]string, bool) {
	if s, found := p.objects[name]; found {
		return slices.Collect(maps.Keys(s.members)), true
	}
	return p.Provider.FindStructFieldNames(name)
}

// FindStructFieldType implements types.Provider.
func (p schemaTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	s, found := p.objects[name]
	if !found {
		return p.Provider.FindStructFieldType(name, field)
	}
	m := s.member(field)
	if m == nil {
		return nil, false
	}
	return &types.FieldType{
		Type:    m.celType(),
		IsSet:   func(any) bool { return false },
		GetFrom: func(any) (any, error) { return nil, errUnrepresentable },
	}, true
}

// schemaChecker checks expressions against the input schema of one tool.
type schemaChecker struct {
	tool     string
	env      *cel.Env
	root     *valueType
	objects  map[string]*valueType
	registry *registered
}

func newSchemaChecker(base *cel.Env, t Tool, registry *registered) (*schemaChecker, error) {
	root, objects, err := argumentType(t)
	if err != nil {
		return nil, err
	}
	env, err := base.Extend(
		cel.CustomTypeProvider(schemaTypes{base.CELTypeProvider(), objects}),
		cel.Variable(varArgs, root.celType()),
	)
	if err != nil {
		return nil, fmt.Errorf("conditions on %s cannot be checked: %w", t.Name, err)
	}
	return &schemaChecker{tool: t.Name, env: env, root: root, objects: objects, registry: registry}, nil
}

// Issue is one fault of an expression, at a byte of it.
type Issue struct {
	Offset   int
	Found    string
	Expected string
}

// check returns the first fault of the expression under the schema, or nil.
func (l *schemaChecker) check(expression string) *Issue {
	parsed, issues := l.env.Parse(expression)
	if issues.Err() != nil {
		return issueOf(expression, issues)
	}
	asked := readPast(expression, parsed.NativeRep(), l.registry)
	if asked.issue != nil {
		return asked.issue
	}
	w := &rewriter{factory: celast.NewExprFactory(), next: celast.MaxID(parsed.NativeRep()), root: l.root}
	w.walk(parsed.NativeRep().Expr(), scope{}, true)
	checked, issues := l.env.Check(parsed)
	if issues.Err() != nil {
		c := issueOf(expression, issues)
		c.Expected = l.allows()
		return c
	}
	if c := l.checkNumbers(expression, checked); c != nil {
		return c
	}
	if c := asked.checkValues(checked, l); c != nil {
		return c
	}
	return checkCost(l.env, checked, l.root)
}

func (l *schemaChecker) allows() string {
	if l.tool == "" {
		return "a comparison of the sum with a number"
	}
	return "what the input schema of " + l.tool + " allows"
}

// checkNumbers finds what CEL's checker lets pass because numbers are dyn to it.
func (l *schemaChecker) checkNumbers(expression string, checked *cel.Ast) *Issue {
	ast := checked.NativeRep()
	var found *Issue
	complain := func(e celast.Expr, what string) {
		if found == nil {
			found = &Issue{
				Offset:   offsetOf(expression, ast.SourceInfo(), e.ID()),
				Found:    what,
				Expected: l.allows(),
			}
		}
	}
	if name, is := l.numericMember(ast, ast.Expr()); is {
		complain(ast.Expr(), fmt.Sprintf("the number %s as the whole condition", name))
	}
	celast.PostOrderVisit(ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind {
			return
		}
		call := e.AsCall()
		operands := call.Args()
		if call.IsMemberFunction() {
			operands = append([]celast.Expr{call.Target()}, operands...)
		}
		for i, operand := range operands {
			name, is := l.numericMember(ast, operand)
			if !is {
				continue
			}
			switch function := call.FunctionName(); function {
			case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater,
				operators.GreaterEquals, operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
				if other := ast.GetType(operands[1-i].ID()); !mayBeNumber(other) {
					complain(e, fmt.Sprintf("the number %s with a %s", name, other))
				}
			case operators.In:
				if i == 0 && !mayHoldNumber(ast.GetType(operands[1].ID())) {
					complain(e, fmt.Sprintf("the number %s in a %s", name, ast.GetType(operands[1].ID())))
				}
			case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot:
				complain(e, fmt.Sprintf("the number %s as a bool", name))
			case "startsWith", "endsWith", "contains", "matches", "size":
				complain(e, fmt.Sprintf("%s of the number %s", function, name))
			}
		}
	}))
	return found
}

// numericMember reports whether an expression selects a member that is a number, or is a sum.
func (l *schemaChecker) numericMember(ast *celast.AST, e celast.Expr) (name string, is bool) {
	if e.Kind() == celast.CallKind && e.AsCall().FunctionName() == callSum {
		return "of a sum", true
	}
	if e.Kind() != celast.SelectKind || e.AsSelect().IsTestOnly() {
		return "", false
	}
	selected := e.AsSelect()
	owner := l.objects[ast.GetType(selected.Operand().ID()).TypeName()]
	if owner == nil {
		return "", false
	}
	m := owner.member(selected.FieldName())
	return selected.FieldName(), m != nil && m.kind == numeric && !m.nullable
}

func mayBeNumber(t *types.Type) bool {
	switch t.Kind() {
	case types.IntKind, types.UintKind, types.DoubleKind, types.DynKind, types.AnyKind, types.TypeParamKind, types.ErrorKind:
		return true
	}
	return false
}

// mayHoldNumber reports whether a list's element or a map's key may be a number.
func mayHoldNumber(t *types.Type) bool {
	if len(t.Parameters()) == 0 {
		return mayBeNumber(t)
	}
	return mayBeNumber(t.Parameters()[0])
}
