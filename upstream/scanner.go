package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	firstBuffer = 8 << 10
	doneWord    = "[DONE]"
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// scanner reads the events of a stream (WHATWG HTML, section 9.2). What it
// gives depends on the bytes alone, not on how reads cut them.
type scanner struct {
	from io.Reader
	most int // bytes of a line, and of an event's data

	buf        []byte
	start, end int  // what of buf is unread
	seen       int  // up to where no line ends
	afterCR    bool // an LF here belongs to the line before
	begun      bool // the first line has been read
	err        error

	name []byte
	data []byte
	has  bool // a data line came: its data may be empty
}

// next returns the next event: the name that it gives itself, and its data. Both
// hold until the call after it. errEnd is an end after a whole event.
func (s *scanner) next() (name, data []byte, err error) {
	s.name, s.data, s.has = s.name[:0], s.data[:0], false
	for {
		line, err := s.line()
		switch {
		case errors.Is(err, errEnd) && s.has:
			return s.last()
		case err != nil:
			return nil, nil, err
		case len(line) > 0:
			if err := s.field(line); err != nil {
				return nil, nil, err
			}
		case s.has:
			return s.name, s.data, nil
		default:
			s.name = s.name[:0]
		}
	}
}

// last judges an event that the end of the stream left open. The word [DONE]
// says all that it has to say; the rest of any other is missing.
func (s *scanner) last() (name, data []byte, err error) {
	if string(s.data) == doneWord {
		return s.name, s.data, nil
	}
	return nil, nil, errCut
}

// line returns the next line without its end.
func (s *scanner) line() ([]byte, error) {
	for {
		if s.afterCR && s.start < s.end {
			s.afterCR = false
			if s.buf[s.start] == '\n' {
				s.start++
			}
			s.seen = max(s.seen, s.start)
		}
		for ; s.seen < s.end; s.seen++ {
			if c := s.buf[s.seen]; c == '\n' || c == '\r' {
				line := s.buf[s.start:s.seen]
				s.seen++
				s.start = s.seen
				s.afterCR = c == '\r'
				return s.first(line), s.within(len(line))
			}
		}
		if err := s.within(s.end - s.start); err != nil {
			return nil, err
		}
		if s.err != nil {
			return s.rest()
		}
		s.fill()
	}
}

// rest is what stands after the last end of a line.
func (s *scanner) rest() ([]byte, error) {
	line := s.first(s.buf[s.start:s.end])
	s.start = s.end
	switch {
	case !errors.Is(s.err, errEnd) || len(line) == 0:
		return nil, s.err
	case line[0] == ':':
		return line, nil
	}
	if value, ok := bytes.CutPrefix(line, []byte("data:")); ok && string(unspaced(value)) == doneWord {
		return line, nil
	}
	return nil, errCut
}

func (s *scanner) within(n int) error {
	if n > s.most {
		return fmt.Errorf("%w: a line of a stream over %d bytes", errOversize, s.most)
	}
	return nil
}

// first drops a byte order mark before the first line.
func (s *scanner) first(line []byte) []byte {
	if s.begun {
		return line
	}
	s.begun = true
	return bytes.TrimPrefix(line, byteOrderMark)
}

// fill reads once. Room is made first: by moving what is unread to the front,
// else by doubling.
func (s *scanner) fill() {
	switch {
	case s.buf == nil:
		s.buf = make([]byte, firstBuffer)
	case s.start == s.end:
		s.start, s.end, s.seen = 0, 0, 0
	case s.end < len(s.buf):
	case s.start > 0:
		copy(s.buf, s.buf[s.start:s.end])
		s.seen -= s.start
		s.end -= s.start
		s.start = 0
	default:
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	n, err := s.from.Read(s.buf[s.end:])
	s.end += n
	s.err = err
	if err == io.EOF { // itself: what wraps it is a connection that broke
		s.err = errEnd
	}
}

// field reads a line that is not empty.
func (s *scanner) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = unspaced(value)
	switch string(name) {
	case "data":
		if s.has {
			s.data = append(s.data, '\n')
		}
		s.has = true
		if len(s.data)+len(value) > s.most {
			return fmt.Errorf("%w: an event of a stream over %d bytes", errOversize, s.most)
		}
		s.data = append(s.data, value...)
	case "event":
		s.name = append(s.name[:0], value...)
	}
	return nil
}

// unspaced drops the one space that may follow the colon.
func unspaced(value []byte) []byte { return bytes.TrimPrefix(value, []byte(" ")) }
