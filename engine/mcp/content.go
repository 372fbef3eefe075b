package mcp

import (
	"encoding/json"
	"strings"

	"github.com/callgate/callgate/internal/mcp/wire"
)

// content is one block of a result.
type content struct {
	kind string
	text string
}

// readContent reads a block of one of the kinds that the protocol knows, and checks the
// members that a block of its kind must have. It ignores all others.
func readContent(raw json.RawMessage) (c content, ok bool) {
	b := readBlock(raw)
	c.kind = b.string("type", true)
	switch c.kind {
	case "text":
		c.text = b.string("text", true)
	case "image", "audio":
		b.base64("data")
		b.media("mimeType", true)
	case "resource_link":
		b.uri("uri")
		b.string("name", true)
		b.string("title", false)
		b.string("description", false)
		b.media("mimeType", false)
	case "resource":
		inner := readBlock(b.members["resource"])
		inner.resource()
		b.invalid = b.invalid || inner.invalid
	default:
		return c, false
	}
	return c, !b.invalid
}

// block reads the members of a block. One invalid member makes the block invalid.
type block struct {
	members map[string]json.RawMessage
	invalid bool
}

func readBlock(raw json.RawMessage) *block {
	members, ok := object(raw)
	return &block{members: members, invalid: !ok}
}

func (b *block) string(name string, required bool) (s string) {
	raw := b.members[name]
	if raw == nil && required || !optionalString(raw, &s) {
		b.invalid = true
	}
	return s
}

func (b *block) base64(name string) {
	b.invalid = !wire.IsBase64(b.string(name, true)) || b.invalid
}

func (b *block) media(name string, required bool) {
	s := b.string(name, required)
	b.invalid = b.invalid || b.members[name] != nil && !wire.IsMediaType(s)
}

func (b *block) uri(name string) {
	b.invalid = !wire.IsURI(b.string(name, true)) || b.invalid
}

// resource reads an embedded resource: text, or bytes.
func (b *block) resource() {
	b.uri("uri")
	b.media("mimeType", false)
	if b.members["text"] != nil {
		b.string("text", true)
	} else {
		b.base64("blob")
	}
}

// wordsOf is the text in the content of a tool that has failed, in whatever else it stands.
func wordsOf(raw json.RawMessage) string {
	var text string
	if raw != nil && optionalString(raw, &text) {
		return text
	}
	blocks, _ := array(raw)
	var all []string
	for _, b := range blocks {
		if c, ok := readContent(b); ok && c.kind == "text" {
			all = append(all, c.text)
		}
	}
	return strings.Join(all, "\n")
}
