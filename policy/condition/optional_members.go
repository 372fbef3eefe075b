package condition

import (
	"slices"
	"strings"

	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"github.com/callgate/callgate/internal/decimal"
)

// Analysis answers questions on a condition by its text, for findings in a policy.
type Analysis struct {
	// ReadsArguments and ReadsCaller say that the condition reads args, or one of agent,
	// workspace, project and tool.
	ReadsArguments, ReadsCaller bool
	// Past is what the condition asks of what was done before.
	Past Reads

	read    [][]string // paths of members of args whose value is read
	guarded [][]string // paths whose presence is asked for
}

// Analyze parses a condition that compiles.
func Analyze(expression string) (*Analysis, error) {
	parsed, err := parse(expression)
	if err != nil {
		return nil, err
	}
	a := &Analysis{}
	celast.PostOrderVisit(parsed.Expr(), celast.NewExprVisitor(a.note))
	a.Past = readPast(expression, parsed, nil).reads
	return a, nil
}

// note notes what one expression reads, or asks for.
func (a *Analysis) note(e celast.Expr) {
	if e.Kind() == celast.IdentKind {
		switch e.AsIdent() {
		case varArgs:
			a.ReadsArguments = true
		case varAgent, varWorkspace, varProject, varTool:
			a.ReadsCaller = true
		}
		return
	}
	if path, ok := memberPath(e); ok {
		if e.Kind() == celast.SelectKind && e.AsSelect().IsTestOnly() {
			a.guarded = append(a.guarded, path)
		} else {
			a.read = append(a.read, path)
		}
		return
	}
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != operators.In {
		return
	}
	operands := e.AsCall().Args()
	path, ok := memberPath(operands[1])
	if name, literal := literalText(operands[0]); literal && (ok || isArgs(operands[1])) {
		a.guarded = append(a.guarded, append(slices.Clone(path), name))
	}
}

// OptionalMembers lists the members of a tool's arguments, as dotted paths in order, whose value
// the condition reads, that the tool's schema does not require, and whose presence the condition
// nowhere asks for. Members are passed over that no plain properties of the schema declare.
func (a *Analysis) OptionalMembers(t Tool) []string {
	root := plainSchema(t)
	var found []string
	for _, path := range a.read {
		at := root
		for n, name := range path {
			properties, _ := at["properties"].(map[string]any)
			next, declared := properties[name].(map[string]any)
			if !declared {
				break
			}
			required, _ := at["required"].([]any)
			if !slices.Contains(required, any(name)) && !a.asksFor(path[:n+1]) {
				found = append(found, strings.Join(path[:n+1], "."))
				break
			}
			at = next
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (a *Analysis) asksFor(path []string) bool {
	return slices.ContainsFunc(a.guarded, func(g []string) bool { return slices.Equal(g, path) })
}

// plainSchema is the input schema of a tool; empty where it cannot be read.
func plainSchema(t Tool) map[string]any {
	var root map[string]any
	if decimal.Unmarshal(t.InputSchema, &root) != nil {
		return nil
	}
	return root
}
