package responses

import (
	"encoding/json"

	"github.com/callgate/callgate/internal/clienttools"
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
