package responses

import (
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
)

// Types of tools that the client runs. The names of all but functions and custom tools are
// fixed: a registry has them under these names.
const (
	kindFunction = "function"
	kindCustom   = "custom"
)

// fixedNames are the names in the registry of tools without a name of their own (RS-12), by
// their types.
var fixedNames = map[string]string{
	"shell": "shell", "local_shell": "local_shell", "apply_patch": "apply_patch", "computer": "computer", "computer_use_preview": "computer",
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
func (d *definition) forRegistry() turns.RequestTool {
	t := turns.RequestTool{Wire: d.wire, Name: d.name, Param: d.param}
	t.Description, _ = rawjson.String(d.object.Get("description"))
	if d.kind == kindFunction {
		t.Param += ".parameters"
		t.Schema = d.object.Get("parameters")
	}
	return t
}
