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

func mismatch(header string) *fault {
	return faulty(codeHeader, "The header %s must be there once, and say the same as the body.", header)
}

// single returns the value of a header that stands at most once.
func single(h http.Header, name string) (string, *fault) {
	switch values := h[name]; len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	}
	return "", mismatch(name)
}

// same says where a header does not say what the body does.
func same(h http.Header, name, said string) *fault {
	values := h[name]
	if len(values) != 1 {
		return mismatch(name)
	}
	if value, ok := decoded(values[0]); !ok || value != said {
		return mismatch(name)
	}
	return nil
}

// decoded is what the value of a header says. One that no header can hold as it is
// stands in base64 between two marks; anything else is what it is.
func decoded(value string) (string, bool) {
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
