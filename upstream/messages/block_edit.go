package messages

import "github.com/callgate/callgate/internal/strictjson"

// SetText replaces the text of a text block.
func (b *Block) SetText(text []byte) {
	b.Text, b.Raw = text, with(b.Raw, member{"text", strictjson.AppendQuote(nil, text)})
}

// SetCitations replaces the citations of a text block, which must be a JSON array.
func (b *Block) SetCitations(citations []byte) {
	b.Citations, b.Raw = citations, with(b.Raw, member{"citations", citations})
}

// Thinking is the text of a thinking block, and whether its provider has signed that; empty where it is
// hidden.
func (b *Block) Thinking() (text []byte, signed bool) { return b.thinking, len(b.signature) > 0 }

// SetThinking replaces what a thinking block says.
func (b *Block) SetThinking(text []byte) {
	b.thinking, b.Raw = text, with(b.Raw, member{"thinking", strictjson.AppendQuote(nil, text)})
}
