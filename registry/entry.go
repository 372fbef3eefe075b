package registry

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/callgate/callgate/registry/schema"
	"github.com/callgate/callgate/tool"
)

// Entry is one loaded tool. It is immutable and safe for concurrent use.
type Entry struct {
	tool    Tool
	version semver
	index   int
	input   *schema.Schema
	output  *schema.Schema // nil: results are not evaluated
	cured   []schema.Change
}

// loadEntry turns one definition into an entry, or says all that is wrong with it.
func loadEntry(t *Tool, compiler *schema.Compiler) (*Entry, []*LoadError) {
	tool, faults := complete(*t)
	report := func(field string, list []schema.Fault) {
		for _, f := range list {
			faults = append(faults, &LoadError{Name: tool.Name, Field: []string{field}, Pointer: f.Pointer, Message: f.Message})
		}
	}
	e := &Entry{}
	var problems []schema.Fault
	e.input, problems = compiler.Compile(tool.InputSchema, schema.Options{Open: tool.Open})
	report("input_schema", problems)
	if len(tool.OutputSchema) > 0 {
		e.output, problems = compiler.Compile(tool.OutputSchema, schema.Options{Authored: true})
		report("output_schema", problems)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	tool.InputSchema = slices.Clone(tool.InputSchema)
	tool.OutputSchema = slices.Clone(tool.OutputSchema)
	e.tool = tool
	e.version, _ = parseVersion(tool.Version)
	return e, nil
}

// warnings lists what the operator should know of the tool at index i.
func (e *Entry) warnings(i int) []*LoadError {
	var list []*LoadError
	for _, s := range []struct {
		field  string
		schema *schema.Schema
	}{{"input_schema", e.input}, {"output_schema", e.output}} {
		if s.schema != nil && s.schema.Disputed() != "" {
			list = append(list, &LoadError{Tool: i, Name: e.tool.Name, Field: []string{s.field},
				Message: "the evaluators disagree about a value of this schema, so both evaluate each call, which takes longer; please report it: " + s.schema.Disputed()})
		}
	}
	return list
}

// Name returns the tool's name.
func (e *Entry) Name() string { return e.tool.Name }

// Index returns the tool's index in the Entries of its registry; -1 for a tool that a request
// brings.
func (e *Entry) Index() int { return e.index }

// Version returns the tool's version; "0.0.0" where none was stated.
func (e *Entry) Version() string { return e.tool.Version }

// Description returns the author's description.
func (e *Entry) Description() string { return e.tool.Description }

// Kind returns the ACP ToolKind.
func (e *Entry) Kind() string { return e.tool.Kind }

// Effect returns read, idempotent or once.
func (e *Entry) Effect() string { return e.tool.Effect }

// Run says how the tool is run, with its defaults filled in.
func (e *Entry) Run() tool.Run {
	r := e.tool.Run
	r.Addresses, r.Command, r.Parameters, r.InputRequests = slices.Clone(r.Addresses), slices.Clone(r.Command), slices.Clone(r.Parameters), slices.Clone(r.InputRequests)
	r.Env = maps.Clone(r.Env)
	return r
}

// SharedRun is Run without a copy, for readers: what it points to must not be changed.
func (e *Entry) SharedRun() *tool.Run { return &e.tool.Run }

// InputSchema returns the schema of the arguments as its author wrote it. The
// caller may keep it.
func (e *Entry) InputSchema() json.RawMessage { return slices.Clone(e.tool.InputSchema) }

// ClosedSchema returns the schema that arguments are evaluated by: what the author
// wrote, closed, with every reference inside the document, without identifiers
// and extensions. It is what a model should be shown, as it promises nothing
// that a call would be refused for.
func (e *Entry) ClosedSchema() json.RawMessage { return e.input.Closed() }

// AuthoredSchema returns the schema of the arguments in its author's words, closed
// as far as they allow, for readers that know dialects, anchors and extensions.
func (e *Entry) AuthoredSchema() json.RawMessage { return e.input.Authored() }

// OutputSchema returns the schema of results as its author wrote it, or nil.
func (e *Entry) OutputSchema() json.RawMessage { return slices.Clone(e.tool.OutputSchema) }

// HasOutputSchema reports whether there is such a schema.
func (e *Entry) HasOutputSchema() bool { return e.output != nil }

// Evaluate returns the violations of arguments, at most 100, in the order of the
// contract; nil means valid. args is what a strict reader decoded: objects as
// map[string]any, arrays as []any, numbers as json.Number; anything else is a
// violation. args is not changed.
func (e *Entry) Evaluate(args map[string]any) []schema.Violation {
	return e.EvaluateAs(e.tool.Name, args)
}

// EvaluateAs is Evaluate for a model that knows the tool by another name, which the
// messages then say.
func (e *Entry) EvaluateAs(name string, args map[string]any) []schema.Violation {
	if args == nil {
		args = map[string]any{}
	}
	return e.input.Evaluate(name, args)
}

// AcceptsOutputJSON is AcceptsJSON for a result and the schema of results, which there is.
func (e *Entry) AcceptsOutputJSON(result []byte) bool { return e.output.AcceptsJSON(result) }

// EvaluateOutput returns the violations of a result, which is decoded as for
// Evaluate, by the schema of results as written. Without one all is valid.
func (e *Entry) EvaluateOutput(result any) []schema.Violation {
	if e.output == nil {
		return nil
	}
	return e.output.Evaluate(e.tool.Name, result)
}

// AcceptsJSON reports whether arguments, as JSON, are valid, where that can be decided
// without decoding them: a plain schema, and nothing that it would refuse. False does not
// mean that they are invalid: Evaluate decides, and says why. The caller has read the
// arguments strictly: one object without duplicate names. They are not changed or kept.
func (e *Entry) AcceptsJSON(arguments []byte) bool { return e.input.AcceptsJSON(arguments) }

// HasBoundaries reports whether Boundaries could list anything, whatever the arguments.
func (e *Entry) HasBoundaries() bool { return e.input.HasBoundaries() }

// HasSecrets reports whether Secret could be true, whatever the path.
func (e *Entry) HasSecrets() bool { return e.input.HasSecrets() }

// BoundaryKeyword is the keyword of a schema that names what a text must stay within.
const BoundaryKeyword = "x-boundary"

// Boundaries lists every text of valid arguments that stands under x-boundary,
// sorted by path. Null is skipped.
func (e *Entry) Boundaries(args map[string]any) []schema.BoundaryValue {
	return e.input.Boundaries(args)
}

// WithinJSON reports whether arguments, as JSON, are valid and every text that Boundaries would
// list is within its boundary, as within says, where that can be decided without decoding
// them. False does not mean that one is outside: Boundaries lists them all. As to the
// arguments it is like AcceptsJSON.
func (e *Entry) WithinJSON(arguments []byte, within func(kind, text string) bool) bool {
	return e.input.WithinJSON(arguments, within)
}

// Secret reports whether the place at path, or one above it, is marked x-secret
// in any schema that may apply to it, branches included. A place that no schema
// describes is not secret, unless the author marked members secret that the
// root does not declare: then it may not be known by its name.
func (e *Entry) Secret(path []string) bool { return e.input.Secret(path) }
