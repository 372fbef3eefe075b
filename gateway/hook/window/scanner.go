package window

import (
	"errors"
	"regexp/syntax"
	"unicode/utf8"
)

// ErrWork is the error of a text in which so many matches end long after they were found that it
// would be read again and again.
var ErrWork = errors.New("the text takes too long to be searched")

// The work on a text is bounded by its length: so many steps for each byte, and some beside.
const (
	stepsPerByte = 64
	steps        = 1 << 20
)

// Scanner takes a text in pieces, and lets out what has no match; a match is replaced, or found. It
// is for one goroutine.
type Scanner struct {
	expr *Expr
	by   []byte // what replaces a match; nil: a match ends the scan
	// buf is what was not let out, and spans is what it stands for.
	buf   []byte
	spans []span
	at    int  // in buf: what comes next
	prev  rune // the rune before at; -1: none
	// pending are the threads that read on at at, those of a higher priority first: a thread that began
	// earlier has the higher one.
	pending, next []thread
	queue         []thread
	seen          []uint32 // by instruction: the step in which it was queued
	step          uint32
	matched       bool
	start, end    int // in buf, of the match
	length, work  int
	replaced      bool
	out           []Piece
}

// span is some bytes of buf that stand for others.
type span struct{ n, of int }

// thread is a place in the program, for a match that began at start.
type thread struct {
	pc    uint32
	start int
}

// NewScanner returns a scanner that replaces matches by a text; nil: that finds them.
func NewScanner(e *Expr, by []byte) *Scanner {
	return &Scanner{expr: e, by: by, prev: -1, seen: make([]uint32, len(e.prog.Inst))}
}

// Write takes the next pieces, and returns what is let out. found says that there is a match and
// nothing replaces it: then the scan has ended. The pieces are valid until the next call.
func (s *Scanner) Write(pieces []Piece) (out []Piece, found bool, err error) {
	for _, p := range pieces {
		s.buf = append(s.buf, p.Text...)
		s.length += len(p.Text)
		if n := len(s.spans); n > 0 && s.spans[n-1].n == s.spans[n-1].of && len(p.Text) == p.Of {
			s.spans[n-1].n, s.spans[n-1].of = s.spans[n-1].n+p.Of, s.spans[n-1].of+p.Of
		} else {
			s.spans = append(s.spans, span{len(p.Text), p.Of})
		}
	}
	return s.scan(false)
}

// Close says that the text has ended, and returns the rest.
func (s *Scanner) Close() (out []Piece, found bool, err error) { return s.scan(true) }

// scan reads what can be read.
func (s *Scanner) scan(last bool) (_ []Piece, found bool, _ error) {
	s.out = nil
	for {
		r, width := s.rune(last)
		if r == utf8.RuneError && width == 0 {
			break
		}
		if s.work++; s.work > stepsPerByte*s.length+steps {
			return nil, false, ErrWork
		}
		s.read(r)
		if width > 0 {
			s.at, s.prev = s.at+width, r
		}
		if s.matched && (len(s.pending) == 0 || width == 0) {
			if s.by == nil {
				return nil, true, nil
			}
			s.replace()
			continue
		}
		if width == 0 {
			break // the end
		}
	}
	hold := s.at
	switch {
	case last:
		hold = len(s.buf)
	case len(s.pending) > 0:
		hold = s.pending[0].start
	}
	if s.matched {
		hold = min(hold, s.start)
	}
	s.letOut(hold, nil)
	return s.out, false, nil
}

// Replaced reports whether a match was replaced so far.
func (s *Scanner) Replaced() bool { return s.replaced }

// rune is the next rune: -1 with no width at the end of a text, and RuneError with none where more
// must come first. It passes over what no match can begin with.
func (s *Scanner) rune(last bool) (r rune, width int) {
	if len(s.pending) == 0 && !s.matched {
		from := s.at
		for s.at < len(s.buf) && !s.expr.first[s.buf[s.at]] {
			s.at++
		}
		if s.at > from {
			s.prev = rune(s.buf[s.at-1]) // first has every byte beyond ASCII, or the rune counts for none
		}
	}
	rest := s.buf[s.at:]
	switch {
	case len(rest) == 0 && last:
		return -1, 0
	case !last && !utf8.FullRune(rest):
		return utf8.RuneError, 0
	}
	return utf8.DecodeRune(rest)
}

// read takes a rune through the threads.
func (s *Scanner) read(r rune) {
	flags := syntax.EmptyOpContext(s.prev, r)
	s.step++
	s.queue = s.queue[:0]
	for _, t := range s.pending {
		s.add(t, flags)
	}
	if !s.matched {
		s.add(thread{uint32(s.expr.prog.Start), s.at}, flags)
	}
	s.next = s.next[:0]
	for _, t := range s.queue {
		in := &s.expr.prog.Inst[t.pc]
		if in.Op == syntax.InstMatch {
			s.matched, s.start, s.end = true, t.start, s.at
			break // threads of a lower priority do not count
		}
		if r >= 0 && in.MatchRune(r) {
			s.next = append(s.next, thread{in.Out, t.start})
		}
	}
	s.pending, s.next = s.next, s.pending
}

// add queues a thread, and where it leads without reading.
func (s *Scanner) add(t thread, flags syntax.EmptyOp) {
	for s.seen[t.pc] != s.step {
		s.seen[t.pc] = s.step
		switch in := &s.expr.prog.Inst[t.pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			s.add(thread{in.Out, t.start}, flags)
			t.pc = in.Arg
		case syntax.InstCapture, syntax.InstNop:
			t.pc = in.Out
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags != 0 {
				return
			}
			t.pc = in.Out
		case syntax.InstFail:
			return
		default:
			s.queue = append(s.queue, t)
			return
		}
	}
}

// replace lets out the match that was found, and reads on behind it.
func (s *Scanner) replace() {
	s.letOut(s.start, nil)
	n := s.end - s.start
	s.prev, _ = utf8.DecodeLastRune(s.buf[:n])
	s.letOut(n, s.by)
	s.replaced = true
	s.at, s.matched, s.pending = 0, false, s.pending[:0]
}

// letOut lets out the first n bytes of buf, or what replaces them.
func (s *Scanner) letOut(n int, by []byte) {
	if n == 0 {
		return
	}
	text := s.buf[:n:n]
	s.buf, s.at, s.start, s.end = s.buf[n:], s.at-n, s.start-n, s.end-n
	for i := range s.pending {
		s.pending[i].start -= n
	}
	of := 0
	for left := n; left > 0; {
		first := &s.spans[0]
		take := span{first.n, first.of}
		if take.n > left {
			// The first part of what stands for others stands for all of them.
			if take.n == take.of {
				take.of = left
			}
			take.n = left
		}
		if by == nil {
			s.out = append(s.out, Piece{text[:take.n:take.n], take.of})
			text = text[take.n:]
		}
		of, left = of+take.of, left-take.n
		if first.n, first.of = first.n-take.n, first.of-take.of; first.n == 0 {
			s.spans = s.spans[1:]
		}
	}
	if by != nil {
		s.out = append(s.out, Piece{by, of})
	}
}
