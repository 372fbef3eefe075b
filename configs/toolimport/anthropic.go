package toolimport

import (
	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/clienttools"
)

// Anthropic translates the tools of a request of Anthropic Messages into a tool file: the array itself,
// or the request that holds it. Names are unchanged, since the application runs the tools by
// them. Tools with a dated type that the application runs, such as bash_20250124, get the schema
// that the API documents; each member of a toolset is a tool, as computer.left_click. Tools that the
// provider runs are left out. Where only has patterns of names, no other tools are imported.
func Anthropic(file string, data []byte, only ...string) (*Result, error) {
	return importFrom(file, data, sourceFormat{list: []string{"tools"}, parts: anthropicParts}, only)
}

func anthropicParts(n document.Node) []toolPart {
	_, kind, stated := n.Child("type")
	if !stated || kind.ShortTag() == "!!null" || kind.IsString() && kind.Value == "custom" {
		return []toolPart{{n, func(n document.Node, t *importedTool) { t.fromAnthropic(n) }}}
	}
	known := clienttools.Anthropic(kind.Value)
	if !kind.IsString() || len(known) == 0 {
		kind.Fail("found %s; expected custom, or a tool that the application runs, such as bash_20250124: the provider runs others",
			kind.Describe())
		return nil
	}
	return knownParts(n, known)
}

// fromAnthropic reads {"name":…,"description":…,"input_schema":…}.
func (t *importedTool) fromAnthropic(n document.Node) {
	t.readName(n)
	t.checkWireName(n)
	if _, schema, ok := n.Child("input_schema"); ok {
		t.schemas["input_schema"] = schema
		return
	}
	n.Fail("tool %q has no input_schema, so nothing can be said of its arguments; expected a schema", t.definition.Name)
}

// knownParts are tools that an API defines. Faults of them are at the definition that names them.
func knownParts(n document.Node, known []clienttools.Tool) []toolPart {
	var parts []toolPart
	for _, k := range known {
		parts = append(parts, toolPart{n, func(n document.Node, t *importedTool) {
			t.definition.Name, t.definition.Description = k.Name, k.Description
			schema, ok := document.ReadJSON(n.Report, k.Name, k.Schema)
			if ok {
				t.schemas["input_schema"] = n.With(schema.Node)
			}
		}})
	}
	return parts
}
