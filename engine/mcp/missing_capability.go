package mcp

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// maxRequired bounds the capabilities that a server says it needs, and maxCapability the name
// of one, in bytes.
const (
	maxRequired   = 512
	maxCapability = 64
)

// isCapabilityObject reports whether JSON holds nothing but names of capabilities,
// because they are passed to the caller without being validated as a result.
func isCapabilityObject(b json.RawMessage) bool {
	members, ok := rawjson.Map(b)
	for name, value := range members {
		flag := string(value) == "true" || string(value) == "false"
		ok = ok && len(name) <= maxCapability && capabilityName.MatchString(name) && (flag || isCapabilityObject(value))
	}
	return ok
}

// capabilityName is the form of a capability's name.
var capabilityName = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)

// missingCapability is why a server refused a call: the caller may be told which
// capabilities it needs.
type missingCapability struct {
	cause    error
	required json.RawMessage
}

func (l missingCapability) Error() string { return l.cause.Error() }

func (l missingCapability) Unwrap() error { return l.cause }

// RequiredCapabilities is an object of the capabilities that the server needs, by their names
// in the protocol.
func (l missingCapability) RequiredCapabilities() json.RawMessage { return l.required }

// rpcRefusal is the refusal of a call that got a JSON-RPC error.
func rpcRefusal(call tool.Call, f *jsonrpc.Error) *refusal.Error {
	refused := toolFailure(call, f.Message, fmt.Sprintf("the server refused the call with the JSON-RPC error %d", f.Code))
	sent, _ := f.Data.(json.RawMessage)
	data, ok := object(sent)
	required := data["requiredCapabilities"]
	if ok && f.Code == wire.CodeCapability && len(required) <= maxRequired && isCapabilityObject(required) {
		return refused.WithCause(missingCapability{refused.Cause, required})
	}
	return refused
}
