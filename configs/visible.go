package configs

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/wrapper"
)

// What a model reads of a tool must be what its operator reads: a character that
// shows nothing could carry instructions that no person sees.

// annotationKeywords are the keywords of a schema that are read and judge nothing.
var annotationKeywords = []string{"title", "description", "$comment"}

// dataKeywords are the keywords of a schema whose values are data, not schemas.
var dataKeywords = []string{"const", "enum", "default", "examples"}

// schemaMapKeywords are the keywords of a schema whose members are schemas under names.
var schemaMapKeywords = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}

// checkVisible reports each string below a node, keys included, that holds a hidden
// character. It returns false where there is one.
func checkVisible(n document.Node) bool {
	if n.Kind == yaml.ScalarNode {
		if r, found := wrapper.Hidden(n.Value); found {
			return n.Fail("found %s; expected text in which every character can be seen", hiddenCharacter(r))
		}
		return true
	}
	ok := true
	for _, c := range n.Content {
		ok = checkVisible(n.With(c)) && ok
	}
	return ok
}

func hiddenCharacter(r rune) string { return fmt.Sprintf("the hidden character %U", r) }

// withVisibleText returns a schema in which every text that only describes is legible, and calls
// told with each that was not. The schema itself stays as it is.
func withVisibleText(n document.Node, told func(at document.Node, keyword string, r rune)) document.Node {
	return n.With(visibleSchemaNode(n, false, told))
}

// visibleSchemaNode is a node of shown. With names, the keys of a mapping are names.
func visibleSchemaNode(n document.Node, names bool, told func(at document.Node, keyword string, r rune)) *yaml.Node {
	if !n.IsMapping() && !n.IsList() {
		return n.Node
	}
	out := *n.Node
	out.Content = slices.Clone(n.Content)
	for i, child := range n.Content {
		at := n.With(child)
		if n.IsList() {
			out.Content[i] = visibleSchemaNode(at, false, told)
			continue
		}
		if i%2 == 0 {
			continue
		}
		key := n.Content[i-1].Value
		switch {
		case !names && slices.Contains(annotationKeywords, key) && at.IsString():
			if r, found := wrapper.Hidden(at.Value); found {
				told(at, key, r)
				text := *child
				text.Value = wrapper.EscapeHidden(at.Value)
				out.Content[i] = &text
			}
		case !names && slices.Contains(dataKeywords, key):
		default:
			out.Content[i] = visibleSchemaNode(at, !names && slices.Contains(schemaMapKeywords, key), told)
		}
	}
	return &out
}

// makeVisible makes the texts of an imported tool legible, which is said, and reports what
// hides anywhere else.
func (t *importedTool) makeVisible() bool {
	change := func(at document.Node, what string, r rune) {
		t.changes = append(t.changes, &document.Fault{
			File: at.File, Line: at.Line, Column: at.Column,
			Message: fmt.Sprintf("tool %q: found %s in a %s; it was written out as %s", t.definition.Name, hiddenCharacter(r), what, wrapper.EscapeHidden(string(r))),
		})
	}
	if r, found := wrapper.Hidden(t.definition.Description); found {
		change(t.node, "description", r)
		t.definition.Description = wrapper.EscapeHidden(t.definition.Description)
	}
	ok := true
	for _, key := range []string{"input_schema", "output_schema"} {
		if schema, has := t.schemas[key]; has {
			t.schemas[key] = withVisibleText(schema, change)
			ok = checkVisible(t.schemas[key]) && ok
		}
	}
	for _, p := range t.definition.Run.Parameters {
		if r, found := wrapper.Hidden(p.Argument + p.Name); found {
			ok = t.node.Fail("tool %q: found %s in the name of a parameter; expected text in which every character can be seen", t.definition.Name, hiddenCharacter(r))
		}
	}
	return ok
}

// visibleSchema is a schema of a pin as models are shown it; the pin's own where nothing in
// it hides. What hides outside of texts that describe is reported.
func visibleSchema(pin document.Node, key string, raw json.RawMessage) json.RawMessage {
	_, schema, ok := pin.Child(key)
	if !ok || raw == nil {
		return raw
	}
	changed := false
	shown := withVisibleText(schema, func(document.Node, string, rune) { changed = true })
	if !checkVisible(shown) || !changed {
		return raw
	}
	raw, _ = shown.JSON() // it was read so before
	return raw
}
