package condition

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/similar"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/internal/lexical"
)

// registered is what terms are checked against.
type registered struct {
	known  bool // the tools are
	tools  map[string][]Tool
	labels []string // that threads can have
	plain  map[string][]map[string]any
}

// matching lists the names of the tools that a pattern matches, sorted.
func (g *registered) matching(pattern string) []string {
	if len(g.tools[pattern]) > 0 {
		return []string{pattern}
	}
	var names []string
	for name := range g.tools {
		if lexical.Matches(name, pattern) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// schemas are the input schemas of all versions of a tool, each read once.
func (g *registered) schemas(name string) []map[string]any {
	read, done := g.plain[name]
	if !done {
		for _, t := range g.tools[name] {
			read = append(read, plainSchema(t))
		}
		g.plain[name] = read
	}
	return read
}

// check checks a term against the registry, and notes of which kinds the values of its keys can be.
func (r *pastReader) check(t history.Term, name string, toolAt, memberAt celast.Expr, values []keyValue) {
	if !lexical.ValidTool(t.Tool) {
		r.fail(toolAt, "the tool "+parser.Quote(t.Tool)+" of "+name, wantTool+": 'pay', 'payments.*' or '*'")
		return
	}
	if r.registry == nil || !r.registry.known {
		return
	}
	tools := r.registry.matching(t.Tool)
	if len(tools) == 0 {
		r.fail(toolAt, "the tool "+parser.Quote(t.Tool)+" of "+name+", which is not registered",
			wantTool+similar.DidYouMean(t.Tool, slices.Collect(maps.Keys(r.registry.tools))))
		return
	}
	for _, tool := range tools {
		for i, schema := range r.registry.schemas(tool) {
			version := r.registry.tools[tool][i]
			if t.Kind == history.Sum {
				if problem := summandProblem(version, schema, t.Member); problem != "" {
					r.fail(memberAt, fmt.Sprintf("the member %s of %s, %s", parser.Quote(t.Member), tool, problem),
						`a required number with a "minimum" of 0 or more, without x-secret: else a call could leave it out or make room by a negative one, and the audit log has its sum`)
					return
				}
			}
			for j := range values {
				kind, problem := keyKind(version, schema, values[j].key)
				if problem != "" {
					r.fail(values[j].value, fmt.Sprintf("the key %s of %s, %s", parser.Quote(values[j].key), tool, problem),
						"a required text, number or boolean without x-secret: each call must have a value that can be compared")
					return
				}
				values[j].kinds = append(values[j].kinds, kind)
			}
		}
	}
}

// plainMember is the schema of a member that a tool's schema declares and requires; else the problem. Only what stands
// there itself counts, and not what a reference or a branch adds.
func plainMember(t Tool, schema map[string]any, name string) (member map[string]any, problem string) {
	properties, _ := schema["properties"].(map[string]any)
	member, declared := properties[name].(map[string]any)
	required, _ := schema["required"].([]any)
	switch {
	case !declared:
		return nil, "which its input schema does not declare" + similar.DidYouMean(name, slices.Collect(maps.Keys(properties)))
	case !slices.Contains(required, any(name)):
		return nil, "which its input schema does not require"
	case t.Secret != nil && t.Secret(name):
		return nil, "which is x-secret"
	}
	return member, ""
}

// summandProblem says why a member cannot be added up; "" where it can.
func summandProblem(t Tool, schema map[string]any, name string) string {
	member, problem := plainMember(t, schema, name)
	if problem != "" {
		return problem
	}
	if kind := kindOf(member); kind != numeric {
		return "which is no number by its own schema"
	}
	for _, bound := range []string{"minimum", "exclusiveMinimum"} {
		if least, stated := member[bound].(json.Number); stated && !strings.HasPrefix(string(least), "-") {
			return ""
		}
	}
	return `which has no "minimum" of 0 or more in its own schema`
}

// keyKind is the kind of a member that can be a key, or the problem.
func keyKind(t Tool, schema map[string]any, name string) (kind typeKind, problem string) {
	member, problem := plainMember(t, schema, name)
	if problem != "" {
		return anyType, problem
	}
	if kind = kindOf(member); kind == anyType {
		problem = "which is no text, number or boolean by its own schema"
	}
	return kind, problem
}

// kindOf is the kind of a text, number or boolean that cannot be null; else anyType.
func kindOf(schema map[string]any) typeKind {
	kind := anyType
	for _, name := range typeNames(schema) {
		this := map[string]typeKind{"string": text, "number": numeric, "integer": numeric, "boolean": boolean}[name]
		if this == anyType || kind != anyType && kind != this {
			return anyType
		}
		kind = this
	}
	return kind
}

// checkValues finds values of keys that can never equal a key, by the types of a checked expression.
func (r *pastReader) checkValues(checked *cel.Ast, by *schemaChecker) *Issue {
	ast := checked.NativeRep()
	for _, v := range r.values {
		at, t := v.value, ast.GetType(v.value.ID())
		if v.value.Kind() == celast.CallKind && v.value.AsCall().FunctionName() == "dyn" {
			// An object that is used whole is no text even so.
			if of := v.value.AsCall().Args()[0]; ast.GetType(of.ID()).Kind() == types.StructKind {
				at, t = of, ast.GetType(of.ID())
			}
		}
		kind := anyType
		switch t.Kind() {
		case types.StringKind:
			kind = text
		case types.IntKind, types.UintKind, types.DoubleKind:
			kind = numeric
		case types.BoolKind:
			kind = boolean
		case types.DynKind, types.AnyKind, types.TypeParamKind, types.ErrorKind:
			if _, is := by.numericMember(ast, v.value); !is {
				continue
			}
			kind = numeric
		}
		if kind == anyType || len(v.kinds) > 0 && !slices.Contains(v.kinds, kind) {
			r.fail(at, fmt.Sprintf("%s for the key %s", valueNames[kind], parser.Quote(v.key)),
				"a text, a number or a boolean, as the schema of the tool has it")
		}
	}
	return r.issue
}

// valueNames name the kinds of values for messages.
var valueNames = map[typeKind]string{anyType: "a list, an object or the like", text: "a text", numeric: "a number", boolean: "a boolean"}
