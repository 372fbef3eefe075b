package mcp

import (
	"encoding/json"

	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/wrapper"
)

// parseContent splits the output of a tool of another MCP server into its blocks if it is
// exactly {"content":[…]}, or that with structuredContent, and each block has a kind of the
// protocol, so that an image stays an image. A single text that was wrapped becomes a block
// again. For any other output ok is false.
func parseContent(output json.RawMessage, wrapped bool) (blocks []object, structured json.RawMessage, ok bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(output, &members) != nil {
		return nil, nil, false
	}
	if wrapped {
		text, isText := parser.Decode(members["value"]).(string)
		return []object{textBlock(wrapper.EscapeText(text))}, nil, isText
	}
	if members["content"] == nil {
		return nil, nil, false
	}
	for name := range members {
		if name != "content" && name != "structuredContent" {
			return nil, nil, false
		}
	}
	list, ok := parser.Decode(members["content"]).([]any)
	if !ok {
		return nil, nil, false
	}
	blocks = make([]object, 0, len(list))
	for _, v := range list {
		b, ok := parseBlock(v)
		if !ok {
			return nil, nil, false
		}
		blocks = append(blocks, b)
	}
	return blocks, members["structuredContent"], true
}

// parseBlock returns a block of content with the members that the protocol has for its kind,
// and no others. Invisible code points in its texts are escaped.
func parseBlock(v any) (object, bool) {
	from, _ := v.(map[string]any)
	out := object{"type": from["type"]}
	take := blockReader{from: from, out: out, ok: true}
	switch stringOf(from["type"]) {
	case "text":
		take.text("text", true)
	case "image", "audio":
		take.string("data", true, wire.IsBase64)
		take.string("mimeType", true, wire.IsMediaType)
	case "resource_link":
		take.string("uri", true, wire.IsURI)
		take.text("name", true)
		take.text("title", false)
		take.text("description", false)
		take.string("mimeType", false, wire.IsMediaType)
	case "resource":
		take.resource()
	default:
		return nil, false
	}
	return out, take.ok
}

// blockReader copies members of one object into another.
type blockReader struct {
	from map[string]any
	out  object
	ok   bool
}

func (t *blockReader) string(name string, required bool, valid func(string) bool) {
	v := t.from[name]
	s, isText := v.(string)
	if v == nil && !required { // a null stands for none
		return
	}
	t.ok = t.ok && isText && valid(s)
	t.out[name] = s
}

func (t *blockReader) text(name string, required bool) {
	t.string(name, required, func(string) bool { return true })
	if s, ok := t.out[name].(string); ok {
		t.out[name] = wrapper.EscapeText(s)
	}
}

// resource copies an embedded resource: text, or bytes.
func (t *blockReader) resource() {
	from, _ := t.from["resource"].(map[string]any)
	inner := blockReader{from: from, out: object{}, ok: from != nil}
	inner.string("uri", true, wire.IsURI)
	inner.string("mimeType", false, wire.IsMediaType)
	if from["text"] != nil {
		inner.text("text", true)
	} else {
		inner.string("blob", true, wire.IsBase64)
	}
	t.ok = t.ok && inner.ok
	t.out["resource"] = inner.out
}

func textBlock(s string) object { return object{"type": "text", "text": s} }
