package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/parser"
)

// paramArguments is the parameter of a call with the arguments of its tool.
const paramArguments = "arguments"

const (
	// maxDepth bounds how deep arguments may nest that are not those of a call.
	maxDepth = 64
	// maxID bounds a progress token.
	maxID = 1024
)

// message is a request, a notification or a response, as it was read. Its Unread are the bytes of
// params.arguments.
type message struct {
	*jsonrpc.Message
	params map[string]any
	// inputResponses are the bytes of params.inputResponses of a call, which were read
	// strictly; nil if there are none.
	inputResponses []byte
}

// meta returns the member _meta of the request.
func (m *message) meta() map[string]any {
	meta, _ := m.params["_meta"].(map[string]any)
	return meta
}

// checkParams returns the fault of a request with parameters beside these and _meta.
func (m *message) checkParams(known ...string) *rpcError {
	for name := range m.params {
		if name != "_meta" && !slices.Contains(known, name) {
			return newError(jsonrpc.CodeParams, "There is an unknown parameter %s.", parser.Quote(name))
		}
	}
	return nil
}

// unread is the path to the value of a message that the kernel judges, and nobody reads before.
var unread = []string{"params", paramArguments}

// readMessage reads one message strictly, except for the arguments of a call, which the
// kernel judges. Beside a fault, it returns the message as far as it was read.
func readMessage(body []byte) (*message, *rpcError) {
	return messageOf(jsonrpc.ReadExcept(body, unread...))
}

// messageOf reads the parts of a message of JSON-RPC, in which arguments were left out. Parameters that are null, arguments
// among them, are none.
func messageOf(read *jsonrpc.Message, fault *jsonrpc.Error) (*message, *rpcError) {
	m := &message{Message: read}
	switch {
	case fault != nil:
		return m, newError(fault.Code, "%s", fault.Message)
	case m.IsResponse():
		return m, m.checkResult()
	}
	m.params = parser.DecodeObject(read.Params)
	dropNulls(m.params)
	dropNulls(m.meta(), metaIdempotencyKey) // a null key is one that its sender has lost
	if string(m.Unread) == "null" {
		m.Unread = nil
	}
	if _, has := m.params[wire.ParamResponses]; has && m.Method == wire.MethodCall {
		from, to := parser.Span(read.Params, wire.ParamResponses)
		m.inputResponses = read.Params[from:to:to]
	}
	if m.Unread != nil && (m.Method != wire.MethodCall || m.IsNotification()) {
		// The kernel does not read them.
		if err := parser.CheckValue(m.Unread, maxDepth); err != nil {
			return m, newError(jsonrpc.CodeParse, "The body is not a message: %v.", err)
		}
	}
	return m, nil
}

// dropNulls removes members that are null, but for some: clients write so that there is none.
func dropNulls(members map[string]any, but ...string) {
	maps.DeleteFunc(members, func(name string, v any) bool { return v == nil && !slices.Contains(but, name) })
}

// validID reports whether a progress token is one, as an id is.
func validID(id any) bool {
	switch v := id.(type) {
	case string:
		return len(v) <= maxID
	case json.Number:
		return !strings.ContainsAny(v.String(), ".eE")
	}
	return false
}

// maxIdempotencyKey bounds an idempotency key.
const maxIdempotencyKey = 255

// idempotencyKey is the idempotency key of a call: a member of its _meta, or a header.
func (m *message) idempotencyKey(h http.Header) (string, *rpcError) {
	stated, has := m.meta()[metaIdempotencyKey]
	key := stringOf(stated)
	if values := h[server.HeaderKey]; len(values) > 0 {
		if has && values[0] != key {
			return "", newError(jsonrpc.CodeRequest, "The header %s says another key than %s.", server.HeaderKey, metaIdempotencyKey)
		}
		key, has = values[0], true
	}
	if has && (key == "" || len(key) > maxIdempotencyKey || !ascii.IsVisible(key)) {
		return "", newError(jsonrpc.CodeRequest, "An idempotency key must be 1 to %d printable ASCII characters without spaces.",
			maxIdempotencyKey)
	}
	return key, nil
}

// checkResult bounds the result of a response, if it has one, and copies it: it outlives the body.
func (m *message) checkResult() *rpcError {
	switch {
	case m.Result == nil:
	case m.Result[0] != '{':
		return newError(jsonrpc.CodeRequest, "\"result\" must be an object.")
	case len(m.Result) > maxResponsesBytes:
		return newError(jsonrpc.CodeRequest, "\"result\" must be at most %d bytes long.", maxResponsesBytes)
	}
	m.Result = bytes.Clone(m.Result)
	return nil
}

// The members of _meta that are Callgate's own.
const (
	metaIdempotencyKey = "callgate/idempotencyKey" // of a call
	metaCallID         = "callgate/callId"         // of a result
)

// The bounds of a call's answers to its tool's questions.
const (
	maxState          = 256       // bytes
	maxResponses      = 64        // answers of one call
	maxResponsesBytes = 256 << 10 // of them together
)

func stringOf(v any) string {
	s, _ := v.(string)
	return s
}
