package configs

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/registry"
)

// toolFile is one file of tools, with what is needed to say where a fault is.
type toolEntry struct {
	definition registry.Tool
	at         node
}

// readTools reads one file of tools, YAML or, by its name, JSON.
func readTools(r *report, file string, data []byte) []toolEntry {
	read := readYAML
	if strings.HasSuffix(file, ".json") {
		read = readJSON
	}
	root, ok := read(r, file, data)
	if !ok {
		return nil
	}
	var entries []toolEntry
	root.object(field{"tools", func(n node) {
		n.list("tools", func(_ int, item node) {
			item.legible()
			entries = append(entries, toolEntry{readTool(item), item})
		})
	}})
	return entries
}

func readTool(n node) registry.Tool {
	var t registry.Tool
	n.object(
		field{"name", func(n node) { n.text("the tool's name", &t.Name) }},
		field{"version", func(n node) { n.text("a version such as 1.0.0, in quotes if it looks like a number", &t.Version) }},
		field{"description", func(n node) { n.text("a description", &t.Description) }},
		field{"kind", func(n node) { n.text("a kind", &t.Kind) }},
		field{"effect", func(n node) { n.text("an effect", &t.Effect) }},
		field{"open", func(n node) { n.flag("whether the root is left as its author closed it", &t.Open) }},
		field{"input_schema", func(n node) {
			n.schema(&t.InputSchema)
		}},
		field{"output_schema", func(n node) {
			n.schema(&t.OutputSchema)
		}},
		field{"run", func(n node) {
			n.object(
				field{"type", func(n node) { n.text("how the tool is run", &t.Run.Type) }},
				field{"url", func(n node) { n.text("a URL", &t.Run.URL) }},
				field{"timeout", func(n node) { n.duration("a timeout", &t.Run.Timeout) }},
				field{"max_result_bytes", func(n node) { n.whole("a size in bytes", 1, 1<<30, &t.Run.MaxResultBytes) }},
				field{"addresses", func(n node) { n.texts("addresses or prefixes", &t.Run.Addresses) }},
				field{"tool", func(n node) { n.text("the tool's name on its server", &t.Run.Tool) }},
				field{"command", func(n node) { n.command(&t.Run.Command, &t.Run.Folder) }},
				field{"env", func(n node) { n.env(&t.Run.Env) }},
				field{"credential", func(n node) {
					var s Secret
					n.secret("what the server asks for", &s)
					t.Run.Credential = s.String()
				}},
				field{"max_age", func(n node) { n.duration("how long the answer may take", &t.Run.MaxAge) }},
				field{"asks", func(n node) { n.texts("kinds of questions", &t.Run.Asks) }},
				field{"method", func(n node) { n.text("a method of HTTP", &t.Run.Method) }},
				field{"parameters", func(n node) { n.parameters(&t.Run.Parameters) }},
			)
		}},
	)
	return t
}

// parameters reads where the arguments of a request stand: an argument's place, or
// a mapping that says more.
func (n node) parameters(into *[]registry.Parameter) {
	n.members("arguments, each with its place: path, query, header or body", func(key, value node) {
		p := registry.Parameter{Argument: key.Value}
		if value.Kind == yaml.MappingNode {
			value.object(
				field{"in", func(n node) { n.text("a place: path, query, header or body", &p.In) }},
				field{"name", func(n node) { n.text("a name in the query or of a header", &p.Name) }},
				field{"join", func(n node) { n.choice("how a list is one value", []string{"comma"}, &p.Join) }},
			)
		} else {
			value.text("a place: path, query, header or body", &p.In)
		}
		*into = append(*into, p)
	})
}

// schema reads a JSON Schema as JSON.
func (n node) schema(into *json.RawMessage) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		n.fail("found nothing; expected a JSON Schema")
		return
	}
	if schema, ok := n.json(); ok {
		*into = schema
	}
}

// twins reports tools whose name and version stand twice (no version is 0.0.0),
// and tells whether there are none. The registry would say so too, but not where
// the first is.
func twins(entries []toolEntry) bool {
	type version struct{ name, version string }
	ok, first := true, map[version]node{}
	for _, e := range entries {
		key := version{e.definition.Name, cmp.Or(e.definition.Version, "0.0.0")}
		if at, twice := first[key]; twice {
			ok = e.at.at("/name").fail("found the tool %q a second time in the same version; expected name and version together once (first at %s:%d)", key.name, at.file, at.Line)
			continue
		}
		first[key] = e.at
	}
	return ok
}

// buildRegistry makes the registry of all tools, and puts each fault at its line.
func buildRegistry(r *report, entries []toolEntry) *registry.Registry {
	tools := make([]registry.Tool, len(entries))
	for i, e := range entries {
		tools[i] = e.definition
	}
	built, err := registry.New(tools)
	if err == nil {
		return built
	}
	for _, fault := range loadErrors(err) {
		if fault.Tool < 0 || fault.Tool >= len(entries) {
			r.add(&Fault{File: "tools", Message: fault.Error()})
			continue
		}
		at := entries[fault.Tool].at
		for _, key := range fault.Field {
			if next, value, ok := at.child(key); ok {
				at = next
				if fault.Pointer != "" || len(fault.Field) > 1 {
					at = value
				}
			}
		}
		at.at(fault.Pointer).fail("%s", fault.Error())
	}
	return nil
}

// loadErrors takes a joined error apart.
func loadErrors(err error) []*registry.LoadError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*registry.LoadError
		for _, e := range joined.Unwrap() {
			all = append(all, loadErrors(e)...)
		}
		return all
	}
	var one *registry.LoadError
	if errors.As(err, &one) {
		return []*registry.LoadError{one}
	}
	return []*registry.LoadError{{Tool: -1, Message: err.Error()}}
}
