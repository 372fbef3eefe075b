package mcp

import (
	"fmt"
	"net/http"

	"github.com/callgate/callgate/refusal"
)

// The codes of JSON-RPC and of the protocol. A refusal of the request that none of
// them is for has its HTTP status as its code: the protocol leaves those to the
// server.
const (
	codeParse      = -32700
	codeRequest    = -32600
	codeMethod     = -32601
	codeParams     = -32602
	codeInternal   = -32603
	codeHeader     = -32020 // the headers say something else than the body
	codeCapability = -32021 // the client lacks what the call needs
	codeVersion    = -32022
)

// rpcError is why a message has no result.
type rpcError struct {
	code    int
	message string
	data    any
	status  int            // HTTP
	refused *refusal.Error // the same, for the log
}

// newError is a fault of the message itself.
func newError(code int, format string, args ...any) *rpcError {
	refused := refusal.New(refusal.BadRequest, fmt.Sprintf(format, args...))
	return &rpcError{code: code, message: refused.Message, data: refused, status: http.StatusBadRequest, refused: refused}
}

// withData returns the fault with other data.
func (f *rpcError) withData(data any) *rpcError {
	f.data = data
	return f
}

// withStatus returns the fault with another HTTP status.
func (f *rpcError) withStatus(status int) *rpcError {
	f.status = status
	return f
}

// refusalError is the fault of a request that was refused.
func refusalError(refused *refusal.Error) *rpcError {
	f := &rpcError{code: refused.Status(), message: refused.Message, data: refused, status: refused.Status(), refused: refused}
	switch refused.Code {
	case refusal.BadRequest:
		f.code = codeRequest
	case refusal.Internal:
		f.code = codeInternal
	}
	return f
}
