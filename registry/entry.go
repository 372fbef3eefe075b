package registry

import (
	"bytes"
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

// loadEntry turns one definition into an entry, or says all that is wrong with it. It takes over the
// schemas that the tool had before.
func loadEntry(t *Tool, before *Registry, compiler *schema.Compiler) (*Entry, []*LoadError) {
	tool, faults := complete(*t)
	report := func(field string, list []schema.Fault) {
		for _, f := range list {
			faults = append(faults, &LoadError{Name: tool.Name, Field: []string{field}, Pointer: f.Pointer, Message: f.Message})
		}
	}
	old, _ := before.LookupVersion(tool.Name, tool.Version)
	if old == nil {
		old = &Entry{}
	}
	e := &Entry{input: old.input, output: old.output}
	var problems []schema.Fault
	if old.input != nil && old.tool.Open == tool.Open && bytes.Equal(old.tool.InputSchema, tool.InputSchema) {
		tool.InputSchema = old.tool.InputSchema
	} else {
		tool.InputSchema = slices.Clone(tool.InputSchema) // the schema keeps it
		e.input, problems = compiler.Compile(tool.InputSchema, schema.Options{Open: tool.Open, Doubts: true})
		report("input_schema", problems)
	}
	switch {
	case len(tool.OutputSchema) == 0:
		e.output = nil
	case old.output != nil && bytes.Equal(old.tool.OutputSchema, tool.OutputSchema):
		tool.OutputSchema = old.tool.OutputSchema
	default:
		tool.OutputSchema = slices.Clone(tool.OutputSchema)
		e.output, problems = compiler.Compile(tool.OutputSchema, schema.Options{Authored: true})
		report("output_schema", problems)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	e.tool = tool
	e.version, _ = parseVersion(tool.Version)
	return e, nil
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

// Labels are what a call adds to its thread; nil: the tool states none. They must not be changed.
func (e *Entry) Labels() []Label { return e.tool.Labels }

// Run says how the tool is run, with its defaults filled in.
func (e *Entry) Run() tool.Run {
	r := e.tool.Run
	r.Addresses, r.Command, r.Parameters, r.InputRequests = slices.Clone(r.Addresses), slices.Clone(r.Command), slices.Clone(r.Parameters),
		slices.Clone(r.InputRequests)
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

// Judge returns the violations of arguments, at most 100, in the order of the contract; nil
// means valid. name is the tool's as the model knows it, which the messages say. raw is what a strict
// reader has read: one object without duplicate names. decode returns it decoded, objects as
// map[string]any, arrays as []any, numbers as json.Number; it is only called where the bytes do not say
// enough. Neither is changed or kept.
func (e *Entry) Judge(name string, raw []byte, decode func() map[string]any) []schema.Violation {
	return e.input.Judge(name, raw, func() any {
		if args := decode(); args != nil {
			return args
		}
		return map[string]any{}
	})
}

// JudgeOutput is Judge for a result and the schema of results as written, which there is.
func (e *Entry) JudgeOutput(raw []byte, decode func() any) []schema.Violation {
	return e.output.Judge(e.tool.Name, raw, decode)
}

// Doubts are what is allowed in the schema of arguments, and surely not meant.
func (e *Entry) Doubts() []schema.Fault { return e.input.Doubts() }

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
// arguments it is like Judge.
func (e *Entry) WithinJSON(arguments []byte, within func(kind, text string) bool) bool {
	return e.input.WithinJSON(arguments, within)
}

// Secret reports whether the place at path, or one above it, is marked x-secret
// in any schema that may apply to it, branches included. A place that no schema
// describes is not secret, unless the author marked members secret that the
// root does not declare: then it may not be known by its name.
func (e *Entry) Secret(path []string) bool { return e.input.Secret(path) }
