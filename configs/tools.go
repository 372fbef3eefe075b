package configs

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// toolFile is one file of tools, with what is needed to say where a fault is.
type Tool struct {
	Definition registry.Tool
	Node       Node
}

// Read reads one file of tools, YAML or, by its name, JSON.
func Read(r *Report, file string, data []byte) []Tool {
	read := ReadYAML
	if strings.HasSuffix(file, ".json") {
		read = ReadJSON
	}
	root, ok := read(r, file, data)
	if !ok {
		return nil
	}
	var entries []Tool
	root.Object(Field("tools", func(n Node) {
		n.List("tools", func(_ int, item Node) {
			checkVisible(item)
			entries = append(entries, Tool{readTool(item), item})
		})
	}))
	return entries
}

func readTool(n Node) registry.Tool {
	var t registry.Tool
	n.Object(
		Field("name", func(n Node) { n.Text("the tool's name", &t.Name) }),
		Field("version", func(n Node) { n.Text("a version such as 1.0.0, in quotes if it looks like a number", &t.Version) }),
		Field("description", func(n Node) { n.Text("a description", &t.Description) }),
		Field("kind", func(n Node) { n.Text("a kind", &t.Kind) }),
		Field("effect", func(n Node) { n.Text("an effect", &t.Effect) }),
		Field("open", func(n Node) { n.Bool("whether the root is left as its author closed it", &t.Open) }),
		Field("input_schema", func(n Node) {
			readSchema(n, &t.InputSchema)
		}),
		Field("output_schema", func(n Node) {
			readSchema(n, &t.OutputSchema)
		}),
		Field("run", func(n Node) {
			n.Object(
				Field("type", func(n Node) { n.Text("how the tool is run", &t.Run.Type) }),
				Field("url", func(n Node) { n.Text("a URL", &t.Run.URL) }),
				Field("timeout", func(n Node) { n.Duration("a timeout", &t.Run.Timeout) }),
				Field("max_result_bytes", func(n Node) { n.Int("a size in bytes", 1, 1<<30, &t.Run.MaxResultBytes) }),
				Field("addresses", func(n Node) { n.Texts("addresses or prefixes", &t.Run.Addresses) }),
				Field("tool", func(n Node) { n.Text("the tool's name on its server", &t.Run.Tool) }),
				Field("command", func(n Node) { readCommand(n, &t.Run.Command, &t.Run.Folder) }),
				Field("env", func(n Node) { readEnv(n, &t.Run.Env) }),
				Field("credential", func(n Node) {
					var s Secret
					readSecret(n, "what the server asks for", &s)
					t.Run.Credential = s.String()
				}),
				Field("max_age", func(n Node) { n.Duration("how long the answer may take", &t.Run.MaxAge) }),
				Field("asks", func(n Node) { n.Texts("kinds of questions", &t.Run.Asks) }),
				Field("method", func(n Node) { n.Text("a method of HTTP", &t.Run.Method) }),
				Field("parameters", func(n Node) { readParameters(n, &t.Run.Parameters) }),
			)
		}),
	)
	return t
}

// readParameters reads where the arguments of a request stand: an argument's place, or
// a mapping that says more.
func readParameters(n Node, into *[]tool.Parameter) {
	n.Members("arguments, each with its place: path, query, header or body", func(key, value Node) {
		p := tool.Parameter{Argument: key.Value}
		if value.IsMapping() {
			value.Object(
				Field("in", func(n Node) { n.Text("a place: path, query, header or body", &p.In) }),
				Field("name", func(n Node) { n.Text("a name in the query or of a header", &p.Name) }),
				Field("join", func(n Node) { n.Choice("how a list is one value", []string{"comma"}, &p.Join) }),
			)
		} else {
			value.Text("a place: path, query, header or body", &p.In)
		}
		*into = append(*into, p)
	})
}

// readSchema reads a JSON Schema as JSON.
func readSchema(n Node, into *json.RawMessage) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		n.Fail("found nothing; expected a JSON Schema")
		return
	}
	if schema, ok := n.JSON(); ok {
		*into = schema
	}
}

// CheckDuplicates reports tools whose name and version stand twice (no version is 0.0.0),
// and tells whether there are none. The registry would say so too, but not where
// the first is.
func CheckDuplicates(entries []Tool) bool {
	type version struct{ name, version string }
	ok, first := true, map[version]Node{}
	for _, e := range entries {
		key := version{e.Definition.Name, cmp.Or(e.Definition.Version, "0.0.0")}
		if at, twice := first[key]; twice {
			ok = e.Node.At("/name").Fail("found the tool %q a second time in the same version; expected name and version together once (first at %s:%d)", key.name, at.File, at.Line)
			continue
		}
		first[key] = e.Node
	}
	return ok
}

// BuildRegistry makes the registry of all tools, and puts each fault at its line.
func BuildRegistry(r *Report, entries []Tool) *registry.Registry {
	tools := make([]registry.Tool, len(entries))
	for i, e := range entries {
		tools[i] = e.Definition
	}
	built, err := registry.New(tools)
	if err == nil {
		return built
	}
	for _, fault := range LoadErrors(err) {
		if fault.Tool < 0 || fault.Tool >= len(entries) {
			r.Add(&Fault{File: "tools", Message: fault.Error()})
			continue
		}
		at := entries[fault.Tool].Node
		for _, key := range fault.Field {
			if next, value, ok := at.Child(key); ok {
				at = next
				if fault.Pointer != "" || len(fault.Field) > 1 {
					at = value
				}
			}
		}
		at.At(fault.Pointer).Fail("%s", fault.Error())
	}
	return nil
}

// LoadErrors takes a joined error apart.
func LoadErrors(err error) []*registry.LoadError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*registry.LoadError
		for _, e := range joined.Unwrap() {
			all = append(all, LoadErrors(e)...)
		}
		return all
	}
	var one *registry.LoadError
	if errors.As(err, &one) {
		return []*registry.LoadError{one}
	}
	return []*registry.LoadError{{Tool: -1, Message: err.Error()}}
}
