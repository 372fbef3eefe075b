package condition

import (
	"maps"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// rewriter prepares a parsed expression for a check against a schema. At run
// time an object is a map, and conditions may use it as one; to the checker it
// is a type with fields. So args["a"] becomes args.a, "a" in args becomes
// has(args.a), and an object that is used whole becomes dyn(object).
type rewriter struct {
	factory celast.ExprFactory
	next    int64
	root    *valueType
}

// scope holds the shapes of a loop's variables.
type scope map[string]*valueType

func (w *rewriter) id() int64 {
	w.next++
	return w.next
}

// typeOf resolves an expression to the place of the arguments that it denotes.
func (w *rewriter) typeOf(e celast.Expr, in scope) *valueType {
	switch e.Kind() {
	case celast.IdentKind:
		if s, bound := in[e.AsIdent()]; bound {
			return s
		}
		if e.AsIdent() == varArgs {
			return w.root
		}
	case celast.SelectKind:
		if s := e.AsSelect(); !s.IsTestOnly() {
			if owner := w.typeOf(s.Operand(), in); owner != nil && (owner.kind == object || owner.kind == mapping) {
				return owner.member(s.FieldName())
			}
		}
	case celast.CallKind:
		if c := e.AsCall(); c.FunctionName() == operators.Index && len(c.Args()) == 2 {
			owner := w.typeOf(c.Args()[0], in)
			switch {
			case owner == nil:
			case owner.kind == array:
				return owner.items
			case owner.kind == mapping:
				return owner.additional
			}
		}
	}
	return nil
}

// walk rewrites e and all below it. An object of which a member is selected stays an
// object; one that is used whole is wrapped.
func (w *rewriter) walk(e celast.Expr, in scope, whole bool) {
	switch e.Kind() {
	case celast.SelectKind:
		w.walk(e.AsSelect().Operand(), in, false)
	case celast.CallKind:
		w.call(e, in)
	case celast.ListKind:
		for _, element := range e.AsList().Elements() {
			w.walk(element, in, true)
		}
	case celast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			w.walk(entry.AsMapEntry().Key(), in, true)
			w.walk(entry.AsMapEntry().Value(), in, true)
		}
	case celast.ComprehensionKind:
		w.loop(e.AsComprehension(), in)
	}
	if !whole {
		return
	}
	if s := w.typeOf(e, in); s != nil && s.kind == object {
		w.wrap(e)
	}
}

func (w *rewriter) call(e celast.Expr, in scope) {
	c := e.AsCall()
	args := c.Args()
	if len(args) == 2 {
		switch c.FunctionName() {
		case operators.Index:
			w.walk(args[0], in, false)
			w.walk(args[1], in, true)
			owner := w.typeOf(args[0], in)
			if owner == nil || owner.kind != object {
				return
			}
			if name, isName := literalText(args[1]); isName {
				e.SetKindCase(w.factory.NewSelect(e.ID(), args[0], name))
			} else {
				w.wrap(args[0])
			}
			return
		case operators.In:
			owner := w.typeOf(args[1], in)
			if name, isName := literalText(args[0]); isName && owner != nil && owner.kind == object {
				w.walk(args[1], in, false)
				e.SetKindCase(w.factory.NewPresenceTest(e.ID(), args[1], name))
				return
			}
		}
	}
	if c.IsMemberFunction() {
		w.walk(c.Target(), in, true)
	}
	for _, arg := range args {
		w.walk(arg, in, true)
	}
}

func (w *rewriter) loop(c celast.ComprehensionExpr, in scope) {
	inner := maps.Clone(in)
	inner[c.IterVar()] = nil
	if s := w.typeOf(c.IterRange(), in); s != nil && s.kind == array {
		inner[c.IterVar()] = s.items
	}
	w.walk(c.IterRange(), in, true)
	inner[c.AccuVar()] = nil
	w.walk(c.AccuInit(), in, true)
	w.walk(c.LoopCondition(), inner, true)
	w.walk(c.LoopStep(), inner, true)
	w.walk(c.Result(), inner, true)
}

// wrap turns an object into dyn(object).
func (w *rewriter) wrap(e celast.Expr) {
	var inner celast.Expr
	switch e.Kind() {
	case celast.IdentKind:
		inner = w.factory.NewIdent(w.id(), e.AsIdent())
	case celast.SelectKind:
		inner = w.factory.NewSelect(w.id(), e.AsSelect().Operand(), e.AsSelect().FieldName())
	case celast.CallKind:
		inner = w.factory.NewCall(w.id(), e.AsCall().FunctionName(), e.AsCall().Args()...)
	default:
		return
	}
	e.SetKindCase(w.factory.NewCall(e.ID(), "dyn", inner))
}

func literalText(e celast.Expr) (string, bool) {
	if e.Kind() != celast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}
