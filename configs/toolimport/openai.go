package toolimport

import (
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/registry"
)

// OpenAI translates the tools of a chat completions request into a tool file: the array
// itself, or the request that holds it. Names are unchanged, since the application runs the
// tools by them. A tool without parameters has no arguments; strict has no effect, since
// every tool is judged strictly.
// Custom tools are left out: their input is free text. Where only has patterns of names, no other tools
// are imported.
func OpenAI(file string, data []byte, only ...string) (*Result, error) {
	return importFrom(file, data, sourceFormat{list: []string{"tools"}, read: func(n document.Node, t *importedTool) { t.fromOpenAI(n) }},
		only)
}

func (t *importedTool) fromOpenAI(n document.Node) {
	_, kind, ok := n.Child("type")
	switch {
	case !ok:
		n.Fail("found a tool without a type; expected type function")
		return
	case kind.IsString() && kind.Value == "custom":
		if _, custom, ok := n.Child("custom"); ok {
			t.definition.Name = custom.StringAt("name")
		}
		n.Fail("found a custom tool, whose input is free text that no schema can judge; expected type function")
		return
	case !kind.IsString() || kind.Value != "function":
		kind.Fail("found %s; expected the type function", kind.Describe())
		return
	}
	key, function, ok := n.Child("function")
	if !ok || !function.IsMapping() {
		if !ok {
			key = n
		}
		key.Fail("found a tool of type function that says nothing of it; expected the member function, with a name and parameters")
		return
	}
	t.readName(function)
	t.checkWireName(function)
	if _, schema, ok := function.Child("parameters"); ok && schema.ShortTag() != "!!null" {
		t.schemas["input_schema"] = schema
		return
	}
	t.schemas["input_schema"] = emptyObject(function)
}

// emptyObject is the schema of a tool of which a request states none.
func emptyObject(at document.Node) document.Node {
	return at.With(mappingAt(at, scalar("type"), scalar("object")))
}

// checkWireName reports a name that the API does not take.
func (t *importedTool) checkWireName(n document.Node) {
	if name := t.definition.Name; strings.Trim(name, registry.OpenAI().Allowed) != "" {
		n.Fail("found the name %q; expected letters, digits, _ and - only, as the API does", name)
	}
}
