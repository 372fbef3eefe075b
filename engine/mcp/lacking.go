package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
)

// codeCapability is the code of a server that needs something of its client which
// was not declared. Nothing is declared to servers here.
const codeCapability = -32021

// lacking is why a server refused a call: whoever asked may be told what it needs.
type lacking struct {
	cause    error
	required json.RawMessage
}

func (l lacking) Error() string { return l.cause.Error() }

func (l lacking) Unwrap() error { return l.cause }

// RequiredCapabilities is an object of what the server needs, by the names of the
// protocol.
func (l lacking) RequiredCapabilities() json.RawMessage { return l.required }

// refusedBy is an error of JSON-RPC that a server answered a call with.
func refusedBy(call engine.Call, f *failed) *refusal.Error {
	refused := said(call, f.message, fmt.Sprintf("the server refused the call with the JSON-RPC error %d", f.code))
	data, ok := object(f.data)
	if required := data["requiredCapabilities"]; ok && f.code == codeCapability && required != nil {
		return refused.WithCause(lacking{refused.Cause, required})
	}
	return refused
}
