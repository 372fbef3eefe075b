package toolimport

import (
	"strings"

	"github.com/callgate/callgate/configs/document"
)

// Kind is what a file is meant to be, by members that others of its kind have.
type Kind string

// The kinds, as messages say them.
const (
	KindOpenAPI Kind = "an OpenAPI document"
	KindRequest Kind = "a request to a model"
	KindMCP     Kind = "the tools of an MCP server"
	KindClient  Kind = "the file of an MCP client"
)

// LooksLike says of what kind a file seems to be, or "", and whether it is YAML.
func LooksLike(file string, data []byte) (kind Kind, yaml bool) {
	var r document.Report
	text := strings.TrimLeft(string(data), " \t\r\n")
	root, ok := document.ReadExternal(&r, file, data)
	if text == "" || !ok || !root.IsMapping() && !root.IsList() {
		return "", false
	}
	yaml = !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[")
	list := root
	for _, key := range []string{"result", "tools"} {
		if _, value, ok := list.Child(key); ok && list.IsMapping() {
			list = value
		}
	}
	var first document.Node
	if list.IsList() && len(list.Content) > 0 {
		first = list.With(list.Content[0])
	}
	has := func(n document.Node, keys ...string) bool {
		for _, key := range keys {
			if n.Node != nil && n.IsMapping() && n.Has(key) {
				return true
			}
		}
		return false
	}
	switch {
	case has(root, "openapi", "swagger"):
		kind = KindOpenAPI
	case has(root, "mcpServers"):
		kind = KindClient
	case has(first, "inputSchema"):
		kind = KindMCP
	case has(root, "messages", "input", "model") || has(first, "function", "input_schema", "parameters"):
		kind = KindRequest
	}
	return kind, yaml
}

// otherKind says of a file that is no list of tools what it looks like, and how that is read; empty: nothing more is known.
func otherKind(file string, data []byte) string {
	kind, yaml := LooksLike(file, data)
	switch {
	case kind == KindOpenAPI:
		return string(kind) + "; expected a list of tools, or an object with the member tools; read it as openapi instead"
	case kind == KindClient:
		return string(kind) + "; expected a list of tools, or an object with the member tools: callgate init --from FILE reads it"
	case yaml:
		return "YAML; expected JSON: a list of tools, or an object with the member tools"
	}
	return ""
}
