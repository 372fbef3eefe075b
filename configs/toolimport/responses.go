package toolimport

import (
	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/clienttools"
)

// Responses translates the tools of a request of OpenAI Responses into a tool file: the array itself, or
// the request that holds it, with those of its input items additional_tools. Names are unchanged, since
// the application runs the tools by them; the tools of a namespace are NAMESPACE.NAME. A custom tool
// has one argument, input, a text: its grammar is not checked. shell, local_shell, apply_patch and
// computer get the schema of their calls. Tools that the provider runs are left out. Where only has patterns
// of names, no other tools are imported.
func Responses(file string, data []byte, only ...string) (*Result, error) {
	parts := func(n document.Node) []toolPart { return responsesParts(n, "") }
	return importFrom(file, data, sourceFormat{list: []string{"tools"}, parts: parts, more: additionalTools}, only)
}

// additionalTools are the lists of tools that stand inside the input of a request (RS-13).
func additionalTools(root document.Node) []document.Node {
	var lists []document.Node
	_, input, ok := root.Child("input")
	if !ok || !input.IsList() {
		return nil
	}
	input.List("items", func(_ int, item document.Node) {
		if item.StringAt("type") != "additional_tools" {
			return
		}
		if _, tools, ok := item.Child("tools"); ok {
			lists = append(lists, tools)
		}
	})
	return lists
}

func responsesParts(n document.Node, namespace string) []toolPart {
	_, kind, ok := n.Child("type")
	switch {
	case !ok:
		n.Fail("found a tool without a type; expected type function, custom, namespace or shell")
		return nil
	case !kind.IsString():
		kind.Fail("found %s; expected a type, such as function", kind.Describe())
		return nil
	case kind.Value == "function", kind.Value == "custom":
		custom := kind.Value == "custom"
		return []toolPart{{n, func(n document.Node, t *importedTool) { t.fromResponses(n, namespace, custom) }}}
	case kind.Value == "namespace" && namespace == "":
		return namespaceParts(n)
	}
	if known, ok := clienttools.Responses(kind.Value); ok && (kind.Value != "shell" || !hostedEnvironment(n)) {
		return knownParts(n, []clienttools.Tool{known})
	}
	kind.Fail("found %s; expected function, custom, namespace, or a tool that the application runs, such as local_shell: the provider runs others",
		kind.Describe())
	return nil
}

// hostedEnvironment reports whether a shell is that of a container at the provider.
func hostedEnvironment(n document.Node) bool {
	_, environment, ok := n.Child("environment")
	return ok && environment.ShortTag() != "!!null" && environment.StringAt("type") != "local"
}

func namespaceParts(n document.Node) []toolPart {
	name := n.StringAt("name")
	key, tools, ok := n.Child("tools")
	if name == "" || !ok || !tools.IsList() {
		if !ok {
			key = n
		}
		key.Fail("found a namespace without a name or a list of tools; expected both")
		return nil
	}
	var parts []toolPart
	tools.List("tools", func(_ int, item document.Node) {
		if !item.IsMapping() {
			item.Fail("found %s; expected a tool", item.TypeName())
			return
		}
		parts = append(parts, responsesParts(item, name)...)
	})
	return parts
}

// fromResponses reads {"type":"function","name":…,"description":…,"parameters":…}, or a custom tool.
func (t *importedTool) fromResponses(n document.Node, namespace string, custom bool) {
	t.readName(n)
	t.checkWireName(n)
	if namespace != "" {
		t.definition.Name = namespace + "." + t.definition.Name
	}
	if custom {
		schema, ok := document.ReadJSON(n.Report, "input", clienttools.Custom)
		if ok {
			t.schemas["input_schema"] = n.With(schema.Node)
		}
		if n.Has("format") {
			t.reportChange(n, "its input is a text, and its format is not checked; a pattern of the argument input, or a condition, can say more")
		}
		return
	}
	if _, schema, ok := n.Child("parameters"); ok && schema.ShortTag() != "!!null" {
		t.schemas["input_schema"] = schema
		return
	}
	t.schemas["input_schema"] = emptyObject(n)
}
