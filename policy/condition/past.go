package condition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/similar"
	"github.com/callgate/callgate/parser"
)

// The variables by which a condition asks what was done before, and what they are compiled to: names that
// no text can have.
const (
	varThread = "thread"
	varCaller = "caller"

	varPast   = "@past"   // the past as functions take it
	varLabels = "@labels" // thread.labels
	callCount = "@count"  // thread.calls, thread.results, caller.calls: an int
	callSum   = "@sum"    // thread.sum, caller.sum: an int where it is whole, else a double
)

// Reads is what conditions read of the past of a thread and of its caller. The zero value is nothing.
type Reads struct {
	Labels bool           // thread.labels
	Terms  []history.Term // each once, in the order in which they are written
}

// None reports whether nothing of the past is read.
func (r Reads) None() bool { return !r.Labels && len(r.Terms) == 0 }

// With adds what others read. Neither is changed.
func (r Reads) With(other Reads) Reads {
	r.Labels = r.Labels || other.Labels
	for _, t := range other.Terms {
		if !slices.ContainsFunc(r.Terms, func(known history.Term) bool { return known.String() == t.String() }) {
			r.Terms = append(slices.Clip(r.Terms), t)
		}
	}
	return r
}

// The ways to ask, for messages.
const (
	wantTool    = "the name of a registered tool or a pattern of such names, in quotes"
	wantWindow  = "a window from 1m to 7d, as a whole number of minutes, hours or days in quotes: '30m', '24h', '7d'"
	wantKeys    = "{'MEMBER': value} with the members of the arguments that must be equal"
	wantThread  = "thread.labels, thread.calls('TOOL'), thread.sum('TOOL', 'MEMBER') or thread.results('TOOL')"
	wantCaller  = "caller.calls('TOOL', 'WINDOW') or caller.sum('TOOL', 'MEMBER', 'WINDOW')"
	wantOrder   = ", in this order: the tool, for a sum the member, {'MEMBER': value} where only some calls count, and a window"
	wantOutside = "it outside of loops, where it is read once"
)

// pastReader replaces what a parsed expression asks of the past by what is evaluated, and notes it: thread.labels by a
// variable, and a term by the call of a function with the term's ID and the values of its keys.
type pastReader struct {
	expression string
	info       *celast.SourceInfo
	factory    celast.ExprFactory
	next       int64
	registry   *registered

	reads  Reads
	values []keyValue
	issue  *Issue // the first
}

// keyValue is the value that a condition gives for a key of a term.
type keyValue struct {
	key   string
	value celast.Expr
	kinds []typeKind // of the key in the schemas of the tools; none: not known
}

// readPast rewrites a parsed expression. The registry may be nil: then nothing is checked against it.
func readPast(expression string, parsed *celast.AST, registry *registered) *pastReader {
	r := &pastReader{expression: expression, info: parsed.SourceInfo(), factory: celast.NewExprFactory(), registry: registry}
	if strings.Contains(expression, varThread) || strings.Contains(expression, varCaller) {
		r.next = celast.MaxID(parsed)
		r.walk(parsed.Expr(), nil, false)
	}
	return r
}

func (r *pastReader) id() int64 {
	r.next++
	return r.next
}

// fail notes the first issue.
func (r *pastReader) fail(at celast.Expr, found, expected string) {
	for at.Kind() == celast.SelectKind { // which stands at its dot
		at = at.AsSelect().Operand()
	}
	if r.issue == nil {
		r.issue = &Issue{Offset: offsetOf(r.expression, r.info, at.ID()), Found: found, Expected: expected}
	}
}

// variableOf returns thread or caller where the expression is that variable and no variable of a loop; else "".
func variableOf(e celast.Expr, bound []string) string {
	if e.Kind() != celast.IdentKind {
		return ""
	}
	name := e.AsIdent()
	if name != varThread && name != varCaller || slices.Contains(bound, name) {
		return ""
	}
	return name
}

// walk rewrites e and all below it. Bound are the variables of the loops around it.
func (r *pastReader) walk(e celast.Expr, bound []string, inLoop bool) {
	switch e.Kind() {
	case celast.IdentKind:
		if name := variableOf(e, bound); name != "" {
			r.fail(e, name+" as a value", wantMember(name))
		}
	case celast.SelectKind:
		operand := e.AsSelect().Operand()
		if name := variableOf(operand, bound); name != "" {
			r.member(e, name)
			return
		}
		r.walk(operand, bound, inLoop)
	case celast.CallKind:
		c := e.AsCall()
		if c.IsMemberFunction() {
			if name := variableOf(c.Target(), bound); name != "" {
				r.term(e, name, bound, inLoop)
				return
			}
			r.walk(c.Target(), bound, inLoop)
		}
		if c.FunctionName() == operators.In {
			r.label(c.Args()[0], c.Args()[1], bound)
		}
		for _, arg := range c.Args() {
			r.walk(arg, bound, inLoop)
		}
	case celast.ListKind:
		for _, element := range e.AsList().Elements() {
			r.walk(element, bound, inLoop)
		}
	case celast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.walk(entry.AsMapEntry().Key(), bound, inLoop)
			r.walk(entry.AsMapEntry().Value(), bound, inLoop)
		}
	case celast.ComprehensionKind:
		c := e.AsComprehension()
		r.walk(c.IterRange(), bound, inLoop)
		r.walk(c.AccuInit(), bound, inLoop)
		inner := append(slices.Clip(bound), c.IterVar(), c.IterVar2(), c.AccuVar())
		for _, part := range []celast.Expr{c.LoopCondition(), c.LoopStep(), c.Result()} {
			r.walk(part, inner, true)
		}
	}
}

func wantMember(of string) string {
	if of == varCaller {
		return wantCaller
	}
	return wantThread
}

// member reads thread.labels.
func (r *pastReader) member(e celast.Expr, of string) {
	s := e.AsSelect()
	name := of + "." + s.FieldName()
	switch {
	case s.IsTestOnly():
		r.fail(s.Operand(), "has("+name+")", "what is asked itself: it is always there, or cannot be known and then the condition fails")
	case name == "thread.labels":
		r.reads.Labels = true
		e.SetKindCase(r.factory.NewIdent(e.ID(), varLabels))
	case slices.Contains(members[of], s.FieldName()):
		r.fail(s.Operand(), name+" without a tool", wantMember(of))
	default:
		r.fail(s.Operand(), noMember(of, s.FieldName()), wantMember(of))
	}
}

// members are those of thread and caller.
var members = map[string][]string{varThread: {"labels", "calls", "sum", "results"}, varCaller: {"calls", "sum"}}

func noMember(of, name string) string {
	if of == varCaller && slices.Contains(members[varThread], name) {
		return "caller." + name + ", which only a thread has"
	}
	return fmt.Sprintf("the member %q of %s, which there is not%s", name, of, similar.DidYouMean(name, members[of]))
}

// kinds are those of the terms that members ask.
var kinds = map[string]history.Kind{"calls": history.Calls, "sum": history.Sum, "results": history.Results}

// label checks a label in quotes that is looked up in thread.labels.
func (r *pastReader) label(e, list celast.Expr, bound []string) {
	name, isText := literalText(e)
	if !isText || r.registry == nil || list.Kind() != celast.SelectKind || list.AsSelect().FieldName() != "labels" ||
		variableOf(list.AsSelect().Operand(), bound) != varThread || slices.Contains(r.registry.labels, name) {
		return
	}
	expected := "one that is listed: " + strings.Join(r.registry.labels, ", ") + similar.DidYouMean(name, r.registry.labels)
	if len(r.registry.labels) == 0 {
		expected = "a label of the configuration, which lists none"
	}
	r.fail(e, "the label "+parser.Quote(name)+", which no thread can have", expected)
}

// term reads thread.calls(…) and its like.
func (r *pastReader) term(e celast.Expr, of string, bound []string, inLoop bool) {
	c := e.AsCall()
	name := of + "." + c.FunctionName()
	t := history.Term{Caller: of == varCaller, Kind: kinds[c.FunctionName()]}
	switch {
	case name == "thread.labels":
		r.fail(c.Target(), "thread.labels as a function", "thread.labels, a list: 'LABEL' in thread.labels")
		return
	case !slices.Contains(members[of], c.FunctionName()):
		r.fail(c.Target(), noMember(of, c.FunctionName()), wantMember(of))
		return
	case inLoop:
		r.fail(c.Target(), name+" in a loop", wantOutside)
		return
	}
	rest := c.Args()
	next := func(what, expected string) (string, celast.Expr) {
		if len(rest) == 0 {
			r.fail(c.Target(), name+" without "+what, expected)
			return "", nil
		}
		at := rest[0]
		rest = rest[1:]
		text, isText := literalText(at)
		if !isText {
			r.fail(at, what+" of "+name+" that is not written in quotes", expected)
		}
		return text, at
	}
	var toolAt, memberAt celast.Expr
	t.Tool, toolAt = next("a tool", wantTool)
	if t.Kind == history.Sum {
		t.Member, memberAt = next("a member", "the name of a number of the arguments, in quotes")
	}
	var values []keyValue
	if len(rest) > 0 && rest[0].Kind() == celast.MapKind {
		values = r.keys(rest[0], name)
		rest = rest[1:]
	}
	if len(rest) > 0 || t.Caller {
		window, at := next("a window", wantWindow)
		if t.Window = parseWindow(window); t.Window == 0 && at != nil {
			r.fail(at, "the window "+parser.Quote(window), wantWindow)
		}
	}
	if len(rest) > 0 {
		r.fail(rest[0], "one argument of "+name+" too many", wantMember(of)+wantOrder)
	}
	if r.issue != nil {
		return
	}
	for _, v := range values {
		t.Keys = append(t.Keys, v.key)
	}
	r.check(t, name, toolAt, memberAt, values)
	elements := make([]celast.Expr, len(values))
	for i, v := range values {
		r.walk(v.value, bound, inLoop)
		elements[i] = v.value
	}
	r.values = append(r.values, values...)
	r.reads = r.reads.With(Reads{Terms: []history.Term{t}})
	function := callCount
	if t.Kind == history.Sum {
		function = callSum
	}
	e.SetKindCase(r.factory.NewCall(e.ID(), function, r.factory.NewIdent(r.id(), varPast),
		r.factory.NewLiteral(r.id(), types.Uint(t.ID())), r.factory.NewList(r.id(), elements, nil)))
}

// keys reads the map of a term, in the order of its keys.
func (r *pastReader) keys(e celast.Expr, of string) []keyValue {
	var values []keyValue
	for _, entry := range e.AsMap().Entries() {
		at := entry.AsMapEntry().Key()
		key, isText := literalText(at)
		switch {
		case !isText:
			r.fail(at, "a key of "+of+" that is not written in quotes", wantKeys)
		case slices.ContainsFunc(values, func(v keyValue) bool { return v.key == key }):
			r.fail(at, "the key "+parser.Quote(key)+" again", "each key once")
		}
		values = append(values, keyValue{key: key, value: entry.AsMapEntry().Value()})
	}
	switch {
	case len(values) == 0:
		r.fail(e, "an empty map", wantKeys+", or none")
	case len(values) > history.MaxKeys:
		r.fail(e, fmt.Sprintf("%d keys", len(values)), fmt.Sprintf("at most %d", history.MaxKeys))
	}
	slices.SortFunc(values, func(a, b keyValue) int { return cmp.Compare(a.key, b.key) })
	return values
}

// parseWindow reads a window; 0 where it is none.
func parseWindow(s string) time.Duration {
	window, ok := duration.Read(s)
	if !ok || !ascii.AllDigits(s[:len(s)-1]) || window%time.Minute != 0 || window < history.MinWindow || window > history.MaxWindow {
		return 0
	}
	return window
}
