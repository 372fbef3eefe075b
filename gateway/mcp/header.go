package mcp

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// The headers of the protocol, as net/http writes their names.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
)

func headerMismatch(header string) *rpcError {
	return newError(codeHeader, "The header %s must be there once, and say the same as the body.", header)
}

// singleHeader returns the value of a header that stands at most once.
func singleHeader(h http.Header, name string) (string, *rpcError) {
	switch values := h[name]; len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	}
	return "", headerMismatch(name)
}

// requireHeader says where a header does not say what the body does.
func requireHeader(h http.Header, name, said string) *rpcError {
	values := h[name]
	if len(values) != 1 {
		return headerMismatch(name)
	}
	if value, ok := decodeHeader(values[0]); !ok || value != said {
		return headerMismatch(name)
	}
	return nil
}

// decodeHeader is what the value of a header says. One that no header can hold as it is
// stands in base64 between two marks; anything else is what it is.
func decodeHeader(value string) (string, bool) {
	const before, behind = "=?base64?", "?="
	inner, ok := strings.CutPrefix(value, before)
	if !ok {
		return value, true
	}
	if inner, ok = strings.CutSuffix(inner, behind); !ok {
		return value, true
	}
	b, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(b), err == nil
}
