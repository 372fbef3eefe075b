package upstream

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// chunkTemplate reads chunks that are the one before but for some strings, as most of
// a stream are: what stands around a string decides what it is, so that another
// string in its place makes another chunk of the same form. Whatever differs
// elsewhere, or is no strict string, is not read here. The zero value reads
// nothing.
type chunkTemplate struct {
	document []byte // the document that it was cut from
	slots    []slot // in their order
	chunk    *Chunk // what that document says; nil: there is none

	filled filledChunk // what was read last
}

// slot is a string that may be another one.
type slot struct {
	start, end int // of the literal
	extra      int // which member of Chunk.Extra it is; inContent
}

const (
	inContent = -1
	maxSlots  = 8
)

// filledChunk is a chunk with what it does not share with its model.
type filledChunk struct {
	chunk   Chunk
	choice  [1]DeltaChoice
	content string
	extra   Extra
	scratch []byte // of the string that is read
}

// learn makes the stencil of a document that was read. Only the content of one
// choice makes one.
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

// match reads a document of the same form; nil is any other. The chunk holds until
// the next is read.
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

// fill makes the chunk whose strings were found. They hold no more than literals
// do, but are not known to be strict.
func (s *chunkTemplate) fill(found *[maxSlots][]byte) *Chunk {
	f := &s.filled
	f.chunk, f.choice[0] = *s.chunk, s.chunk.Choices[0]
	f.choice[0].Delta.Content, f.chunk.Choices = &f.content, f.choice[:]
	if len(s.slots) > 1 {
		f.extra = append(f.extra[:0], s.chunk.Extra...)
		f.chunk.Extra = f.extra
	}
	for i, h := range s.slots {
		said, err := f.unquoted(found[i])
		switch {
		case err != nil:
			return nil
		case h.extra == inContent:
			f.content = string(said)
		default:
			f.extra[h.extra].Value = bytes.Clone(found[i])
		}
	}
	return &f.chunk
}

// unquoted is what a literal says. It holds until the next is read.
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

// stringLiteralLength is the length of the string that b begins with; 0 where it begins with
// none, or with one that holds a control character.
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
