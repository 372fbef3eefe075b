package jsonrpc

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
)

// maxDepth bounds how deep a message may nest.
const maxDepth = 64

// Message is a request, a notification or a response. Its parts are the bytes that were read.
type Message struct {
	ID     ID // zero: a notification
	Method string
	// Params are the bytes of an object; nil if there are none.
	Params json.RawMessage
	// Unread are the bytes of the value that ReadExcept left out; nil if there is none.
	Unread json.RawMessage
	// Result are the bytes of any value; nil if the message is no response, or has an error.
	Result json.RawMessage
	Err    *Error // of a response; its Data are a json.RawMessage, or nil
	// State is the receiver's: Conn keeps it from Receive to Handle.
	State any

	response bool
}

// IsRequest reports whether the message must be answered.
func (m *Message) IsRequest() bool { return !m.response && !m.ID.IsZero() }

// IsNotification reports whether the message is one.
func (m *Message) IsNotification() bool { return !m.response && m.ID.IsZero() }

// IsResponse reports whether the message has a result or an error, also if that is a fault. Such a
// message is never answered: two peers would answer each other without end.
func (m *Message) IsResponse() bool { return m.response }

// Read reads one message. Beside an error it returns the message as far as it was read. The
// message refers to the bytes of the line.
func Read(line []byte) (*Message, *Error) { return ReadExcept(line) }

// ReadExcept is Read, except that the value at the end of a path of names is not read: only its
// end is looked for. The message has {} in its place. Without names it is Read.
func ReadExcept(line []byte, path ...string) (*Message, *Error) {
	m := &Message{}
	if len(path) > 0 {
		if from, to := parser.Span(line, path...); from < to {
			m.Unread = line[from:to:to]
			line = append(append(append(make([]byte, 0, len(line)), line[:from]...), "{}"...), line[to:]...)
		}
	}
	if err := parser.CheckValue(line, maxDepth); err != nil {
		return m, Errorf(CodeParse, "This is not a message: %v.", err)
	}
	var all members
	if rawjson.Each(line, func(name, value []byte) error {
		all.set(string(name), value)
		return nil
	}) != nil { // it was checked, so that it is JSON
		return m, Errorf(CodeRequest, "There must be one JSON-RPC message; batches are not taken.")
	}
	return m, m.read(&all)
}

// members are the values of the members that a message may have; nil: it does not have it.
type members struct {
	version, id, method, params, result, fault json.RawMessage
	// unknown is the name of another member.
	unknown    string
	hasUnknown bool
}

func (a *members) set(name string, value json.RawMessage) {
	switch name {
	case "jsonrpc":
		a.version = value
	case "id":
		a.id = value
	case "method":
		a.method = value
	case "params":
		if !rawjson.IsNull(value) { // as some peers write that there are none
			a.params = value
		}
	case "result":
		a.result = value
	case "error":
		a.fault = value
	default:
		a.unknown, a.hasUnknown = name, true
	}
}

// read reads the members of a message.
func (m *Message) read(all *members) *Error {
	m.response = all.result != nil || all.fault != nil
	if all.id != nil {
		var ok bool
		if m.ID, ok = ParseID(all.id); !ok {
			return Errorf(CodeRequest, "\"id\" must be a string or a whole number, of at most %d bytes.", maxID)
		}
	}
	if text, _ := rawjson.String(all.version); text != "2.0" {
		return Errorf(CodeRequest, "\"jsonrpc\" must be \"2.0\".")
	}
	if all.hasUnknown {
		return Errorf(CodeRequest, "There is an unknown member %s.", parser.Quote(all.unknown))
	}
	if m.response {
		return m.readResponse(all)
	}
	if all.params != nil && all.params[0] != '{' {
		return Errorf(CodeRequest, "\"params\" must be an object.")
	}
	m.Params = all.params
	if m.Method, _ = rawjson.String(all.method); m.Method == "" {
		return Errorf(CodeRequest, "\"method\" must be the name of a method.")
	}
	return nil
}

// readResponse reads the members that only a response has.
func (m *Message) readResponse(all *members) *Error {
	if all.fault != nil {
		m.Err = readError(all.fault)
	}
	if (all.result == nil) == (all.fault == nil) || all.method != nil || all.params != nil || m.ID.IsZero() {
		return Errorf(CodeRequest, "A response has an \"id\", and either a \"result\" or an \"error\".")
	}
	if all.fault != nil && m.Err == nil {
		return Errorf(CodeRequest, "\"error\" must be an object with a whole number \"code\" and a string \"message\".")
	}
	m.Result = all.result
	return nil
}

var errNoError = errors.New("not an error of JSON-RPC")

// readError reads the error of a response; nil if it is none.
func readError(checked json.RawMessage) *Error {
	e := &Error{}
	var code, message bool
	err := rawjson.Each(checked, func(name, value []byte) (err error) {
		switch string(name) {
		case "code":
			e.Code, err = strconv.Atoi(string(value))
			code = true
		case "message":
			e.Message, message = rawjson.String(value)
		case "data":
			e.Data = json.RawMessage(value)
		default:
			err = errNoError
		}
		return err
	})
	if err != nil || !code || !message {
		return nil //nolint:nilerr // that it is none is the answer
	}
	return e
}

// readBeginning reads of a message that is too long to be read its id, and whether it is a response,
// as far as its beginning says so. As a rule peers write both before anything long.
func readBeginning(line []byte) *Message {
	m := &Message{}
	r := rawjson.NewReader(line)
	if r.Kind() != '{' {
		return m
	}
	// It ends by an error: that of the end of line.
	_ = r.Object(func(name []byte) error {
		isID := string(name) == "id"
		m.response = m.response || string(name) == "result" || string(name) == "error"
		value, err := r.Value()
		if isID && err == nil {
			m.ID, _ = ParseID(value)
		}
		return err
	})
	return m
}
