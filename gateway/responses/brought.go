package responses

import (
	"encoding/json"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
)

// fixedSchemas are the schemas of the arguments of tools whose definitions state none, by their
// types, for requests whose tools need not be in the registry (tools: request). They are those of
// the API's reference (RS-12).
var fixedSchemas = map[string]json.RawMessage{
	kindCustom: json.RawMessage(`{"type":"object","required":["input"],"properties":{"input":{"type":"string"}}}`),
	"shell": json.RawMessage(`{"type":"object","required":["commands"],"properties":{"commands":{"type":"array","items":{"type":"string"}},
		"timeout_ms":{"type":["integer","null"]},"max_output_length":{"type":["integer","null"]}}}`),
	"local_shell": json.RawMessage(`{"type":"object","required":["type","command"],
		"properties":{"type":{"const":"exec"},"command":{"type":"array","items":{"type":"string"}},
		"env":{"type":"object","additionalProperties":{"type":"string"}},"working_directory":{"type":["string","null"]},
		"timeout_ms":{"type":["integer","null"]},"user":{"type":["string","null"]}}}`),
	"apply_patch": json.RawMessage(`{"type":"object","required":["type","path"],
		"properties":{"type":{"enum":["create_file","update_file","delete_file"]},
		"path":{"type":"string"},"diff":{"type":"string"}}}`),
	"computer":             computerSchema,
	"computer_use_preview": computerSchema,
}

var computerSchema = json.RawMessage(`{"type":"object","properties":{"type":{"type":"string"},"x":{"type":"number"},"y":{"type":"number"},
	"button":{"type":"string"},
	"keys":{"type":["array","null"],"items":{"type":"string"}},"text":{"type":"string"},
	"scroll_x":{"type":"number"},"scroll_y":{"type":"number"},
	"path":{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{"x":{"type":"number"},"y":{"type":"number"}}}},
	"actions":{"type":"array","items":{"type":"object","additionalProperties":true}}}}`)

// forRegistry is a tool that the client runs, as the request defines it.
func (d *definition) forRegistry() turns.RequestTool {
	t := turns.RequestTool{Wire: d.wire, Name: d.name, Param: d.param}
	t.Description, _ = rawjson.String(d.object.Get("description"))
	if d.kind == kindFunction {
		t.Param += ".parameters"
		t.Schema = d.object.Get("parameters")
	}
	return t
}

// bringTools takes the definitions of the request's tools. Where a tool that is not a function is
// in the registry, its definition states no schema that could differ.
func (r *run) bringTools() error {
	for i := range r.defined {
		t := &r.defined[i]
		if _, known := r.Admission.ToolName(t.Wire); !known && r.kinds[t.Wire] != kindFunction {
			t.Schema = fixedSchemas[r.kinds[t.Wire]]
		}
	}
	return r.BringTools(r.defined)
}
