package mcp

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/callgate/callgate/mcp/wire"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// maxRequired bounds what a server says that it needs, and maxCapability one name of
// that, in bytes.
const (
	maxRequired   = 512
	maxCapability = 64
)

// isCapabilityObject tells whether JSON does nothing but name capabilities: they go to who
// asked, past all that a result is judged by.
func isCapabilityObject(b json.RawMessage) bool {
	members, ok := object(b)
	for name, value := range members {
		flag := string(value) == "true" || string(value) == "false"
		ok = ok && len(name) <= maxCapability && capabilityName.MatchString(name) && (flag || isCapabilityObject(value))
	}
	return ok
}

// capabilityName is the form of a capability's name.
var capabilityName = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)

// missingCapability is why a server refused a call: whoever asked may be told what it needs.
type missingCapability struct {
	cause    error
	required json.RawMessage
}

func (l missingCapability) Error() string { return l.cause.Error() }

func (l missingCapability) Unwrap() error { return l.cause }

// RequiredCapabilities is an object of what the server needs, by the names of the
// protocol.
func (l missingCapability) RequiredCapabilities() json.RawMessage { return l.required }

// rpcRefusal is an error of JSON-RPC that a server answered a call with.
func rpcRefusal(call tool.Call, f *rpcError) *refusal.Error {
	refused := toolFailure(call, f.message, fmt.Sprintf("the server refused the call with the JSON-RPC error %d", f.code))
	data, ok := object(f.data)
	required := data["requiredCapabilities"]
	if ok && f.code == wire.CodeCapability && len(required) <= maxRequired && isCapabilityObject(required) {
		return refused.WithCause(missingCapability{refused.Cause, required})
	}
	return refused
}
