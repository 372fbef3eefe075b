package toolfile

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// Tool is one tool of a file, with the place that its faults are reported at.
type Tool struct {
	Definition registry.Tool
	// Node returns that place, which reports to r. One goroutine calls it at a time, for all tools.
	Node func(r *document.Report) document.Node
}

// CheckDuplicates reports tools whose name and version stand twice (no version is 0.0.0),
// and reports whether there are none. The registry would report them too, but without the
// place of the first.
func CheckDuplicates(r *document.Report, entries []Tool) bool {
	type version struct{ name, version string }
	ok, first := true, make(map[version]int, len(entries))
	for i, e := range entries {
		key := version{e.Definition.Name, cmp.Or(e.Definition.Version, "0.0.0")}
		if before, twice := first[key]; twice {
			at := entries[before].Node(r)
			ok = e.Node(r).At("/name").Fail("found the tool %q a second time in the same version; expected name and version together once (first at %s:%d)", key.name, at.File, at.Line)
			continue
		}
		first[key] = i
	}
	return ok
}

// BuildRegistry makes the registry of all tools, and puts each fault at its line.
func BuildRegistry(r *document.Report, entries []Tool, before *registry.Registry) *registry.Registry {
	tools := make([]registry.Tool, len(entries))
	for i, e := range entries {
		tools[i] = e.Definition
	}
	built, err := before.Renew(tools)
	if err == nil {
		warnDoubts(r, entries, built)
		return built
	}
	for _, fault := range LoadErrors(err) {
		if fault.Tool < 0 || fault.Tool >= len(entries) {
			r.Add(&document.Fault{File: "tools", Message: fault.Error()})
			continue
		}
		place(entries[fault.Tool].Node(r), fault).Fail("%s", fault.Error())
	}
	return nil
}

// warnDoubts warns of what is allowed in schemas, and surely not meant.
func warnDoubts(r *document.Report, entries []Tool, built *registry.Registry) {
	for i := range entries {
		e, found := built.LookupVersion(entries[i].Definition.Name, cmp.Or(entries[i].Definition.Version, "0.0.0"))
		if !found {
			continue // its version is written in another way
		}
		for _, doubt := range e.Doubts() {
			at := place(entries[i].Node(r), &registry.LoadError{Field: []string{"input_schema"}, Pointer: doubt.Pointer})
			at.Warn("the schema of %s %s", e.Name(), doubt.Message)
		}
	}
}

// place finds where a tool states what a fault is about.
func place(at document.Node, fault *registry.LoadError) document.Node {
	for _, key := range fault.Field {
		if next, value, ok := at.Child(key); ok {
			at = next
			if fault.Pointer != "" || len(fault.Field) > 1 {
				at = value
			}
		}
	}
	return at.At(fault.Pointer)
}

// LoadErrors returns each error of a registry that err joins.
func LoadErrors(err error) []*registry.LoadError {
	var all []*registry.LoadError
	for err := range document.Each(err) {
		one := &registry.LoadError{Tool: -1, Message: err.Error()}
		errors.As(err, &one)
		all = append(all, one)
	}
	return all
}

// DropCollisions returns a list without the elements whose tools exclude an earlier one: by the
// same name and version, or by names that are one in a name map. It reports each of them.
func DropCollisions[T any](list []T, nameAndVersion func(T) (name, version string), report func(T, *registry.LoadError)) []T {
	bare := make([]registry.Tool, len(list))
	for i, t := range list {
		name, version := nameAndVersion(t)
		bare[i] = registry.Tool{Name: name, Version: version, InputSchema: json.RawMessage(`{"type":"object"}`),
			Run: tool.Run{Type: "client"}}
	}
	_, err := registry.New(bare)
	if err == nil {
		return list
	}
	refused := map[int]bool{}
	for _, f := range LoadErrors(err) {
		refused[f.Tool] = true
		report(list[f.Tool], f)
	}
	var kept []T
	for i, t := range list {
		if !refused[i] {
			kept = append(kept, t)
		}
	}
	return kept
}
