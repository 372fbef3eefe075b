// Package jsonrpc speaks JSON-RPC 2.0 with a peer that nobody trusts, one message a line.
//
// Read reads one message strictly: valid UTF-8, no name twice in an object at any depth, no
// unknown member, bounded depth, no batch. Lines reads bounded lines and Writer writes whole
// ones. Conn joins them to one peer with two id spaces: the ids of its requests are the peer's,
// those of ours are numbers that Conn counts up. It answers each request of the peer exactly
// once, and hangs on no peer, whether that one never reads, never answers or dies.
package jsonrpc

import "fmt"

// The codes of JSON-RPC.
const (
	CodeParse    = -32700 // not strict JSON
	CodeRequest  = -32600 // no message, or not one that may come now
	CodeMethod   = -32601
	CodeParams   = -32602
	CodeInternal = -32603
)

// Error is the error that answers a request.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	// Data is nil, a value that can be marshalled, or, in an error of the peer, the bytes
	// that it sent as a json.RawMessage.
	Data any `json:"data,omitempty"`
}

// Errorf returns an error without data.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error is for logs. It quotes no text of the peer.
func (e *Error) Error() string { return fmt.Sprintf("error %d of JSON-RPC", e.Code) }
