package responses

import (
	"encoding/json"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/clienttools"
	"github.com/callgate/callgate/internal/rawjson"
)

// Types of tools that the client runs. The names of all but functions and custom tools are
// fixed: a registry has them under these names.
const (
	kindFunction = "function"
	kindCustom   = "custom"
)

// fixedName is the name in the registry of a tool without a name of its own (RS-12), by its type; empty: it has one.
func fixedName(kind string) string {
	if kind == "computer_use_preview" {
		kind = "computer"
	}
	if of := rows[kind+"_call"]; of != nil {
		return of.tool
	}
	return ""
}

// definition is one tool of a request.
type definition struct {
	kind string // its type; of a hosted tool too
	// wire is the name of a tool that the client runs, in OpenAI's alphabet: namespace_name of
	// one in a namespace, whose name in the registry is namespace.name. Empty: the provider runs
	// it, or it is a namespace.
	wire, name string
	raw        []byte
	nested     []definition // of a namespace
	param      string       // its place in the request
	object     rawjson.Object
}

// forRegistry is a tool that the client runs, as the request defines it.
func (def *definition) forRegistry() turns.RequestTool {
	t := turns.RequestTool{Wire: def.wire, Name: def.name, Param: def.param}
	t.Description, _ = rawjson.String(def.object.Get("description"))
	if def.kind == kindFunction {
		t.Param += ".parameters"
		t.Schema = def.object.Get("parameters")
	}
	return t
}

// fixedSchema is the schema of the arguments of a tool whose definition states none, by its type, for
// requests whose tools need not be in the registry (tools: request).
func fixedSchema(kind string) json.RawMessage {
	if kind == kindCustom {
		return clienttools.Custom
	}
	known, _ := clienttools.Responses(kind)
	return known.Schema
}
