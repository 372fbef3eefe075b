package chat

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// chunkTemplate is a fast path for chunks that equal the last parsed chunk except for the
// text in its string slots, as most chunks of a stream do. The bytes around a slot determine
// its meaning, so a chunk with the same bytes and other strings has the same structure. A
// document that differs anywhere else, or has an invalid string in a slot, does not match and
// is parsed in full. The zero value matches nothing.
type chunkTemplate struct {
	document []byte // the parsed document that the template was made from
	slots    []slot // in their order
	chunk    *Chunk // the parsed document; nil: there is no template

	filled filledChunk // the last match
}

// slot is a string literal of the document that may differ in the next chunk.
type slot struct {
	start, end int // of the literal
	extra      int // index in Chunk.Extra, or inContent
}

const (
	inContent = -1
	maxSlots  = 8
)

// filledChunk is a chunk made from the template: the parts that it does not share with it.
type filledChunk struct {
	chunk   Chunk
	choice  [1]DeltaChoice
	content string
	texts   strings.Builder // the contents of chunks, one after the other
	extra   Extra
	scratch []byte // buffer of unquoted
}

// Sizes of the buffers that hold the contents of chunks, one after the other.
const (
	firstTexts = 256
	maxTexts   = 4 << 10
)

// keep returns a text as a string that stays valid.
func (f *filledChunk) keep(text []byte) string {
	if f.texts.Cap()-f.texts.Len() < len(text) {
		size := min(max(2*f.texts.Cap(), firstTexts), maxTexts)
		f.texts = strings.Builder{} // the strings of the one before stay as they are
		f.texts.Grow(max(size, len(text)))
	}
	start := f.texts.Len()
	f.texts.Write(text)
	return f.texts.String()[start:]
}

// learn makes a template from a parsed document. Only a document with exactly one choice and
// one content string makes one; any other leaves no template.
func (s *chunkTemplate) learn(document []byte, c *Chunk, holes []slot) {
	s.chunk = nil
	contents := 0
	for _, h := range holes {
		if h.extra == inContent {
			contents++
		}
	}
	if contents != 1 || len(c.Choices) != 1 || len(holes) > maxSlots {
		return
	}
	s.document, s.slots, s.chunk = append(s.document[:0], document...), append(s.slots[:0], holes...), c
}

// match returns the chunk of a document that matches the template, else nil. The chunk is valid
// until the next call.
func (s *chunkTemplate) match(document []byte) *Chunk {
	if s.chunk == nil {
		return nil
	}
	var (
		found [maxSlots][]byte
		at    int
		rest  = document
	)
	for i, h := range s.slots {
		behind, same := bytes.CutPrefix(rest, s.document[at:h.start])
		n := stringLiteralLength(behind)
		if !same || n == 0 {
			return nil
		}
		found[i], rest, at = behind[:n], behind[n:], h.end
	}
	if !bytes.Equal(rest, s.document[at:]) {
		return nil
	}
	return s.fill(&found)
}

// fill makes the chunk from the strings found in the slots, which have not been validated yet.
func (s *chunkTemplate) fill(found *[maxSlots][]byte) *Chunk {
	f := &s.filled
	f.chunk, f.choice[0] = *s.chunk, s.chunk.Choices[0]
	f.choice[0].Delta.Content, f.chunk.Choices = &f.content, f.choice[:]
	if len(s.slots) > 1 {
		f.extra = append(f.extra[:0], s.chunk.Extra...)
		f.chunk.Extra = f.extra
	}
	for i, h := range s.slots {
		text, err := f.unquoted(found[i])
		switch {
		case err != nil:
			return nil
		case h.extra == inContent:
			f.content = f.keep(text)
		default:
			f.extra[h.extra].Value = bytes.Clone(found[i])
		}
	}
	return &f.chunk
}

// unquoted decodes a string literal. The result is valid until the next call.
func (f *filledChunk) unquoted(raw []byte) ([]byte, error) {
	for _, c := range raw {
		if c == '\\' || c >= 0x80 {
			var err error
			f.scratch, err = jsontext.AppendUnquote(f.scratch[:0], raw)
			return f.scratch, err
		}
	}
	return raw[1 : len(raw)-1], nil
}

// stringLiteralLength returns the length of the string literal that b starts with; 0 if there
// is none, or if it holds a control character.
func stringLiteralLength(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			i++
		case c < ' ':
			return 0
		}
	}
	return 0
}
