package mcp

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
)

// content is one block of a result.
type content struct {
	kind string
	text string
}

// maxMediaType bounds the name of a media type, in bytes.
const maxMediaType = 256

// readContent reads a block of one of the kinds that the protocol knows, with what a
// block of its kind must have. What else stands in it is not looked at.
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

// block reads the members of a block. One that is not as it must be makes all so.
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
	if _, err := base64.StdEncoding.Strict().DecodeString(b.string(name, true)); err != nil {
		b.invalid = true
	}
}

func (b *block) media(name string, required bool) {
	s := b.string(name, required)
	if b.members[name] != nil && (s == "" || len(s) > maxMediaType || !isPrintable(s)) {
		b.invalid = true
	}
}

func (b *block) uri(name string) {
	if s := b.string(name, true); !strings.Contains(s, ":") || !isPrintable(s) {
		b.invalid = true
	}
}

// resource reads what is embedded: text, or bytes.
func (b *block) resource() {
	b.uri("uri")
	b.media("mimeType", false)
	if b.members["text"] != nil {
		b.string("text", true)
	} else {
		b.base64("blob")
	}
}

// isPrintable tells whether a text is ASCII that can be printed, without spaces at its ends.
func isPrintable(s string) bool {
	return strings.TrimSpace(s) == s && ascii.IsPrintable(s)
}

func joinText(contents []content) string {
	var all []string
	for _, c := range contents {
		if c.kind == "text" {
			all = append(all, c.text)
		}
	}
	return strings.Join(all, "\n")
}
