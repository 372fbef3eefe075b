package registry

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/callgate/callgate/internal/decimal"
)

// CallForm is the spelling of a call that a schema describes.
type CallForm struct {
	// Names maps the names of the tools to those of a wire. With it, the schema is that of the bare
	// object {"name":…,"arguments":…} of a native call. Without it, the schema is that of a whole
	// completion, {"tool":{"name":…,"arguments":…}}.
	Names *NameMap
	// Agent may be named by a completion, and must be where AgentRequired. Empty: no call names one.
	Agent         string
	AgentRequired bool
}

// CallSchema returns the JSON Schema (2020-12) of the calls of some tools: each with its closed
// schema, under its name. A value keeps it exactly if the parser and the schemas of the tools accept
// the call; but no schema can say that names do not repeat, how long a number is, or how deep a call
// nests. Without a tool, nothing keeps it.
func CallSchema(tools []*Entry, form CallForm) (json.RawMessage, error) {
	defs := map[string]any{}
	calls := make([]any, 0, len(tools))
	for i, t := range tools {
		var root any
		if err := decimal.Unmarshal(t.ClosedSchema(), &root); err != nil {
			return nil, fmt.Errorf("%s: the schema cannot be read: %w", t.Name(), err)
		}
		prefix := fmt.Sprintf("%d-", i+1)
		root = withDefinitionPrefix(root, prefix)
		if m, is := root.(map[string]any); is {
			own, _ := m["$defs"].(map[string]any)
			for name, s := range own {
				defs[prefix+name] = s
			}
			delete(m, "$defs")
			if _, typed := m["type"]; !typed {
				m["type"] = "object"
			}
		}
		name := t.Name()
		if form.Names != nil {
			name, _ = form.Names.Wire(name)
		}
		calls = append(calls, closedObject(map[string]any{"name": map[string]any{"const": name}, "arguments": root}, "name", "arguments"))
	}
	out := map[string]any{"anyOf": calls}
	if len(calls) == 0 {
		out = map[string]any{"not": map[string]any{}}
	}
	if form.Names == nil {
		members, required := map[string]any{"tool": out}, []any{"tool"}
		if form.Agent != "" {
			members["agent"] = map[string]any{"const": form.Agent}
			if form.AgentRequired {
				required = append(required, "agent")
			}
		}
		out = closedObject(members, required...)
	}
	out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	out["$comment"] = "The calls that the parser and the schemas of the tools accept. Conditions of the policy, limits and boundaries are judged when a call is made."
	if len(defs) > 0 {
		out["$defs"] = defs
	}
	return json.Marshal(out)
}

func closedObject(properties map[string]any, required ...any) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// withDefinitionPrefix renames the definitions that a closed schema refers to, so that the schemas
// of several tools have room in one document. Closed schemas refer to their own $defs alone.
func withDefinitionPrefix(schema any, prefix string) any {
	const at = "#/$defs/"
	switch s := schema.(type) {
	case []any:
		for i := range s {
			s[i] = withDefinitionPrefix(s[i], prefix)
		}
	case map[string]any:
		for name, value := range s {
			switch name {
			case "enum", "const", "default", "examples": // values, not schemas
			case "properties", "patternProperties", "dependentSchemas", "$defs":
				members, _ := value.(map[string]any)
				for member, of := range members {
					members[member] = withDefinitionPrefix(of, prefix)
				}
			case "$ref":
				ref, _ := value.(string)
				s[name] = at + prefix + strings.TrimPrefix(ref, at)
			default:
				s[name] = withDefinitionPrefix(value, prefix)
			}
		}
	}
	return schema
}
