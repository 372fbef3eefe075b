package mcp

import (
	"net/http"

	"github.com/callgate/callgate/internal/mcp/wire"
)

func headerMismatch(header string) *rpcError {
	return newError(wire.CodeHeader, "The header %s must be there once, and say the same as the body.", header)
}

// singleHeader returns the value of a header that may occur once.
func singleHeader(h http.Header, name string) (string, *rpcError) {
	switch values := h[name]; len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	}
	return "", headerMismatch(name)
}

// requireHeader returns a fault if a header does not have the value that the body has.
func requireHeader(h http.Header, name, stated string) *rpcError {
	values := h[name]
	if len(values) != 1 {
		return headerMismatch(name)
	}
	if value, ok := wire.DecodeHeader(values[0]); !ok || value != stated {
		return headerMismatch(name)
	}
	return nil
}
