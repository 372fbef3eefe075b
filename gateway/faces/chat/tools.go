package chat

import (
	"encoding/json"
	"strconv"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/wrapper"
)

// definitions are the tools as a request has them. Most are written without the reflection of
// encoding/json, which costs more than the rest of the request; the bytes are the same.
func definitions(tools []gateway.Tool) ([]byte, error) {
	size := len("[]")
	for i := range tools {
		t := &tools[i]
		if !isPlainText(t.Wire) || !isPlainText(t.Description) || !isCompact(t.InputSchema) {
			return marshalDefinitions(tools)
		}
		size += len(t.Wire) + len(t.Description) + len(t.InputSchema) + len(definitionFrame)
	}
	b := append(make([]byte, 0, size), '[')
	for i := range tools {
		t := &tools[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, `{"type":"function","function":{"name":"`...), t.Wire...)
		if t.Description != "" {
			b = append(append(b, `","description":"`...), t.Description...)
		}
		b = append(append(append(b, `","parameters":`...), t.InputSchema...), "}}"...)
	}
	return wrapper.Escape(append(b, ']')), nil
}

// definitionFrame is what stands around the parts of a definition.
const definitionFrame = `{"type":"function","function":{"name":"","description":"","parameters":}},`

func marshalDefinitions(tools []gateway.Tool) ([]byte, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	type definition struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	list := make([]definition, len(tools))
	for i, t := range tools {
		list[i] = definition{"function", function{t.Wire, t.Description, t.InputSchema}}
	}
	return wrapper.Marshal(list)
}

// isPlainText reports whether a text stands in JSON as it is: printable ASCII without quotes and
// backslashes.
func isPlainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// isCompact reports whether a valid schema has no white space between its tokens.
func isCompact(schema []byte) bool {
	for i := 0; i < len(schema); i++ {
		switch schema[i] {
		case '"':
			i = parser.StringEnd(schema, i) - 1
		case ' ', '\t', '\r', '\n':
			return false
		}
	}
	return len(schema) > 0
}

// unknownTool is the failure for a tool of the request that is not in the registry.
func (r *run) unknownTool(i int) error {
	return r.UnknownTool("tools."+strconv.Itoa(i)+".function.name", r.request.tools[i], "openai")
}
