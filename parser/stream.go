package parser

import (
	"slices"
	"unicode/utf8"
)

// Stream judges a completion that arrives in pieces, and releases text as soon
// as no later byte can refuse what is released. It gives the verdict of Parse
// for every way of cutting. It holds back leading whitespace, a JSON attempt
// whole, what may still open an object, the beginning of a mark, and an
// unfinished UTF-8 sequence; from the start of a fault on, it releases nothing.
// With Options.TextOnly there are no attempts, and nothing is held for them.
//
// A Stream is for one goroutine. It holds at most Options.MaxBytes and a small
// window of the completion.
type Stream struct {
	options  Options
	state    streamState
	length   int    // of all that came
	buffered []byte // bytes received and not released, up to the window
	base     int    // offset of buffered[0]
	peek     arrayPeek
	text     textReader
}

type streamState int

const (
	leading streamState = iota // only outer whitespace so far
	peeking                    // a leading bracket, not decided yet
	attempt
	plainText
)

// maxSpare is the most room, in bytes, that is taken for pieces to come.
const maxSpare = 4 << 10

// NewStream returns a stream for one completion.
func NewStream(options Options) *Stream {
	o := options.withDefaults()
	return &Stream{options: o, text: textReader{max: o.MaxBytes, json: o.refusedInText()}}
}

// Write takes the next piece and returns the text that is released by it, or
// nothing. The returned bytes stay valid.
func (s *Stream) Write(p []byte) []byte {
	// Beyond the window bytes are counted, never kept.
	room := max(s.options.MaxBytes+lookahead-s.length, 0)
	s.length += len(p)
	if len(p) > room {
		p = p[:room]
	}
	if s.text.done {
		return nil
	}
	if cap(s.buffered)-len(s.buffered) < len(p) {
		// More room than this piece needs, so that most pieces take none of their own. Released
		// bytes are never written to again.
		s.buffered = slices.Grow(s.buffered, len(p)+min(s.length, maxSpare))
	}
	s.buffered = append(s.buffered, p...)
	switch s.state {
	case leading:
		start := SkipSpace(s.buffered, len(s.buffered)-len(p))
		if start == len(s.buffered) {
			return nil
		}
		if s.options.TextOnly {
			s.state = plainText
			return s.release(s.buffered)
		}
		s.state = peeking
		p = s.buffered[start:]
		fallthrough
	case peeking:
		if !s.decide(p) {
			return nil
		}
		return s.release(s.buffered)
	case plainText:
		return s.release(p)
	}
	return nil
}

// decide continues the peek, and reports whether the body has turned out to
// be text.
func (s *Stream) decide(p []byte) bool {
	for _, c := range p {
		switch s.peek.step(c) {
		case peekAttempt:
			s.state = attempt
			return false
		case peekText:
			s.state = plainText
			return true
		}
	}
	return false
}

// release searches the received bytes and returns those that no later byte can refuse.
func (s *Stream) release(p []byte) []byte {
	s.text.read(p)
	n := wholeRunes(s.buffered[:max(0, min(s.text.hold()-s.base, len(s.buffered)))])
	if n == 0 {
		return nil
	}
	out := s.buffered[:n:n]
	s.buffered, s.base = s.buffered[n:], s.base+n
	return out
}

// wholeRunes is the length of p without a character that ends beyond it: the
// limit may lie within one.
func wholeRunes(p []byte) int {
	for i := 1; i <= min(len(p), utf8.UTFMax-1); i++ {
		if c := p[len(p)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(p[len(p)-i:]) {
				return len(p) - i
			}
			break
		}
	}
	return len(p)
}

// Refused reports whether a refusal is certain already.
func (s *Stream) Refused() bool {
	return s.length > s.options.MaxBytes || s.text.done
}

// Close ends the completion, truncated or not, and returns its verdict. The Text of the
// result is what Write has not released.
func (s *Stream) Close(truncated bool) Result {
	in := input{length: s.length, max: s.options.MaxBytes}
	switch s.state {
	case leading:
		return in.blank(s.options)
	case attempt:
		in.window = s.buffered
		return readAttempt(in, SkipSpace(s.buffered, 0), truncated, s.options)
	case peeking:
		s.text.read(s.buffered)
	}
	in.window = s.buffered
	if f := s.text.end(in); f != nil {
		return Result{Refusal: f.refusal(in, s.options)}
	}
	return Result{Kind: Text, Text: s.buffered}
}
