package schema

import (
	"encoding/json"
	"testing"
)

// withMembersStated does what an import does with a schema that somebody else
// published: in each object schema of which no member is declared it writes
// additionalProperties: true. It returns how many there were.
func withMembersStated(tb testing.TB, raw json.RawMessage) (json.RawMessage, int) {
	tb.Helper()
	value, unreadable := decodeSchema(raw)
	if unreadable != nil {
		return raw, 0
	}
	l := newResolver(Options{})
	doc := l.add(value, baseURI)
	b := newBundler(l.references(doc))
	stated := 0
	for _, s := range b.undeclaredObjects(doc.root) {
		own := b.definingSchema(s).object()
		if _, has := own["additionalProperties"]; own != nil && !has {
			own["additionalProperties"] = true
			stated++
		}
	}
	if stated == 0 {
		return raw, 0
	}
	out, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return out, stated
}

// publishedTool is a tool of a public list.
type publishedTool struct {
	Name        string          `json:"name"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// withMembers is the schema that an import of the tool writes.
func (p publishedTool) withMembers(tb testing.TB) json.RawMessage {
	tb.Helper()
	if len(p.InputSchema) == 0 || string(p.InputSchema) == "null" {
		return p.InputSchema
	}
	schema, _ := withMembersStated(tb, p.InputSchema)
	return schema
}
