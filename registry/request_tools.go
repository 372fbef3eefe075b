package registry

import (
	"bytes"
	"container/list"
	"encoding/json"
	"sync"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/registry/schema"
	"github.com/callgate/callgate/tool"
)

// Brought is a tool that a request brings, as the request defines it.
type Brought struct {
	Name        string
	Description string
	InputSchema json.RawMessage
}

// BroughtVersion is the version of a tool that a request brings; records of its calls show it.
const BroughtVersion = "0.0.0+request"

// clientRun is how such a tool is run: by the application.
const clientRun = "client"

// Bounds of the tools of one request.
const (
	MaxBrought      = 512
	MaxBroughtBytes = 1 << 20 // of their schemas

	// MaxBroughtName bounds the names, in bytes: the API of Anthropic Messages takes as many, and a
	// name of a namespace and a tool of it is longer than either. A face may take less.
	MaxBroughtName = 128
)

// With returns a registry of the tools of r, and of those that a request brings. They are cured as an
// import cures them (schema.Cure), closed as all are, of the type client, with the effect once and the
// version BroughtVersion. Their entries have no Index. r does not change; a schema that was compiled for
// it lately is not compiled again.
//
// A tool whose name or schema r would not load is left out, and leftOut has a *LoadError for each of its
// faults. The error is a *LoadError, where it is not known which tool a name means: one that r has, or
// that stands twice.
func (r *Registry) With(tools []Brought) (with *Registry, leftOut []*LoadError, err error) {
	more := &Registry{base: r, latest: make(map[string]*Entry, len(tools)), exact: make(map[versioned]*Entry, len(tools))}
	if r != nil {
		more.schemas = r.schemas
	}
	seen := make(map[string]bool, len(tools))
	for i := range tools {
		t := &tools[i]
		taken := func(found string) error {
			return &LoadError{Tool: i, Name: t.Name, Field: []string{"name"}, Message: "found " + parser.Quote(t.Name) + found}
		}
		if _, known := r.Lookup(t.Name); known {
			return nil, nil, taken(", which the registry has; expected another name")
		}
		if seen[t.Name] {
			return nil, nil, taken(" a second time; expected each name once")
		}
		seen[t.Name] = true
		e, faults := loadBrought(t, more.schemas)
		for _, f := range faults {
			f.Tool = i
		}
		if len(faults) > 0 {
			leftOut = append(leftOut, faults...)
			continue
		}
		more.latest[t.Name], more.exact[versioned{t.Name, BroughtVersion}] = e, e
		more.entries = append(more.entries, e)
	}
	more.sort()
	return more, leftOut, nil
}

// loadBrought is loadEntry for a tool of a request.
func loadBrought(t *Brought, schemas *schemaCache) (*Entry, []*LoadError) {
	definition, faults := completeNamed(Tool{
		Name: t.Name, Version: BroughtVersion, Description: t.Description, InputSchema: t.InputSchema, Run: tool.Run{Type: clientRun},
	}, MaxBroughtName)
	compiled := schemas.compile(t.InputSchema, arguments)
	for _, f := range compiled.faults {
		faults = append(faults, &LoadError{Name: t.Name, Field: []string{"input_schema"}, Pointer: f.Pointer, Message: f.Message})
	}
	if len(faults) > 0 {
		return nil, faults
	}
	version, _ := parseVersion(BroughtVersion)
	return &Entry{tool: definition, version: version, index: noIndex, input: compiled.schema, cured: compiled.changes}, nil
}

// Cured has what was changed in the schema of a tool that a request brings, so that it can be judged.
func (e *Entry) Cured() []schema.Change { return e.cured }

// Agrees reports whether a schema of arguments, as a request states it, means what the tool's own
// does: both are the same once they are cured and closed, but for identifiers and extensions. One that does not
// load means something else, and so does one that is many times as long, whatever it says: to compile
// a schema takes far longer than to read it.
func (r *Registry) Agrees(e *Entry, text []byte) bool {
	if bytes.Equal(text, e.tool.InputSchema) {
		return true
	}
	const factor, room = 4, 2 << 10 // for spaces, identifiers and extensions
	if r == nil || len(text) > factor*max(len(e.tool.InputSchema), len(e.input.Closed()))+room {
		return false
	}
	compiled := r.schemas.compile(text, arguments)
	return compiled.schema != nil && compiled.schema.SameAs(e.input)
}

// AnswerSchema compiles the schema that a request states for the answer of its model. It is cured as schemas of
// results are at an import (schema.Cure), and accepts what its author wrote: nothing is closed. One that was compiled
// lately is not compiled again. A schema without faults is never nil.
func (r *Registry) AnswerSchema(text []byte) (*schema.Schema, []schema.Fault) {
	var schemas *schemaCache
	if r != nil {
		schemas = r.schemas
	}
	compiled := schemas.compile(text, answers)
	return compiled.schema, compiled.faults
}

// noIndex is the Index of a tool that a request brings.
const noIndex = -1

// Bounds of the schemas that are kept compiled. A compiled schema has taken 30 times the bytes of its
// text.
const (
	maxKeptSchemas     = 4096
	maxKeptSchemaBytes = 1 << 20
)

// schemaCache keeps the schemas of tools that requests bring, compiled: an application sends the same
// ones with each request. It is safe for concurrent use. Of schemas that are new, one is compiled at a
// time, so that requests with many of them leave the processors to others.
type schemaCache struct {
	compiling sync.Mutex
	compiler  *schema.Compiler

	mu    sync.Mutex
	kept  map[schemaKey]*list.Element
	order list.List // of keptSchema, the one used last in front
	bytes int
}

// schemaUse is what a schema is for: those of arguments are closed.
type schemaUse uint8

const (
	arguments schemaUse = iota
	answers
)

type schemaKey struct {
	text string
	use  schemaUse
}

// keptSchema is a schema with what was changed so that it compiles, or why it does not.
type keptSchema struct {
	schemaKey
	schema  *schema.Schema // nil: there are faults
	changes []schema.Change
	faults  []schema.Fault
}

func newSchemaCache(compiler *schema.Compiler) *schemaCache {
	return &schemaCache{compiler: compiler, kept: map[schemaKey]*list.Element{}}
}

func (c *schemaCache) compile(text []byte, use schemaUse) *keptSchema {
	if c == nil { // of a registry without tools
		return compileCured(schema.NewCompiler(), text, use)
	}
	if found := c.lookup(text, use); found != nil {
		return found
	}
	c.compiling.Lock()
	defer c.compiling.Unlock()
	if found := c.lookup(text, use); found != nil { // another request has brought it meanwhile
		return found
	}
	compiled := compileCured(c.compiler, text, use)
	c.keep(compiled)
	return compiled
}

func compileCured(c *schema.Compiler, text []byte, use schemaUse) *keptSchema {
	k := &keptSchema{schemaKey: schemaKey{string(text), use}}
	var cured json.RawMessage
	cured, k.changes = schema.Cure([]byte(k.text), use == answers) // a copy: the schema keeps it
	k.schema, k.faults = c.Compile(cured, schema.Options{Authored: use == answers})
	return k
}

func (c *schemaCache) lookup(text []byte, use schemaUse) *keptSchema {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, found := c.kept[schemaKey{string(text), use}]
	if !found {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*keptSchema)
}

func (c *schemaCache) keep(k *keptSchema) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[k.schemaKey] = c.order.PushFront(k)
	c.bytes += len(k.text)
	for len(c.kept) > 1 && (len(c.kept) > maxKeptSchemas || c.bytes > maxKeptSchemaBytes) {
		last := c.order.Remove(c.order.Back()).(*keptSchema)
		delete(c.kept, last.schemaKey)
		c.bytes -= len(last.text)
	}
}
