package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/callgate/callgate/engine"
)

// maxParams bounds the values of arguments in the headers of one request, in bytes.
const maxParams = 8 << 10

// mirror sets the headers that repeat what a request of a modern server says.
func mirror(header http.Header, request *jsonrpc.Request, params map[string]string) {
	members, _ := object(request.Params)
	meta, _ := object(members["_meta"])
	var version string
	if !optionalString(meta[metaVersion], &version) || version == "" {
		return
	}
	header.Set(headerVersion, version)
	header.Set(headerMethod, request.Method)
	var name string
	if request.Method == methodCall && optionalString(members["name"], &name) {
		header.Set(headerName, fieldValue(name))
	}
	for param, value := range params {
		header.Set(headerParam+param, value)
	}
}

// The marks of a value that is not what it looks like.
const (
	base64Mark = "=?base64?"
	base64End  = "?="
)

// fieldValue writes a text as the value of a header, which holds visible ASCII and
// spaces within.
func fieldValue(s string) string {
	plain := strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) < 0 &&
		strings.Trim(s, " ") == s && (!strings.HasPrefix(s, base64Mark) || !strings.HasSuffix(s, base64End))
	if plain {
		return s
	}
	return base64Mark + base64.StdEncoding.EncodeToString([]byte(s)) + base64End
}

// binding is an argument that goes into a header, too.
type binding struct {
	path   []string
	header string
}

// headerKey is the keyword by which a schema says so.
const headerKey = "x-mcp-header"

// bindings reads those of an input schema. An error is a schema that breaks their
// rules, for an operator; it holds nothing of the schema.
func bindings(schema json.RawMessage) ([]binding, error) {
	w := &walk{}
	w.properties(schema, nil)
	if w.err != nil {
		return nil, w.err
	}
	if w.marks(schema) != len(w.found) {
		return nil, engine.Reason(headerKey + " stands where no argument can be found by it")
	}
	return w.found, nil
}

type walk struct {
	found []binding
	err   error
}

// properties reads the properties of a schema, and of theirs.
func (w *walk) properties(schema json.RawMessage, path []string) {
	members, _ := object(schema)
	properties, _ := object(members["properties"])
	for _, name := range sortedNames(properties) {
		property, ok := object(properties[name])
		if !ok {
			continue
		}
		here := append(slices.Clone(path), name)
		if mark, marked := property[headerKey]; marked {
			w.bind(mark, property["type"], here)
		}
		w.properties(properties[name], here)
	}
}

func (w *walk) bind(mark, kind json.RawMessage, path []string) {
	var header string
	switch {
	case !optionalString(mark, &header) || !token(header):
		w.err = engine.Reason(headerKey + " is not the name of a header")
	case !isString(kind, "string") && !isString(kind, "integer") && !isString(kind, "boolean"):
		w.err = engine.Reason(headerKey + " stands beside a type that is not string, integer or boolean")
	case slices.ContainsFunc(w.found, func(b binding) bool { return strings.EqualFold(b.header, header) }):
		w.err = engine.Reason(headerKey + " names the same header twice")
	default:
		w.found = append(w.found, binding{path, header})
	}
}

// marks counts the marks anywhere in a schema where a schema can stand.
func (w *walk) marks(schema json.RawMessage) int {
	if elements, ok := array(schema); ok {
		n := 0
		for _, e := range elements {
			n += w.marks(e)
		}
		return n
	}
	members, _ := object(schema)
	n := 0
	for name, value := range members {
		switch name {
		case headerKey:
			n++
		case "enum", "const", "default", "examples": // values, not schemas
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			named, _ := object(value) // names of the schema's own
			for _, s := range named {
				n += w.marks(s)
			}
		default:
			n += w.marks(value)
		}
	}
	return n
}

func sortedNames(members map[string]json.RawMessage) []string {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// token tells whether a text can be part of a header's name.
func token(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	}) < 0
}

// paramsOf are the headers of a call.
func paramsOf(all []binding, arguments json.RawMessage) (map[string]string, error) {
	headers, size := map[string]string{}, 0
	for _, b := range all {
		value, ok := lookup(arguments, b.path)
		if !ok {
			continue
		}
		headers[b.header] = value
		if size += len(value); size > maxParams {
			return nil, fmt.Errorf("the arguments are too long for the headers of a request")
		}
	}
	return headers, nil
}

// lookup finds an argument and writes it as a header's value. There is none for
// what is absent, null or of another type.
func lookup(arguments json.RawMessage, path []string) (string, bool) {
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
		return fieldValue(s), true
	case string(value) == "true", string(value) == "false":
		return string(value), true
	case number(value) && len(value) <= maxDigits:
		// An exponent of two digits keeps the number short.
		if e := strings.IndexAny(string(value), "eE"); e < 0 || len(value)-e <= 4 {
			if r, ok := new(big.Rat).SetString(string(value)); ok && r.IsInt() {
				return r.Num().String(), true
			}
		}
	}
	return "", false
}
