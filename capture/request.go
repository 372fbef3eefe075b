package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/decimal"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/strictjson"
)

// request has the parts of a body that may be recorded.
type request struct {
	body  []byte // without credentials of MCP servers
	tools []definition
}

// definition is one tool.
type definition struct {
	name      string // or the type of a tool that has none
	raw       []byte
	canonical string
}

// readRequest reads a body. Its error says why nothing of it can be recorded.
func readRequest(data []byte) (request, error) {
	body, err := rawjson.Read(data)
	if err != nil {
		return request{}, errors.New("its body is no strict JSON object")
	}
	var r request
	if raw := body.Get("tools"); raw != nil {
		cleaned, err := r.addTools(raw)
		if err != nil {
			return request{}, err
		}
		body = body.Set("tools", cleaned)
	}
	if input, ok := rawjson.Elements(body.Get("input")); ok {
		changed, err := r.readInput(input)
		if err != nil {
			return request{}, err
		}
		body = body.Set("input", changed)
	}
	r.body = body.Without("mcp_servers").Bytes()
	return r, nil
}

// readInput reads the items of Responses, of which those of the type additional_tools hold tools.
func (r *request) readInput(items func(yield func(int, []byte) bool)) ([]byte, error) {
	var list [][]byte
	for _, raw := range items {
		item, ok := rawjson.Members(raw)
		if kind, _ := rawjson.String(item.Get("type")); ok && kind == "additional_tools" && item.Get("tools") != nil {
			cleaned, err := r.addTools(item.Get("tools"))
			if err != nil {
				return nil, err
			}
			raw = item.Set("tools", cleaned).Bytes()
		}
		list = append(list, raw)
	}
	return array(list), nil
}

// addTools reads a list of tools, and returns it without credentials.
func (r *request) addTools(raw []byte) ([]byte, error) {
	elements, ok := rawjson.Elements(raw)
	if !ok {
		return nil, errors.New("its tools are no list")
	}
	var list [][]byte
	for _, raw := range elements {
		tool, ok := rawjson.Members(raw)
		if !ok {
			return nil, errors.New("one of its tools is no object")
		}
		if kind, _ := rawjson.String(tool.Get("type")); kind == "mcp" {
			tool = named(tool)
			raw = tool.Bytes()
		}
		for _, name := range []string{"authorization", "authorization_token", "headers"} { // of types that are not known
			if tool.Get(name) != nil {
				tool = tool.Without(name)
				raw = tool.Bytes()
			}
		}
		form, err := canonical(raw)
		if err != nil {
			return nil, errors.New("one of its tools cannot be read")
		}
		list = append(list, raw)
		r.tools = append(r.tools, definition{name: nameOf(tool), raw: raw, canonical: form})
	}
	return array(list), nil
}

// named is a tool of type mcp without its URL, headers and credentials.
func named(tool rawjson.Object) rawjson.Object {
	var kept rawjson.Object
	for _, name := range []string{"type", "server_label", "mcp_server_name"} {
		if value := tool.Get(name); value != nil {
			kept = append(kept, rawjson.Field(name, value))
		}
	}
	return kept
}

// nameOf is the name of a tool in any of the APIs; of a tool that has none, its type and label.
func nameOf(tool rawjson.Object) string {
	kind, _ := rawjson.String(tool.Get("type"))
	object := tool
	if inner, ok := rawjson.Members(tool.Get(kind)); kind != "" && ok && inner.Get("name") != nil {
		object = inner // {"type":"function","function":{"name":…}}
	}
	if name, ok := rawjson.String(object.Get("name")); ok {
		return name
	}
	label, _ := rawjson.String(tool.Get("server_label"))
	return strings.TrimSuffix(kind+" "+label, " ")
}

func array(elements [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(elements, []byte{','})...), ']')
}

// minSecret is how long a value of a header is that cannot stand in a text by chance.
const minSecret = 8

// secretNames stand in the names of headers and parameters that hold credentials, of every provider.
var secretNames = []string{"auth", "key", "token", "secret", "cookie", "password", "credential"}

// credentialsOf are the secrets in the headers of a request, and in the parameters of its URL.
func credentialsOf(header http.Header, query url.Values) []string {
	var secrets []string
	add := func(value string) {
		if value = strings.TrimSpace(value); len(value) >= minSecret {
			secrets = append(secrets, value)
		}
	}
	for _, from := range []map[string][]string{header, query} {
		for name, values := range from {
			name = strings.ToLower(name)
			if !slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(name, part) }) {
				continue
			}
			for _, value := range values {
				add(value)
				if _, credential, ok := strings.Cut(value, " "); ok {
					add(credential)
				}
				if name == "cookie" {
					for pair := range strings.SplitSeq(value, ";") {
						_, one, _ := strings.Cut(pair, "=")
						add(one)
					}
				}
			}
		}
	}
	return secrets
}

// holdsSecret reports whether a string of a JSON value holds one of the secrets.
func holdsSecret(checked []byte, secrets []string) bool {
	if len(secrets) == 0 {
		return false
	}
	return !strictjson.EveryString(checked, func(text []byte) bool {
		for _, s := range secrets {
			if bytes.Contains(text, []byte(s)) {
				return false
			}
		}
		return true
	})
}

// canonical is a value in one form, whatever the order of members.
func canonical(raw []byte) (string, error) {
	var v any
	if err := decimal.Unmarshal(raw, &v); err != nil {
		return "", err
	}
	b, err := json.Marshal(v)
	return string(b), err
}
