package registry

import (
	"encoding/json"
	"maps"
	"slices"
)

// Entry is one loaded tool. It is immutable and safe for concurrent use.
type Entry struct {
	tool       Tool
	version    semver
	input      *schema
	output     *schema // nil: results are not judged
	bounded    bool
	hasSecrets bool
}

// loadEntry turns one definition into an entry, or says all that is wrong with it.
func loadEntry(t *Tool, heavy chan struct{}) (*Entry, []*LoadError) {
	tool, faults := complete(*t)
	report := func(field string, list []fault) {
		for _, f := range list {
			faults = append(faults, &LoadError{Name: tool.Name, Field: []string{field}, Pointer: f.pointer, Message: f.message, Undeclared: f.message == undeclared})
		}
	}
	e := &Entry{}
	var problems []fault
	e.input, problems = read(tool.InputSchema, options{open: tool.Open, large: heavy})
	report("input_schema", problems)
	if len(tool.OutputSchema) > 0 {
		e.output, problems = read(tool.OutputSchema, options{authored: true, large: heavy})
		report("output_schema", problems)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	tool.InputSchema = slices.Clone(tool.InputSchema)
	tool.OutputSchema = slices.Clone(tool.OutputSchema)
	e.tool = tool
	e.version, _ = parseVersion(tool.Version)
	e.hasSecrets = e.input.secretAdditional
	e.input.root.walk(func(n *node) {
		e.bounded = e.bounded || n.boundary != ""
		e.hasSecrets = e.hasSecrets || n.secret
	})
	return e, nil
}

// Name returns the tool's name.
func (e *Entry) Name() string { return e.tool.Name }

// Version returns the tool's version; "0.0.0" where none was stated.
func (e *Entry) Version() string { return e.tool.Version }

// Description returns the author's description.
func (e *Entry) Description() string { return e.tool.Description }

// Kind returns the ACP ToolKind.
func (e *Entry) Kind() string { return e.tool.Kind }

// Effect returns read, idempotent or once.
func (e *Entry) Effect() string { return e.tool.Effect }

// Run says how the tool is run, with its defaults filled in.
func (e *Entry) Run() Run {
	r := e.tool.Run
	r.Addresses, r.Command, r.Parameters, r.Asks = slices.Clone(r.Addresses), slices.Clone(r.Command), slices.Clone(r.Parameters), slices.Clone(r.Asks)
	r.Env = maps.Clone(r.Env)
	return r
}

// InputSchema returns the schema of the arguments as its author wrote it. The
// caller may keep it.
func (e *Entry) InputSchema() json.RawMessage { return slices.Clone(e.tool.InputSchema) }

// ClosedSchema returns the schema that arguments are judged by: what the author
// wrote, closed, with every reference inside the document, without identifiers
// and extensions. It is what a model should be shown, as it promises nothing
// that a call would be refused for.
func (e *Entry) ClosedSchema() json.RawMessage { return slices.Clone(e.input.closed) }

// AuthoredSchema returns the schema of the arguments in its author's words, closed
// as far as they allow, for readers that know dialects, anchors and extensions.
func (e *Entry) AuthoredSchema() json.RawMessage { return slices.Clone(e.input.authored) }

// OutputSchema returns the schema of results as its author wrote it, or nil.
func (e *Entry) OutputSchema() json.RawMessage { return slices.Clone(e.tool.OutputSchema) }

// HasOutputSchema tells whether there is such a schema.
func (e *Entry) HasOutputSchema() bool { return e.output != nil }

// Evaluate returns the violations of arguments, at most 100, in the order of the
// contract; nil means valid. args is what a strict reader decoded: objects as
// map[string]any, arrays as []any, numbers as json.Number; anything else is a
// violation. args is not changed.
func (e *Entry) Evaluate(args map[string]any) []Violation { return e.EvaluateAs(e.tool.Name, args) }

// EvaluateAs is Judge for a reader who knows the tool by another name, which the
// messages then say.
func (e *Entry) EvaluateAs(name string, args map[string]any) []Violation {
	if args == nil {
		args = map[string]any{}
	}
	return e.input.evaluate(name, args)
}

// EvaluateOutput returns the violations of a result, which is decoded as for
// Judge, by the schema of results as written. Without one all is valid.
func (e *Entry) EvaluateOutput(result any) []Violation {
	if e.output == nil {
		return nil
	}
	return e.output.evaluate(e.tool.Name, result)
}
