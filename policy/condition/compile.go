package condition

import (
	"encoding/json"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/callgate/callgate/history"
)

const wantCondition = "a CEL expression over args, agent, workspace, project, tool, thread and caller that yields a bool"

// unboundedSize is the size that a string, array or object without a bound in
// its schema is taken to have when the worst case of a condition is foreseen.
// A larger value at run time meets maxCost.
const unboundedSize = 1_000

// Tool is a registered tool as conditions see it. Several versions of
// a tool are several values of one name.
type Tool struct {
	Name        string
	InputSchema json.RawMessage // the author's, before closing
	// Open is the tool's own `open: true`: additionalProperties at the root of
	// its schema counts.
	Open bool
	// Secret reports whether an argument is marked x-secret. Nil: none is.
	Secret func(name string) bool
}

// compileResult is a compiled expression, or its fault.
type compileResult struct {
	ast       *cel.Ast
	condition *Condition
	issue     *Issue
}

// Compiler compiles each distinct expression once, and checks it once against
// each tool that a row with it names.
type Compiler struct {
	base       *cel.Env // without args
	env        *cel.Env // args is a map of anything
	registry   *registered
	checkers   map[string][]*schemaChecker // by tool: one for each version of it
	conditions map[string]compileResult
	checked    map[[2]string]*Issue // by expression and tool
}

// NewCompiler returns a compiler of conditions on calls of these tools, in threads that can have these
// labels. Nil tools are not known: then the tools that conditions ask the past for are not checked.
func NewCompiler(tools []Tool, labels ...string) (*Compiler, error) {
	base, err := baseEnv()
	if err != nil {
		return nil, fmt.Errorf("policy: conditions: %w", err)
	}
	env, err := base.Extend(cel.Variable(varArgs, cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		return nil, fmt.Errorf("policy: conditions: %w", err)
	}
	c := &Compiler{
		base: base, env: env, checkers: map[string][]*schemaChecker{},
		registry:   &registered{known: tools != nil, tools: map[string][]Tool{}, labels: labels, plain: map[string][]map[string]any{}},
		conditions: map[string]compileResult{}, checked: map[[2]string]*Issue{},
	}
	for _, t := range tools {
		c.registry.tools[t.Name] = append(c.registry.tools[t.Name], t)
	}
	return c, nil
}

// Compile compiles the expression of a row that is for a tool or a pattern of
// tools, and checks it against the tool's input schema. Where the Issue is not nil,
// there is no Condition.
func (c *Compiler) Compile(expression, tool string) (*Condition, *Issue) {
	done, known := c.conditions[expression]
	if !known {
		done = c.program(expression)
		c.conditions[expression] = done
	}
	if done.issue != nil {
		return nil, done.issue
	}
	if issue := c.checkSchemas(expression, tool, done.ast); issue != nil {
		return nil, issue
	}
	return done.condition, nil
}

// program compiles an expression for use at run time.
func (c *Compiler) program(expression string) compileResult {
	parsed, issues := c.env.Parse(expression)
	if issues.Err() != nil {
		return compileResult{issue: issueOf(expression, issues)}
	}
	asked := readPast(expression, parsed.NativeRep(), c.registry)
	if asked.issue != nil {
		return compileResult{issue: asked.issue}
	}
	ast, issues := c.env.Check(parsed)
	if issues.Err() != nil {
		return compileResult{issue: issueOf(expression, issues)}
	}
	if out := ast.OutputType(); out.Kind() != types.BoolKind && out.Kind() != types.DynKind {
		return compileResult{issue: &Issue{Found: fmt.Sprintf("a condition of type %s", out), Expected: wantCondition}}
	}
	if !asked.reads.None() {
		// What can be told without a schema.
		bare := &schemaChecker{}
		issue := bare.checkNumbers(expression, ast)
		if issue == nil {
			issue = asked.checkValues(ast, bare)
		}
		if issue != nil {
			return compileResult{issue: issue}
		}
	}
	program, err := c.env.Program(ast,
		cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return compileResult{issue: &Issue{Found: "a condition that cannot be planned: " + firstLine(err.Error()), Expected: wantCondition}}
	}
	return compileResult{ast: ast, condition: &Condition{program, asked.reads}}
}

// checkSchemas checks an expression against the schemas of a tool. With several
// versions of the tool, one that it fits is enough; a pattern has no schema.
func (c *Compiler) checkSchemas(expression, tool string, ast *cel.Ast) *Issue {
	key := [2]string{expression, tool}
	if known, checked := c.checked[key]; checked {
		return known
	}
	var found *Issue
	lints, err := c.checkersOf(tool)
	if err != nil {
		found = &Issue{Found: err.Error(), Expected: "a JSON Schema"}
	}
	if len(lints) == 0 && err == nil {
		found = checkCost(c.env, ast, nil)
	}
	for _, l := range lints {
		if found = l.check(expression); found == nil {
			break
		}
	}
	c.checked[key] = found
	return found
}

func (c *Compiler) checkersOf(tool string) ([]*schemaChecker, error) {
	if known, made := c.checkers[tool]; made {
		return known, nil
	}
	var lints []*schemaChecker
	for _, t := range c.registry.tools[tool] {
		l, err := newSchemaChecker(c.base, t, c.registry)
		if err != nil {
			return nil, err
		}
		lints = append(lints, l)
	}
	c.checkers[tool] = lints
	return lints, nil
}

// checkCost foresees the worst case of a checked expression.
func checkCost(env *cel.Env, ast *cel.Ast, root *valueType) *Issue {
	estimate, err := env.EstimateCost(ast, sizeEstimator{root})
	if err != nil {
		return &Issue{Found: "a condition whose cost cannot be foreseen", Expected: wantCondition}
	}
	if estimate.Max > maxCost {
		return &Issue{
			Found: fmt.Sprintf("a condition that may cost %d", estimate.Max),
			Expected: fmt.Sprintf("at most %d: nest fewer loops, or bound what they walk with maxItems or maxLength in the tool's schema",
				maxCost),
		}
	}
	return nil
}

// sizeEstimator tells the cost estimate how large the arguments can be.
type sizeEstimator struct{ root *valueType }

// EstimateSize implements cost.Estimator.
func (z sizeEstimator) EstimateSize(node cost.AstNode) *cost.SizeEstimate {
	if node.ComputedSize() != nil {
		return nil
	}
	bounded := &cost.SizeEstimate{Min: 0, Max: unboundedSize}
	path := node.Path()
	switch {
	case len(path) == 1 && path[0] == varLabels:
		bounded.Max = history.MaxLabels
		return bounded
	case len(path) == 0 || path[0] != varArgs:
		return bounded
	}
	at := z.root
	for _, step := range path[1:] {
		switch {
		case at == nil:
			return bounded
		case at.kind == array && step == "@items":
			at = at.items
		case at.kind == mapping && step == "@values":
			at = at.additional
		case at.kind == object || at.kind == mapping:
			at = at.member(step)
		default:
			return bounded
		}
	}
	if at != nil && at.maxSize > 0 {
		bounded.Max = at.maxSize
	}
	return bounded
}

// EstimateCallCost implements cost.Estimator: calls cost what CEL says.
func (z sizeEstimator) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// issueOf turns the first of CEL's issues into a complaint.
func issueOf(expression string, issues *cel.Issues) *Issue {
	errs := issues.Errors()
	if len(errs) == 0 {
		return &Issue{Found: "a condition that does not compile", Expected: wantCondition}
	}
	first := errs[0]
	c := &Issue{Found: "a condition that does not compile: " + issueText(first.Message), Expected: wantCondition}
	if first.Location != nil && first.Location.Line() == 1 {
		c.Offset = byteOffset(expression, first.Location.Column())
	}
	return c
}

// issueText says one of CEL's issues without the inner names of its operators,
// its containers and its grammar.
func issueText(message string) string {
	message = firstLine(message)
	message, _, _ = strings.Cut(message, " (in container")
	message, _, _ = strings.Cut(message, " expecting {")
	message, _, _ = strings.Cut(message, " (did you mean '@")
	if message == "invalid matches argument" {
		return "the pattern of matches is not RE2, or too large"
	}
	if rest, found := strings.CutPrefix(message, "undefined field "); found {
		return "there is no member " + rest
	}
	if rest, found := strings.CutPrefix(message, "found no matching overload for '"); found {
		if name, types, found := strings.Cut(rest, "' applied to '"); found {
			if symbol, isOperator := operators.FindReverse(name); isOperator && symbol != "" {
				name = symbol
			}
			return name + " does not apply to " + strings.TrimSuffix(types, "'")
		}
	}
	return message
}

// offsetOf is the byte at which a part of an expression starts.
func offsetOf(expression string, info *celast.SourceInfo, id int64) int {
	if at := info.GetStartLocation(id); at.Line() == 1 && at.Column() >= 0 {
		return byteOffset(expression, at.Column())
	}
	return 0
}

// byteOffset turns a count of characters into a count of bytes.
func byteOffset(s string, characters int) int {
	for i := range s {
		if characters == 0 {
			return i
		}
		characters--
	}
	return len(s)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	const most = 200
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}
