package mcp

import (
	"encoding/json"
	"strings"

	"github.com/callgate/callgate/mcp/wire"
	"github.com/callgate/callgate/parser"
)

// The parameters of a call whose bytes are looked at.
const (
	paramArguments = "arguments"
)

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
	// arguments are the bytes of params.arguments, which nobody has judged yet; nil
	// where there are none.
	arguments []byte
	// isResponse says that the message is one, and result are the bytes of its result,
	// which were read strictly; nil where it has an error instead.
	isResponse bool
	result     []byte
	// inputResponses are the bytes of params.inputResponses of a call, which were read
	// strictly; nil where there are none.
	inputResponses []byte
}

func (m *message) isNotification() bool { return m.id == nil }

// meta is what the request says of itself.
func (m *message) meta() map[string]any {
	meta, _ := m.params["_meta"].(map[string]any)
	return meta
}

// readMessage reads one message strictly, but for the arguments of a call: those are the
// kernel's to judge. The message is there beside a fault as far as it was read.
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
		// Nobody else reads them.
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
