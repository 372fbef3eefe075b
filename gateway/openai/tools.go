package openai

import (
	"encoding/json"
	"strconv"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/wrapper"
)

// definitions are the tools as a request has them.
func definitions(tools []gateway.Tool) ([]byte, error) {
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

// unknownTool is the failure for a tool of the request that is not in the registry.
func (r *run) unknownTool(i int) error {
	return bad("tools."+strconv.Itoa(i)+".function.name",
		"The tool %s is not in the registry. Put the request into FILE, and import its tools with: callgate tools import openai FILE", parser.Quote(r.request.tools[i]))
}
