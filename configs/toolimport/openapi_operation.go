package toolimport

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/tool"
)

// operation is one operation of an OpenAPI 3 document that becomes a tool.
type operation struct {
	*openAPI
	tool         *importedTool
	label        string // for messages: its method and path
	method, path string
	item, node   document.Node // the path item, and the operation in it

	schemas       *schemaTranslator
	properties    []*yaml.Node // of the root: names and schemas in turn
	required      []string
	argumentNames map[string]bool // names of arguments
}

func (o *operation) reportFault(n document.Node, format string, args ...any) {
	n.Fail("%s: %s", o.label, fmt.Sprintf(format, args...))
}

func (o *operation) reportChange(n document.Node, format string, args ...any) {
	o.tool.reportChange(n, format, args...)
}

// checkKeys reports keys that the standard does not know: what is misspelt would
// otherwise be missing.
func (o *operation) checkKeys(n document.Node, what string, keys ...string) bool {
	if !n.IsMapping() {
		o.reportFault(n, "found %s; expected %s", n.TypeName(), what)
		return false
	}
	ok := true
	n.Members("", func(key, _ document.Node) {
		if !slices.Contains(keys, key.Value) && !strings.HasPrefix(key.Value, "x-") {
			o.reportFault(key, "found the unknown key %s; expected %s, with %s", key.Excerpt(), what, strings.Join(keys, ", "))
			ok = false
		}
	})
	return ok
}

// Nodes that a translation adds get the position of their source.

func scalarAt(n document.Node, s string) *yaml.Node {
	w := scalar(s)
	w.Line, w.Column = n.Line, n.Column
	return w
}

func mappingAt(n document.Node, content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column, Content: content}
}

func sequenceAt(n document.Node, content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: n.Line, Column: n.Column, Content: content}
}

// leaveOut leaves a part of the request out, or the operation where it needs that.
func (o *operation) leaveOut(n document.Node, required bool, problem string) {
	if required {
		o.reportFault(n, "%s", problem)
		return
	}
	o.reportChange(n, "%s; it is optional, and was left out", problem)
}

// flag reads a boolean member.
func (o *operation) flag(n document.Node, key string, standard bool) bool {
	_, value, ok := n.Child(key)
	switch {
	case !ok:
		return standard
	case value.Kind != yaml.ScalarNode || value.ShortTag() != "!!bool":
		o.reportFault(value, "found %s for %s; expected true or false", value.Describe(), key)
	}
	return value.Value == "true"
}

// withDescription gives a schema without a description that of its parent.
func (o *operation) withDescription(schema *yaml.Node, parent document.Node) *yaml.Node {
	_, text, ok := parent.Child("description")
	if !ok || !text.IsString() || text.Value == "" || schema.Kind != yaml.MappingNode || parent.With(schema).Has("description") {
		return schema
	}
	described := *schema
	described.Content = append([]*yaml.Node{scalarAt(text, "description"), scalarAt(text, text.Value)}, schema.Content...)
	return &described
}

// add adds an argument and its place.
func (o *operation) add(p tool.Parameter, at document.Node, schema *yaml.Node) {
	o.argumentNames[p.Argument] = true
	o.properties = append(o.properties, scalarAt(at, p.Argument), schema)
	o.tool.definition.Run.Parameters = append(o.tool.definition.Run.Parameters, p)
}
