package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/mcp/wire"
	"github.com/callgate/callgate/parser"
)

// paramArguments is the parameter of a call with the arguments of its tool.
const paramArguments = "arguments"

const (
	// maxDepth bounds how deep a message may nest beside the arguments of a call.
	maxDepth = 64
	// maxID bounds the id of a request.
	maxID = 1024
)

// message is a request, a notification or a response, as it was read.
type message struct {
	id     any // a string, or a json.Number with its digits; nil: a notification
	method string
	params map[string]any
	// arguments are the bytes of params.arguments, which were not read yet; nil if there
	// are none.
	arguments []byte
	// isResponse says that the message is one, and result are the bytes of its result,
	// which were read strictly; nil where it has an error instead.
	isResponse bool
	result     []byte
	// inputResponses are the bytes of params.inputResponses of a call, which were read
	// strictly; nil if there are none.
	inputResponses []byte
}

func (m *message) isNotification() bool { return m.id == nil }

// meta returns the member _meta of the request.
func (m *message) meta() map[string]any {
	meta, _ := m.params["_meta"].(map[string]any)
	return meta
}

// checkParams returns the fault of a request with parameters beside these and _meta.
func (m *message) checkParams(known ...string) *rpcError {
	for name := range m.params {
		if name != "_meta" && !slices.Contains(known, name) {
			return newError(wire.CodeParams, "There is an unknown parameter %s.", parser.Quote(name))
		}
	}
	return nil
}

// readMessage reads one message strictly, except for the arguments of a call, which the
// kernel judges. Beside a fault, it returns the message as far as it was read.
func readMessage(body []byte) (*message, *rpcError) {
	m := &message{}
	from, to := parser.Span(body, "params", paramArguments)
	rest := body
	if from < to {
		m.arguments = body[from:to:to]
		rest = append(append(append(make([]byte, 0, len(body)), body[:from]...), "{}"...), body[to:]...)
	}
	value, err := parser.ReadValue(rest, maxDepth)
	if err != nil {
		return m, newError(wire.CodeParse, "The body is not a message: %v.", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return m, newError(wire.CodeRequest, "The body must be one JSON-RPC message; batches are not taken.")
	}
	if f := m.readMembers(object); f != nil {
		return m, f
	}
	if m.isResponse {
		return m, m.readResult(body)
	}
	if _, has := m.params[wire.ParamResponses]; has && m.method == wire.MethodCall {
		from, to := parser.Span(rest, "params", wire.ParamResponses)
		m.inputResponses = rest[from:to:to]
	}
	if m.arguments != nil && (m.method != wire.MethodCall || m.isNotification()) {
		// The kernel does not read them.
		if _, err := parser.ReadValue(m.arguments, maxDepth); err != nil {
			return m, newError(wire.CodeParse, "The body is not a message: %v.", err)
		}
	}
	return m, nil
}

// readMembers reads the members of a message.
func (m *message) readMembers(object map[string]any) *rpcError {
	m.isResponse = isResponse(object)
	id, has := object["id"]
	if has {
		if !validID(id) {
			return newError(wire.CodeRequest, "\"id\" must be a string or a whole number, of at most %d bytes.", maxID)
		}
		m.id = id
	}
	if object["jsonrpc"] != "2.0" {
		return newError(wire.CodeRequest, "\"jsonrpc\" must be \"2.0\".")
	}
	for name, value := range object {
		switch name {
		case "jsonrpc", "id", "result", "error":
		case "method":
			m.method, _ = value.(string)
		case "params":
			params, ok := value.(map[string]any)
			if !ok {
				return newError(wire.CodeRequest, "\"params\" must be an object.")
			}
			m.params = params
		default:
			return newError(wire.CodeRequest, "There is an unknown member %s.", parser.Quote(name))
		}
	}
	if m.isResponse {
		return m.checkResponse(object)
	}
	if m.method == "" {
		return newError(wire.CodeRequest, "\"method\" must be the name of a method.")
	}
	return nil
}

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
			return "", newError(wire.CodeRequest, "The header %s says another key than %s.", server.HeaderKey, metaIdempotencyKey)
		}
		key, has = values[0], true
	}
	if has && (key == "" || len(key) > maxIdempotencyKey || !ascii.IsVisible(key)) {
		return "", newError(wire.CodeRequest, "An idempotency key must be 1 to %d printable ASCII characters without spaces.", maxIdempotencyKey)
	}
	return key, nil
}

// isResponse reports whether the members of a message are those of a response.
func isResponse(object map[string]any) bool {
	_, result := object["result"]
	_, failed := object["error"]
	return result || failed
}

// checkResponse checks the members that only a response has.
func (m *message) checkResponse(object map[string]any) *rpcError {
	result, has := object["result"]
	reason, failed := object["error"]
	_, method := object["method"]
	_, params := object["params"]
	if has == failed || method || params || m.id == nil {
		return newError(wire.CodeRequest, "A response has an \"id\", and either a \"result\" or an \"error\".")
	}
	if failed && !validError(reason) {
		return newError(wire.CodeRequest, "\"error\" must be an object with a whole number \"code\" and a string \"message\".")
	}
	if _, ok := result.(map[string]any); has && !ok {
		return newError(wire.CodeRequest, "\"result\" must be an object.")
	}
	return nil
}

// readResult copies the bytes of a response's result, if it has one.
func (m *message) readResult(body []byte) *rpcError {
	from, to := parser.Span(body, "result")
	if to-from > maxResponsesBytes {
		return newError(wire.CodeRequest, "\"result\" must be at most %d bytes long.", maxResponsesBytes)
	}
	if from < to {
		m.result = bytes.Clone(body[from:to]) // it outlives the body
	}
	return nil
}

func validError(v any) bool {
	members, _ := v.(map[string]any)
	code, ok := members["code"].(json.Number)
	if _, says := members["message"].(string); !ok || !says || strings.ContainsAny(code.String(), ".eE") {
		return false
	}
	for name := range members {
		if name != "code" && name != "message" && name != "data" {
			return false
		}
	}
	return true
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
