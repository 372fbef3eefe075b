package responses

import (
	"encoding/json"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/clienttools"
	"github.com/callgate/callgate/internal/rawjson"
)

// fixedSchema is the schema of the arguments of a tool whose definition states none, by its type, for
// requests whose tools need not be in the registry (tools: request).
func fixedSchema(kind string) json.RawMessage {
	if kind == kindCustom {
		return clienttools.Custom
	}
	known, _ := clienttools.Responses(kind)
	return known.Schema
}

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
			t.Schema = fixedSchema(r.kinds[t.Wire])
		}
	}
	return r.BringTools(r.defined)
}
