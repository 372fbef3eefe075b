// Package registry holds the tools: their definitions, their versions, the maps
// of their names, and for each an entry that evaluates arguments and results.
//
// # Contract
//
// New reads definitions as configuration files state them and refuses, with a
// LoadError for each fault, everything that it cannot check strictly later. A
// Registry that New returned never changes and is safe for concurrent use. With adds
// the tools of one request, in a Registry of their own that stands on the first.
// Names are looked up byte for byte; a name without a version means the
// highest one. A similar name is offered (Suggest), never used.
//
// # Grammar
//
//	name    = part *( "." part )        ; at most 64 bytes
//	part    = 1*( ALPHA / DIGIT / "_" / "-" )
//	version = number "." number "." number [ "-" pre ] [ "+" build ]   ; Semantic Versioning 2.0.0
//	kind    = "read" / "edit" / "delete" / "move" / "search" / "execute" / "think" / "fetch" / "switch_mode" / "other"
//	effect  = "read" / "idempotent" / "once"
//
// Schemas are compiled, closed and evaluated by registry/schema.
package registry

import (
	"cmp"
	"errors"
	"slices"

	"github.com/callgate/callgate/internal/parallel"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/registry/schema"
)

// Registry is an immutable set of tools. Its zero value, and nil, hold none.
type Registry struct {
	latest     map[string]*Entry
	exact      map[versioned]*Entry
	entries    []*Entry
	candidates []candidate
	base       *Registry // of the other tools; nil: these are all
	schemas    *schemaCache
}

type versioned struct{ name, version string }

// New loads tools. All faults are reported: the error joins one *LoadError for
// each, in the order of the list, and no Registry is returned. An empty list is
// a Registry without tools. New reads no file and no network.
func New(tools []Tool) (*Registry, error) { return (*Registry)(nil).Renew(tools) }

// Renew is New for the tools that follow those of r, which does not change and may be nil: a schema that
// stands in both under the same name and version is not compiled again.
func (r *Registry) Renew(tools []Tool) (*Registry, error) {
	before := r
	schemas := newSchemaCache(schema.NewCompiler())
	if before != nil && before.schemas != nil {
		schemas = before.schemas
	}
	loaded := make([]*Entry, len(tools))
	faults := make([][]*LoadError, len(tools))
	parallel.For(len(tools), func(i int) { loaded[i], faults[i] = loadEntry(&tools[i], before, schemas.compiler) })

	r = &Registry{schemas: schemas, latest: make(map[string]*Entry, len(tools)), exact: make(map[versioned]*Entry, len(tools))}
	wire, ids := newNameEncoder(OpenAI()), newNameEncoder(OXP())
	first := make(map[versioned]int, len(tools))
	for i, e := range loaded {
		t := &tools[i]
		if e == nil {
			continue
		}
		id := versioned{e.tool.Name, e.tool.Version}
		if at, taken := first[id]; taken {
			faults[i] = append(faults[i], &LoadError{Name: t.Name, Field: []string{"name"},
				Message: "found " + parser.Quote(t.Name) + " in version " + e.tool.Version + " a second time (first as " + ordinal(at) +
					" of the list); expected name and version together to be unique"})
			continue
		}
		first[id] = i
		_, fault := wire.add(t.Name)
		if fault == "" {
			_, fault = ids.add(t.Name)
		}
		if fault != "" {
			faults[i] = append(faults[i], &LoadError{Name: t.Name, Field: []string{"name"}, Message: fault})
			continue
		}
		r.exact[id] = e
		r.entries = append(r.entries, e)
		if best := r.latest[t.Name]; best == nil || compareVersions(best.version, e.version) < 0 {
			r.latest[t.Name] = e
		}
	}
	var all []error
	for i := range faults {
		for _, f := range faults[i] {
			f.Tool = i
			all = append(all, f)
		}
	}
	if len(all) > 0 {
		return nil, errors.Join(all...)
	}
	r.sort()
	for i, e := range r.entries {
		e.index = i
	}
	return r, nil
}

// sort sorts the entries, and prepares their names for comparing.
func (r *Registry) sort() {
	slices.SortFunc(r.entries, compareEntries)
	r.candidates = newCandidates(r.entries)
}

func compareEntries(a, b *Entry) int {
	return cmp.Or(cmp.Compare(a.tool.Name, b.tool.Name), compareVersions(a.version, b.version))
}

// Lookup returns the highest version of the tool of exactly this name.
func (r *Registry) Lookup(name string) (*Entry, bool) {
	if r == nil {
		return nil, false
	}
	e, ok := r.latest[name]
	if !ok {
		return r.base.Lookup(name)
	}
	return e, ok
}

// LookupVersion returns the tool of exactly this name and version.
func (r *Registry) LookupVersion(name, version string) (*Entry, bool) {
	if r == nil {
		return nil, false
	}
	e, ok := r.exact[versioned{name, version}]
	if !ok {
		return r.base.LookupVersion(name, version)
	}
	return e, ok
}

// Entries returns all tools, sorted by name and then by version.
func (r *Registry) Entries() []*Entry {
	if r == nil {
		return nil
	}
	if r.base == nil {
		return slices.Clone(r.entries)
	}
	all := slices.Concat(r.base.Entries(), r.entries)
	slices.SortFunc(all, compareEntries)
	return all
}

// Len returns how many tools there are.
func (r *Registry) Len() int {
	if r == nil {
		return 0
	}
	return r.base.Len() + len(r.entries)
}

// HasSecrets reports whether any tool marks an argument x-secret.
func (r *Registry) HasSecrets() bool {
	return r != nil && (r.base.HasSecrets() || slices.ContainsFunc(r.entries, func(e *Entry) bool { return e.input.HasSecrets() }))
}
