package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/decimal"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/parser"
)

// mirroredParam is an argument of a tool that a header repeats.
type mirroredParam struct {
	header string // as net/http writes its name
	path   []string
	kind   string // string, integer or boolean
}

// mirroredParams reads them from a tool's schema. It returns none if one breaks the rules of
// the protocol, by which clients drop the tool.
func mirroredParams(schema []byte) []mirroredParam {
	if !bytes.Contains(schema, []byte(wire.SchemaHeader)) {
		return nil
	}
	var list []mirroredParam
	seen := map[string]bool{}
	root, _ := parser.Decode(schema).(map[string]any)
	if !collectMirrored(root, nil, seen, &list) {
		return nil
	}
	return list
}

func collectMirrored(schema map[string]any, path []string, seen map[string]bool, into *[]mirroredParam) bool {
	properties, _ := schema["properties"].(map[string]any)
	for name, v := range properties {
		property, _ := v.(map[string]any)
		at := append(path[:len(path):len(path)], name)
		if text, has := property[wire.SchemaHeader]; has {
			header, kind := http.CanonicalHeaderKey(wire.HeaderParam+stringOf(text)), stringOf(property["type"])
			if !ascii.IsToken(stringOf(text)) || seen[header] || kind != "string" && kind != "integer" && kind != "boolean" {
				return false
			}
			seen[header] = true
			*into = append(*into, mirroredParam{header, at, kind})
		}
		if !collectMirrored(property, at, seen, into) {
			return false
		}
	}
	return true
}

// checkMirrored compares headers with the arguments that they repeat. The kernel refuses
// arguments that cannot be read or are of another type.
func checkMirrored(schema, arguments []byte, h http.Header, depth int) *rpcError {
	list := mirroredParams(schema)
	if len(list) == 0 {
		return nil
	}
	value, err := parser.ReadValue(arguments, depth)
	if err != nil {
		return nil
	}
	for _, r := range list {
		value := value
		for _, name := range r.path {
			object, _ := value.(map[string]any)
			value = object[name]
		}
		if !r.matches(value, h[r.header]) {
			return headerMismatch(r.header)
		}
	}
	return nil
}

// matches reports whether the values of a header repeat an argument.
func (r mirroredParam) matches(value any, headers []string) bool {
	if value == nil {
		return len(headers) == 0
	}
	var text string
	if len(headers) == 1 {
		var ok bool
		if text, ok = wire.DecodeHeader(headers[0]); !ok {
			return false
		}
	}
	switch v := value.(type) {
	case string:
		return r.kind != "string" || len(headers) == 1 && text == v
	case bool:
		return r.kind != "boolean" || len(headers) == 1 && text == strconv.FormatBool(v)
	case json.Number:
		return r.kind != "integer" || len(headers) == 1 && equalNumber(text, v)
	}
	return true
}

// equalNumber reports whether two numbers have the same value, however they are written.
func equalNumber(text string, v json.Number) bool {
	other, err := parser.ReadValue([]byte(text), 1)
	n, ok := other.(json.Number)
	if err != nil || !ok {
		return false
	}
	a, okA := decimal.Parse(n.String())
	b, okB := decimal.Parse(v.String())
	return okA && okB && a == b
}
