package mcp

import (
	"fmt"
	"net/http"

	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/refusal"
)

// rpcError is the error that answers a message.
type rpcError struct {
	*jsonrpc.Error
	status  int            // HTTP
	refused *refusal.Error // the same, for the log
}

// newError is a fault of the message itself.
func newError(code int, format string, args ...any) *rpcError {
	refused := refusal.New(refusal.BadRequest, fmt.Sprintf(format, args...))
	return faultOf(code, http.StatusBadRequest, refused)
}

// faultOf is the fault of a refusal.
func faultOf(code, status int, refused *refusal.Error) *rpcError {
	return &rpcError{&jsonrpc.Error{Code: code, Message: refused.Message, Data: refused}, status, refused}
}

// withData returns the fault with other data.
func (f *rpcError) withData(data any) *rpcError {
	f.Data = data
	return f
}

// withStatus returns the fault with another HTTP status.
func (f *rpcError) withStatus(status int) *rpcError {
	f.status = status
	return f
}

// refusalError is the fault of a request that was refused.
func refusalError(refused *refusal.Error) *rpcError {
	f := faultOf(refused.Status(), refused.Status(), refused)
	switch refused.Code {
	case refusal.BadRequest:
		f.Code = jsonrpc.CodeRequest
	case refusal.Internal:
		f.Code = jsonrpc.CodeInternal
	}
	return f
}
