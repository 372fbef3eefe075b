package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
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

var byteOrderMark = []byte("\xef\xbb\xbf")

// readMessage reads one message, and nothing beside it but a byte order mark before it.
func readMessage(b []byte) (*message, error) {
	b = bytes.TrimPrefix(b, byteOrderMark)
	if err := checkStrict(b); err != nil {
		return nil, err
	}
	members, ok := object(b)
	if !ok || !isString(members["jsonrpc"], "2.0") {
		return nil, errNotMessage
	}
	m := &message{id: members["id"], params: members["params"], result: members["result"]}
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
	case fails && m.result != nil:
		return nil, errNotMessage
	case fails:
		if m.rpcError, ok = readRPCError(failure); !ok {
			return nil, errNotMessage
		}
	case m.result == nil:
		// A result may be null, which answers a ping as well as any other does.
		if m.result = rawjson.MemberOf(b, "result"); m.result == nil {
			return nil, errNotMessage
		}
	}
	return m, nil
}

// readRPCError reads an error. That there is one says that the request has failed: its code and its
// words are read where they can be.
func readRPCError(b json.RawMessage) (*jsonrpc.Error, bool) {
	f := &jsonrpc.Error{}
	members, ok := object(b)
	f.Data = members["data"]
	if code, whole := wholeNumber(members["code"]); whole {
		f.Code = int(code)
	}
	// A text of another type is no text.
	_ = optionalString(members["message"], &f.Message)
	return f, ok || b[0] == '"' && optionalString(b, &f.Message)
}

// answers reports whether a message is the response to the request with an id.
func (m *message) answers(id int64) bool {
	n, ok := requestID(m.id)
	return !m.hasMethod && ok && n == id
}

// requestID reads the id of a request of ours, which servers repeat as a number or as text.
func requestID(b json.RawMessage) (int64, bool) {
	var text string
	if len(b) > 0 && b[0] == '"' && optionalString(b, &text) {
		id, err := strconv.ParseInt(text, 10, 64)
		return id, err == nil && strconv.FormatInt(id, 10) == text
	}
	return wholeNumber(b)
}

// maxExact bounds the whole numbers that every reader of JSON reads alike.
const maxExact = 1 << 53

// wholeNumber reads a number that is a whole one, however it is written.
func wholeNumber(b json.RawMessage) (int64, bool) {
	n, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !isNumber(b) || n != math.Trunc(n) || math.Abs(n) > maxExact {
		return 0, false
	}
	return int64(n), true
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
// names. One that is null is absent.
func object(b json.RawMessage) (map[string]json.RawMessage, bool) {
	members, ok := rawjson.Map(b)
	maps.DeleteFunc(members, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	return members, ok
}

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

func isNumber(b json.RawMessage) bool { return b[0] == '-' || b[0] >= '0' && b[0] <= '9' }
