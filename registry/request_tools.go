package registry

import (
	"bytes"
	"container/list"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/callgate/callgate/registry/internal/lexical"
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
	maxBrought      = 512
	maxBroughtBytes = 1 << 20 // of their schemas

	maxBroughtFaults = 20 // behind which no more tools are read
)

// With returns a registry of the tools of r, and of those that a request brings. They are closed
// as all are, of the type client, with the effect once and the version BroughtVersion. Their
// entries have no Index. r does not change; a schema that was compiled for it lately is not compiled
// again. The error joins one *LoadError for each fault: a name or a schema that r would not load, a
// name that r has or that stands twice, too many tools.
func (r *Registry) With(tools []Brought) (*Registry, error) {
	size := 0
	for i := range tools {
		size += len(tools[i].InputSchema)
	}
	if len(tools) > maxBrought || size > maxBroughtBytes {
		message := fmt.Sprintf("found %d tools of %d bytes; expected at most %d, of %d bytes", len(tools), size, maxBrought, maxBroughtBytes)
		return nil, &LoadError{Tool: min(len(tools)-1, maxBrought), Message: message}
	}
	more := &Registry{base: r, latest: make(map[string]*Entry, len(tools)), exact: make(map[versioned]*Entry, len(tools))}
	if r != nil {
		more.schemas = r.schemas
	}
	var all []error
	for i := range tools {
		if len(all) >= maxBroughtFaults {
			break // faulty schemas are not kept, and to compile them takes long
		}
		t := &tools[i]
		e, faults := loadBrought(t, more.schemas)
		taken := func(found string) {
			faults = append(faults, &LoadError{Name: t.Name, Field: []string{"name"}, Message: "found " + lexical.Quote(t.Name) + found})
		}
		if _, known := r.Lookup(t.Name); known {
			taken(", which the registry has; expected another name")
		}
		if _, twice := more.latest[t.Name]; twice {
			taken(" a second time; expected each name once")
		}
		for _, f := range faults {
			f.Tool = i
			all = append(all, f)
		}
		if len(faults) > 0 {
			continue
		}
		more.latest[t.Name], more.exact[versioned{t.Name, BroughtVersion}] = e, e
		more.entries = append(more.entries, e)
	}
	if len(all) > 0 {
		return nil, errors.Join(all...)
	}
	more.sort()
	return more, nil
}

// loadBrought is loadEntry for a tool of a request.
func loadBrought(t *Brought, schemas *schemaCache) (*Entry, []*LoadError) {
	definition, faults := complete(Tool{
		Name: t.Name, Version: BroughtVersion, Description: t.Description, InputSchema: t.InputSchema, Run: tool.Run{Type: clientRun},
	})
	compiled, problems := schemas.compile(t.InputSchema)
	for _, f := range problems {
		faults = append(faults, &LoadError{
			Name: t.Name, Field: []string{"input_schema"}, Pointer: f.Pointer, Message: f.Message, Undeclared: f.Undeclared(),
		})
	}
	if len(faults) > 0 {
		return nil, faults
	}
	version, _ := parseVersion(BroughtVersion)
	return &Entry{tool: definition, version: version, index: noIndex, input: compiled}, nil
}

// Agrees reports whether a schema of arguments, as a request states it, means what the tool's own
// does: both are the same once they are closed, but for identifiers and extensions. One that does not
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
	compiled, faults := r.schemas.compile(text)
	return len(faults) == 0 && compiled.SameAs(e.input)
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
	compiled  int // by this compiler

	mu    sync.Mutex
	kept  map[string]*list.Element // by text
	order list.List                // of keptSchema, the one used last in front
	bytes int
}

type keptSchema struct {
	text   string
	schema *schema.Schema
}

func newSchemaCache(compiler *schema.Compiler) *schemaCache {
	return &schemaCache{compiler: compiler, kept: map[string]*list.Element{}}
}

// maxCompiled is how many schemas are compiled before what the compiler has learnt of them is
// forgotten: it is bounded by the tools of a configuration, but not by those of requests.
const maxCompiled = 256

func (c *schemaCache) compile(text []byte) (*schema.Schema, []schema.Fault) {
	if c == nil { // of a registry without tools
		return schema.NewCompiler(false).Compile(text, schema.Options{})
	}
	if found := c.lookup(text); found != nil {
		return found, nil
	}
	c.compiling.Lock()
	defer c.compiling.Unlock()
	if found := c.lookup(text); found != nil { // another request has brought it meanwhile
		return found, nil
	}
	if c.compiled++; c.compiled > maxCompiled {
		c.compiler, c.compiled = c.compiler.Fresh(), 1
	}
	compiled, faults := c.compiler.Compile(text, schema.Options{})
	if len(faults) == 0 {
		c.keep(string(text), compiled)
	}
	return compiled, faults
}

func (c *schemaCache) lookup(text []byte) *schema.Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, found := c.kept[string(text)]
	if !found {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*keptSchema).schema
}

func (c *schemaCache) keep(text string, compiled *schema.Schema) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[text] = c.order.PushFront(&keptSchema{text, compiled})
	c.bytes += len(text)
	for len(c.kept) > 1 && (len(c.kept) > maxKeptSchemas || c.bytes > maxKeptSchemaBytes) {
		last := c.order.Remove(c.order.Back()).(*keptSchema)
		delete(c.kept, last.text)
		c.bytes -= len(last.text)
	}
}
