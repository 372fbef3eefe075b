package upstream

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// stencil reads chunks that are the one before but for some strings, as most of
// a stream are: what stands around a string decides what it is, so that another
// string in its place makes another chunk of the same form. Whatever differs
// elsewhere, or is no strict string, is not read here. The zero value reads
// nothing.
type stencil struct {
	frame []byte // the document that it was cut from
	holes []hole // in their order
	model *Chunk // what that document says; nil: there is none

	filled filled // what was read last
}

// hole is a string that may be another one.
type hole struct {
	start, end int // of the literal
	extra      int // which member of Chunk.Extra it is; inContent
}

const (
	inContent = -1
	mostHoles = 8
)

// filled is a chunk with what it does not share with its model.
type filled struct {
	chunk   Chunk
	choice  [1]DeltaChoice
	content string
	extra   Extra
	said    []byte // of the string that is read
}

// cut makes the stencil of a document that was read. Only the content of one
// choice makes one.
func (s *stencil) cut(document []byte, c *Chunk, holes []hole) {
	s.model = nil
	contents := 0
	for _, h := range holes {
		if h.extra == inContent {
			contents++
		}
	}
	if contents != 1 || len(c.Choices) != 1 || len(holes) > mostHoles {
		return
	}
	s.frame, s.holes, s.model = append(s.frame[:0], document...), append(s.holes[:0], holes...), c
}

// read reads a document of the same form; nil is any other. The chunk holds until
// the next is read.
func (s *stencil) read(document []byte) *Chunk {
	if s.model == nil {
		return nil
	}
	var (
		found [mostHoles][]byte
		at    int
		rest  = document
	)
	for i, h := range s.holes {
		behind, same := bytes.CutPrefix(rest, s.frame[at:h.start])
		n := literal(behind)
		if !same || n == 0 {
			return nil
		}
		found[i], rest, at = behind[:n], behind[n:], h.end
	}
	if !bytes.Equal(rest, s.frame[at:]) {
		return nil
	}
	return s.fill(&found)
}

// fill makes the chunk whose strings were found. They hold no more than literals
// do, but are not known to be strict.
func (s *stencil) fill(found *[mostHoles][]byte) *Chunk {
	f := &s.filled
	f.chunk, f.choice[0] = *s.model, s.model.Choices[0]
	f.choice[0].Delta.Content, f.chunk.Choices = &f.content, f.choice[:]
	if len(s.holes) > 1 {
		f.extra = append(f.extra[:0], s.model.Extra...)
		f.chunk.Extra = f.extra
	}
	for i, h := range s.holes {
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
func (f *filled) unquoted(raw []byte) ([]byte, error) {
	for _, c := range raw {
		if c == '\\' || c >= 0x80 {
			var err error
			f.said, err = jsontext.AppendUnquote(f.said[:0], raw)
			return f.said, err
		}
	}
	return raw[1 : len(raw)-1], nil
}

// literal is the length of the string that b begins with; 0 where it begins with
// none, or with one that holds a control character.
func literal(b []byte) int {
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
