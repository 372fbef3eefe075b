package toolfile

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/wrapper"
)

// A model must read the same text of a tool as its operator: an invisible character could
// carry instructions that no person sees.

// annotationKeywords are the keywords of a schema that are read and judge nothing.
var annotationKeywords = []string{"title", "description", "$comment"}

// dataKeywords are the keywords of a schema whose values are data, not schemas.
var dataKeywords = []string{"const", "enum", "default", "examples"}

// schemaMapKeywords are the keywords of a schema whose members are schemas under names.
var schemaMapKeywords = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}

// CheckVisible reports each string below a node, keys included, that holds a hidden
// character. It returns false where there is one.
func CheckVisible(n document.Node) bool {
	if n.Kind == yaml.ScalarNode {
		if r, found := wrapper.Hidden(n.Value); found {
			return n.Fail("found %s; expected text in which every character can be seen", HiddenCharacter(r))
		}
		return true
	}
	ok := true
	for _, c := range n.Content {
		ok = CheckVisible(n.With(c)) && ok
	}
	return ok
}

// HiddenCharacter names an invisible character by its code point.
func HiddenCharacter(r rune) string { return fmt.Sprintf("the hidden character %U", r) }

// WithVisibleText returns a schema in which every text that only describes is legible, and
// calls report for each invisible character. The schema itself stays as it is.
func WithVisibleText(n document.Node, report func(at document.Node, keyword string, r rune)) document.Node {
	return n.With(visibleSchemaNode(n, false, report))
}

// visibleSchemaNode is one node of WithVisibleText. With names, the keys of a mapping are names.
func visibleSchemaNode(n document.Node, names bool, report func(at document.Node, keyword string, r rune)) *yaml.Node {
	if !n.IsMapping() && !n.IsList() {
		return n.Node
	}
	out := *n.Node
	out.Content = slices.Clone(n.Content)
	for i, child := range n.Content {
		at := n.With(child)
		if n.IsList() {
			out.Content[i] = visibleSchemaNode(at, false, report)
			continue
		}
		if i%2 == 0 {
			continue
		}
		key := n.Content[i-1].Value
		switch {
		case !names && slices.Contains(annotationKeywords, key) && at.IsString():
			if r, found := wrapper.Hidden(at.Value); found {
				report(at, key, r)
				text := *child
				text.Value = wrapper.EscapeHidden(at.Value)
				out.Content[i] = &text
			}
		case !names && slices.Contains(dataKeywords, key):
		default:
			out.Content[i] = visibleSchemaNode(at, !names && slices.Contains(schemaMapKeywords, key), report)
		}
	}
	return &out
}

// VisibleSchema returns the schema of a pin for models; it is the pin's own if no character
// in it is invisible. It reports invisible characters outside of descriptive texts.
func VisibleSchema(pin document.Node, key string, raw json.RawMessage) json.RawMessage {
	_, schema, ok := pin.Child(key)
	if !ok || raw == nil {
		return raw
	}
	changed := false
	visible := WithVisibleText(schema, func(document.Node, string, rune) { changed = true })
	if !CheckVisible(visible) || !changed {
		return raw
	}
	raw, _ = visible.JSON() // it was read so before
	return raw
}
