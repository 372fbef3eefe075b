package toolimport

import (
	"errors"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/registry"
)

// MCP translates tool definitions of the Model Context Protocol into a tool file: a JSON
// array of tools, an object with the member "tools", or a response whose result has it.
// Annotations are hints of the server, and have no effect. Where only has patterns of names, the prefix
// included, no other tools are imported.
func MCP(file string, data []byte, prefix string, only ...string) (*Result, error) {
	return importFrom(file, data, sourceFormat{list: []string{"result", "tools"},
		read: func(n document.Node, t *importedTool) { t.fromMCP(n, prefix) }}, only)
}

// ImportMCPTool translates one tool, which data states, and returns what was added to
// it so that it loads. Its error has every reason why it is refused, without places.
func ImportMCPTool(file string, data []byte) (registry.Tool, []*document.Fault, error) {
	r := document.Report{Unlimited: true}
	im := newImporter(&r, nil)
	if root, ok := document.ReadJSON(&r, file, data); ok {
		im.add(root, func(n document.Node, t *importedTool) { t.fromMCP(n, "") })
	}
	if len(im.tools) == 0 {
		return registry.Tool{}, nil, errors.New(joinMessages(r.Faults))
	}
	return im.tools[0].definition, im.tools[0].changes, nil
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

// joinMessages joins faults without their places, which are in no file of the
// operator's.
func joinMessages(faults document.Faults) string {
	var messages []string
	for _, f := range faults {
		messages = append(messages, f.Message)
	}
	return strings.Join(messages, "; ")
}
