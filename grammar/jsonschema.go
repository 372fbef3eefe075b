package grammar

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/callgate/callgate/internal/decimal"
)

// writeSchema writes the JSON Schema of a call: the closed schema of each tool, under its name.
func (g *Grammar) writeSchema(w io.Writer) error {
	defs := map[string]any{}
	calls := []any{}
	for i, t := range g.tools {
		var root any
		if err := decimal.Unmarshal(t.Schema, &root); err != nil {
			return fmt.Errorf("%s: the schema cannot be read: %w", t.Name, err)
		}
		prefix := fmt.Sprintf("%d-", i+1)
		root = renamed(root, prefix)
		if m, is := root.(map[string]any); is {
			own, _ := m["$defs"].(map[string]any)
			for name, s := range own {
				defs[prefix+name] = s
			}
			delete(m, "$defs")
		}
		calls = append(calls, object(map[string]any{"name": map[string]any{"const": t.Name}, "arguments": root}, "name", "arguments"))
	}
	members, required := map[string]any{"tool": map[string]any{"anyOf": calls}}, []any{"tool"}
	if len(calls) == 0 {
		members["tool"] = false
	}
	if g.options.Agent != "" {
		members["agent"] = map[string]any{"const": g.options.Agent}
		if g.options.AgentRequired {
			required = append(required, "agent")
		}
	}
	out := object(members, required...)
	out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	out["$comment"] = strings.Join(g.header()[:2], " ")
	if len(defs) > 0 {
		out["$defs"] = defs
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// renamed gives the definitions of a schema names of their own.
func renamed(schema any, prefix string) any {
	const at = "#/$defs/"
	switch s := schema.(type) {
	case []any:
		for i := range s {
			s[i] = renamed(s[i], prefix)
		}
	case map[string]any:
		for name, value := range s {
			switch name {
			case "enum", "const", "default", "examples": // values, not schemas
			case "properties", "patternProperties", "dependentSchemas", "$defs":
				members, _ := value.(map[string]any)
				for member, of := range members {
					members[member] = renamed(of, prefix)
				}
			case "$ref":
				ref, _ := value.(string)
				s[name] = at + prefix + strings.TrimPrefix(ref, at)
			default:
				s[name] = renamed(value, prefix)
			}
		}
	}
	return schema
}
