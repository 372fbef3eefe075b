package configs

import (
	"github.com/callgate/callgate/configs/document"
)

// ImportMCP translates tool definitions of the Model Context Protocol into a
// tool file: a JSON array of tools, an object with the member "tools", or a
// response whose result has it. Annotations are hints of the server, and change
// nothing.
func ImportMCP(file string, data []byte, prefix string) (*ImportResult, error) {
	return importFrom(file, data, sourceFormat{list: []string{"result", "tools"}, read: func(n document.Node, t *importedTool) { t.fromMCP(n, prefix) }})
}

func (t *importedTool) fromMCP(n document.Node, prefix string) {
	t.readName(n)
	t.definition.Name = prefix + t.definition.Name
	for theirs, ours := range map[string]string{"inputSchema": "input_schema", "outputSchema": "output_schema"} {
		if key, schema, ok := n.Child(theirs); ok && schema.ShortTag() != "!!null" {
			t.schemas[ours] = schema
		} else if theirs == "inputSchema" {
			if !ok {
				key = n
			}
			key.Fail("tool %q has no inputSchema, so nothing can be said of its arguments; expected a schema", t.definition.Name)
		}
	}
}
