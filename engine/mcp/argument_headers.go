package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/internal/refuse"
)

// maxParams bounds the values of arguments in the headers of one request, in bytes.
const maxParams = 8 << 10

// headerBinding is an argument that a header repeats.
type headerBinding struct {
	path   []string
	header string
}

// readHeaderBindings reads the bindings of an input schema. The error, for the operator, says
// which rule the schema breaks; it holds nothing of the schema.
func readHeaderBindings(schema json.RawMessage) ([]headerBinding, error) {
	w := &schemaWalk{}
	w.properties(schema, nil)
	if w.err != nil {
		return nil, w.err
	}
	if w.countKeyword(schema) != len(w.found) {
		return nil, refuse.Reason(wire.SchemaHeader + " stands where no argument can be found by it")
	}
	return w.found, nil
}

type schemaWalk struct {
	found []headerBinding
	err   error
}

// properties reads the properties of a schema, and of theirs.
func (w *schemaWalk) properties(schema json.RawMessage, path []string) {
	members, _ := object(schema)
	properties, _ := object(members["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, ok := object(properties[name])
		if !ok {
			continue
		}
		here := append(slices.Clone(path), name)
		if mark, marked := property[wire.SchemaHeader]; marked {
			w.bind(mark, property["type"], here)
		}
		w.properties(properties[name], here)
	}
}

func (w *schemaWalk) bind(mark, kind json.RawMessage, path []string) {
	var header string
	switch {
	case !optionalString(mark, &header) || !ascii.IsToken(header):
		w.err = refuse.Reason(wire.SchemaHeader + " is not the name of a header")
	case !isString(kind, "string") && !isString(kind, "integer") && !isString(kind, "boolean"):
		w.err = refuse.Reason(wire.SchemaHeader + " stands beside a type that is not string, integer or boolean")
	case slices.ContainsFunc(w.found, func(b headerBinding) bool { return strings.EqualFold(b.header, header) }):
		w.err = refuse.Reason(wire.SchemaHeader + " names the same header twice")
	default:
		w.found = append(w.found, headerBinding{path, header})
	}
}

// countKeyword counts the keyword at every place of a schema where a schema can stand.
func (w *schemaWalk) countKeyword(schema json.RawMessage) int {
	if elements, ok := array(schema); ok {
		n := 0
		for _, e := range elements {
			n += w.countKeyword(e)
		}
		return n
	}
	members, _ := object(schema)
	n := 0
	for name, value := range members {
		switch name {
		case wire.SchemaHeader:
			n++
		case "enum", "const", "default", "examples": // values, not schemas
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			byName, _ := object(value) // names of the schema's own
			for _, s := range byName {
				n += w.countKeyword(s)
			}
		default:
			n += w.countKeyword(value)
		}
	}
	return n
}

// bindHeaders returns the headers that repeat arguments of a call.
func bindHeaders(all []headerBinding, arguments json.RawMessage) (map[string]string, error) {
	headers, size := map[string]string{}, 0
	for _, b := range all {
		value, ok := argumentHeader(arguments, b.path)
		if !ok {
			continue
		}
		headers[wire.HeaderParam+b.header] = value
		if size += len(value); size > maxParams {
			return nil, fmt.Errorf("the arguments are too long for the headers of a request")
		}
	}
	return headers, nil
}

// argumentHeader finds an argument and writes it as the value of a header. An argument that
// is absent, null or of another type has no header.
func argumentHeader(arguments json.RawMessage, path []string) (string, bool) {
	value := arguments
	for _, name := range path {
		members, _ := object(value)
		if value = members[name]; value == nil {
			return "", false
		}
	}
	var s string
	switch {
	case value[0] == '"' && optionalString(value, &s):
		return wire.EncodeHeader(s), true
	case string(value) == "true", string(value) == "false":
		return string(value), true
	case isNumber(value) && len(value) <= maxDigits:
		// An exponent of two digits keeps the number short.
		if e := strings.IndexAny(string(value), "eE"); e < 0 || len(value)-e <= 4 {
			if r, ok := new(big.Rat).SetString(string(value)); ok && r.IsInt() {
				return r.Num().String(), true
			}
		}
	}
	return "", false
}
