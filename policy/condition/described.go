package condition

import (
	"fmt"
	"maps"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Described says how much of a text a condition that is met has looked at.
type Described int

// Nothing is known of a text, or of a part of it, or all of it.
const (
	NotDescribed Described = iota
	InPart
	Whole
)

// DescribedTexts are the members of args of which a condition tests the text, by their name, or their name and index
// (command[2]). whole reports whether a pattern describes all that it matches.
func DescribedTexts(expression string, whole func(pattern string) bool) (map[string]Described, error) {
	parsed, err := parse(expression)
	if err != nil {
		return nil, err
	}
	d := describer{whole: whole, variables: map[string]string{}}
	return d.of(parsed.Expr()), nil
}

type describer struct {
	whole     func(pattern string) bool
	variables map[string]string // of loops, and what they stand for
}

func (d describer) of(e celast.Expr) map[string]Described {
	switch e.Kind() {
	case celast.ComprehensionKind:
		loop := e.AsComprehension()
		inner := describer{d.whole, maps.Clone(d.variables)}
		inner.variables[loop.IterVar()] = d.text(loop.IterRange())
		found := inner.of(loop.LoopStep())
		if init := loop.AccuInit(); init.Kind() == celast.LiteralKind && init.AsLiteral() == types.False {
			for text := range found {
				found[text] = InPart // exists: the others may be anything
			}
		}
		return both(d.of(loop.IterRange()), found)
	case celast.CallKind:
		return d.call(e.AsCall())
	}
	return nil
}

func (d describer) call(c celast.CallExpr) map[string]Described {
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalAnd:
		return both(d.of(args[0]), d.of(args[1]))
	case operators.LogicalOr:
		return either(d.of(args[0]), d.of(args[1]))
	case operators.Conditional:
		return either(both(d.of(args[0]), d.of(args[1])), d.of(args[2]))
	case operators.LogicalNot:
		return inPart(d.of(args[0]))
	case operators.Equals, operators.In:
		if text := d.text(args[0]); text != "" {
			return map[string]Described{text: Whole}
		}
	case "matches", "startsWith", "endsWith", "contains":
		if !c.IsMemberFunction() {
			break
		}
		found := InPart
		if pattern, literal := literalText(args[0]); c.FunctionName() == "matches" && (!literal || d.whole(pattern)) {
			found = Whole
		}
		if text := d.text(c.Target()); text != "" {
			return map[string]Described{text: found}
		}
	}
	var all map[string]Described
	if c.IsMemberFunction() {
		all = d.of(c.Target())
	}
	for _, arg := range args {
		all = both(all, d.of(arg))
	}
	return inPart(all)
}

// text names the member of args that an expression takes its text from; empty: none.
func (d describer) text(e celast.Expr) string {
	if path, ok := memberPath(e); ok {
		return path[0]
	}
	switch e.Kind() {
	case celast.IdentKind:
		return d.variables[e.AsIdent()]
	case celast.CallKind:
		c := e.AsCall()
		if c.IsMemberFunction() {
			return d.text(c.Target())
		}
		if c.FunctionName() == operators.Index {
			text := d.text(c.Args()[0])
			if index := c.Args()[1]; text != "" && index.Kind() == celast.LiteralKind {
				text += fmt.Sprintf("[%v]", index.AsLiteral().Value())
			}
			return text
		}
	}
	return ""
}

// both is what two conditions have looked at together.
func both(a, b map[string]Described) map[string]Described {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]Described{}
	}
	for text, d := range b {
		all[text] = max(all[text], d)
	}
	return all
}

// either is what one of two conditions has looked at, whichever is met.
func either(a, b map[string]Described) map[string]Described {
	all := both(a, b)
	for text := range all {
		if a[text] == InPart || b[text] == InPart {
			all[text] = InPart
		} else {
			all[text] = min(a[text], b[text])
		}
	}
	return all
}

// inPart is what a condition has looked at that may be met by what it does not describe.
func inPart(all map[string]Described) map[string]Described {
	for text, d := range all {
		all[text] = min(d, InPart)
	}
	return all
}
