// Package toolfile reads files of tools strictly, YAML or JSON, and builds a registry of
// them in which every fault is reported at its file and line. A text in which a
// character cannot be seen is refused: models must not read what operators cannot.
package toolfile

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// Read reads one file of tools, YAML or, by its name, JSON. The tools keep data, which must not change.
func Read(r *document.Report, file string, data []byte) []Tool {
	root, ok := readRoot(r, file, data)
	if !ok {
		return nil
	}
	from := &source{file: file, data: data}
	var tools []Tool
	for i, definition := range ReadTools(root) {
		tools = append(tools, Tool{definition, func(r *document.Report) document.Node { return from.tool(r, i) }})
	}
	return tools
}

func readRoot(r *document.Report, file string, data []byte) (document.Node, bool) {
	if strings.HasSuffix(file, ".json") {
		return document.ReadJSON(r, file, data)
	}
	return document.ReadYAML(r, file, data)
}

// source is a file of tools, which is read again when the first fault of one of its tools is placed: the
// tree of a file takes many times its text, and of most files nobody asks for it.
type source struct {
	file string
	data []byte
	root document.Node
}

func (s *source) tool(r *document.Report, i int) document.Node {
	if s.root.Node == nil {
		s.root, _ = readRoot(&document.Report{}, s.file, s.data) // it was read so before
	}
	n := s.root.At(refusal.Pointer("tools", strconv.Itoa(i)))
	n.Report = r
	return n
}

// ReadTools reads the root of a file of tools.
func ReadTools(root document.Node) []registry.Tool {
	var tools []registry.Tool
	root.Object(document.Field("tools", func(n document.Node) {
		n.List("tools", func(_ int, item document.Node) {
			CheckVisible(item)
			tools = append(tools, readTool(item))
		})
	}))
	return tools
}

func readTool(n document.Node) registry.Tool {
	var t registry.Tool
	defer n.Describes(func(s *document.Schema) {
		s.Required = []string{"name", "input_schema", "run"}
		s.Properties["run"].Required = []string{"type"}
	})
	n.Object(document.Fields(&t,
		document.Text("kind", "a kind", &t.Kind).Among(registry.Kinds()...),
		document.Text("effect", "an effect", &t.Effect).Among(registry.Effects()...),
		document.Field("labels", func(n document.Node) { readLabels(n, &t.Labels) }),
		document.Group("run", document.Fields(&t.Run,
			document.Text("type", "how the tool is run", &t.Run.Type).Among(registry.RunTypes()...),
			document.Field("command", func(n document.Node) { n.ReadCommand(&t.Run.Command, &t.Run.Folder) }),
			document.Field("env", func(n document.Node) { secret.ReadEnv(n, &t.Run.Env) }),
			document.Field("credential", func(n document.Node) { t.Run.Credential = readCredential(n, true) }),
			document.Texts("input_requests", "kinds of questions", &t.Run.InputRequests).Among(tool.QuestionKinds()...).Unique(),
			document.Text("method", "a method of HTTP", &t.Run.Method).Among(registry.Methods()...),
			document.Field("parameters", func(n document.Node) { readParameters(n, &t.Run.Parameters) }),
		)...),
	)...)
	if !n.Describing() {
		checkLabelArguments(n, &t)
	}
	return t
}

// hostArgument is the argument that unless_hosts looks at where a label names none.
const hostArgument = "url"

// readLabels reads what a call of a tool adds to its thread: labels, or mappings of a label and of the hosts
// that do not bring it.
func readLabels(n document.Node, into *[]registry.Label) {
	*into = []registry.Label{}
	n.List("labels", func(_ int, item document.Node) {
		var label registry.Label
		if item.IsMapping() {
			label.Argument = hostArgument
			if item.Object(document.Fields(&label,
				document.Field("unless_hosts", func(n document.Node) { readUnlessHosts(n, &label.UnlessHosts) }))...) {
				item.Requires("found a label without %s; expected label and unless_hosts, or the label alone", "label", "unless_hosts")
			}
		} else {
			item.Text("a label", &label.Name)
		}
		if slices.ContainsFunc(*into, func(other registry.Label) bool { return other.Name == label.Name }) && label.Name != "" {
			item.Fail("found the label %q a second time; expected each once", label.Name)
		}
		*into = append(*into, label)
	})
}

// readUnlessHosts reads hosts as a project lists them.
func readUnlessHosts(n document.Node, into *[]string) {
	n.List("hosts", func(_ int, item document.Node) {
		var host string
		if item.Text("a host name, *.NAME or an IP address", &host) {
			if wrong := boundary.HostProblem(host); wrong != "" {
				item.Fail("%s", strings.Replace(wrong, ", expected", "; expected", 1))
			}
		}
		*into = append(*into, host)
	})
	n.NotEmpty("host")
}

// checkLabelArguments reports labels that look at an argument which the tool does not have.
func checkLabelArguments(n document.Node, t *registry.Tool) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(t.InputSchema, &schema) // what is no schema is reported where it is compiled
	for i, label := range t.Labels {
		if _, declared := schema.Properties[label.Argument]; len(label.UnlessHosts) > 0 && !declared {
			n.At(refusal.Pointer("labels", strconv.Itoa(i))).Fail("found unless_hosts without the argument %q in input_schema; expected argument to name the one with the host, or the URL", label.Argument)
		}
	}
}

// readParameters reads the places of a request's arguments: an argument's place, or a
// mapping with more settings.
func readParameters(n document.Node, into *[]tool.Parameter) {
	n.Members("arguments, each with its place: path, query, header or body", func(key, value document.Node) {
		p := tool.Parameter{Argument: key.Value}
		if value.IsMapping() {
			value.Object(document.Fields(&p, document.Text("in", "a place: path, query, header or body",
				&p.In).Among(registry.Locations()...))...)
		} else {
			const of = "a place: path, query, header or body"
			value.Text(of, &p.In)
			value.Among(of, registry.Locations()...)
		}
		*into = append(*into, p)
	})
}
