package mcp

import (
	"fmt"
	"net/http"

	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/refusal"
)

// rpcError is the error that answers a message.
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

// jsonrpc is the fault as JSON-RPC has it.
func (f *rpcError) jsonrpc() *jsonrpc.Error {
	return &jsonrpc.Error{Code: f.code, Message: f.message, Data: f.data}
}

// refusalError is the fault of a request that was refused.
func refusalError(refused *refusal.Error) *rpcError {
	f := &rpcError{code: refused.Status(), message: refused.Message, data: refused, status: refused.Status(), refused: refused}
	switch refused.Code {
	case refusal.BadRequest:
		f.code = wire.CodeRequest
	case refusal.Internal:
		f.code = wire.CodeInternal
	}
	return f
}
