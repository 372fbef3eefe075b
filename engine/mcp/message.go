package mcp

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/refuse"
)

const (
	maxDepth   = 512 // of a message
	maxIDBytes = 256 // of an id that a server chose
)

// message is a message of a server, read strictly. Its parts are the server's bytes.
type message struct {
	id        json.RawMessage // nil if it is absent or null
	method    string          // of a request or a notification
	hasMethod bool            // it is a request or a notification, and no response
	params    json.RawMessage
	result    json.RawMessage
	rpcError  *jsonrpc.Error // its Data are a json.RawMessage
}

// The faults of a message. Their texts hold nothing of the server's.
const (
	errNotJSON    refuse.Reason = "it sent something that is not strict JSON"
	errTooDeep    refuse.Reason = "it sent JSON that nests too deep"
	errNotMessage refuse.Reason = "it sent something that is not a message of JSON-RPC"
)

// readMessage reads one message, and nothing beside it.
func readMessage(b []byte) (*message, error) {
	if err := checkStrict(b); err != nil {
		return nil, err
	}
	members, ok := object(b)
	if !ok || !isString(members["jsonrpc"], "2.0") {
		return nil, errNotMessage
	}
	m := &message{id: nonNull(members["id"]), params: members["params"], result: members["result"]}
	if len(m.id) > maxIDBytes || m.id != nil && m.id[0] != '"' && !isNumber(m.id) {
		return nil, errNotMessage
	}
	method, asks := members["method"]
	failure, fails := members["error"]
	switch {
	case asks:
		m.hasMethod = true
		if fails || m.result != nil || json.Unmarshal(method, &m.method) != nil || method[0] != '"' {
			return nil, errNotMessage
		}
	case fails == (m.result != nil):
		return nil, errNotMessage
	case fails:
		if m.rpcError, ok = readRPCError(failure); !ok {
			return nil, errNotMessage
		}
	}
	return m, nil
}

func readRPCError(b json.RawMessage) (*jsonrpc.Error, bool) {
	members, ok := object(b)
	code, err := strconv.Atoi(string(members["code"]))
	f := &jsonrpc.Error{Code: code, Data: members["data"]}
	return f, ok && err == nil && optionalString(members["message"], &f.Message)
}

// answers reports whether a message is the response to the request with an id.
func (m *message) answers(id int64) bool {
	return !m.hasMethod && string(m.id) == strconv.FormatInt(id, 10)
}

// checkStrict returns an error unless the bytes are one JSON value in valid UTF-8, in which no
// object has a name twice.
func checkStrict(b []byte) error {
	switch err := rawjson.Check(b, maxDepth); {
	case err == nil:
		return nil
	case errors.Is(err, rawjson.ErrDepth):
		return errTooDeep
	}
	return errNotJSON
}

// object returns the members of an object that was read strictly, by their exact
// names.
func object(b json.RawMessage) (map[string]json.RawMessage, bool) { return rawjson.Map(b) }

// array returns the elements of an array that was read strictly.
func array(b json.RawMessage) (elements []json.RawMessage, ok bool) {
	list, ok := rawjson.Elements(b)
	if ok {
		for _, element := range list {
			elements = append(elements, element)
		}
	}
	return elements, ok
}

// optionalString reads a string that may be absent.
func optionalString(b json.RawMessage, into *string) bool {
	return b == nil || b[0] == '"' && json.Unmarshal(b, into) == nil
}

func isString(b json.RawMessage, want string) bool {
	var s string
	return b != nil && optionalString(b, &s) && s == want
}

// nonNull is a value, or nil where it is null.
func nonNull(b json.RawMessage) json.RawMessage {
	if string(b) == "null" {
		return nil
	}
	return b
}

func isNumber(b json.RawMessage) bool { return b[0] == '-' || b[0] >= '0' && b[0] <= '9' }
