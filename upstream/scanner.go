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
	feed       int  // up to where, from seen on, there is no LF
	afterCR    bool // an LF here belongs to the line before
	begun      bool // the first line has been read
	err        error

	name  []byte
	data  []byte
	has   bool // a data line came: its data may be empty
	whole bool // an event, or a fault in place of one, waits to be given
	fault error
	given bool // the last one was
}

// next returns the next event: the name that it gives itself, and its data. Both
// hold until the call after it. errEnd is an end after a whole event.
func (s *scanner) next() (name, data []byte, err error) {
	for !s.ready() {
		s.fill()
	}
	s.whole, s.given = false, true
	if s.fault != nil {
		return nil, nil, s.fault
	}
	return s.name, s.data, nil
}

// ready tells whether next would not read: the event, or what is wrong, is there.
// It ends what the call of next before it has returned.
func (s *scanner) ready() bool {
	if s.given {
		s.name, s.data, s.has, s.given = s.name[:0], s.data[:0], false, false
	}
	if !s.whole {
		s.whole, s.fault = s.event()
	}
	return s.whole
}

// event goes on with the event, as far as what was read reaches.
func (s *scanner) event() (whole bool, err error) {
	for {
		line, ended, err := s.line()
		switch {
		case errors.Is(err, errEnd) && s.has:
			return true, s.last()
		case err != nil:
			return true, err
		case !ended:
			return false, nil
		case len(line) > 0:
			if err := s.field(line); err != nil {
				return true, err
			}
		case s.has:
			return true, nil
		default:
			s.name = s.name[:0]
		}
	}
}

// last judges an event that the end of the stream left open. The word [DONE]
// says all that it has to say; the rest of any other is missing.
func (s *scanner) last() error {
	if string(s.data) == doneWord {
		return nil
	}
	return errCut
}

// line returns the next line without its end, where that has been read.
func (s *scanner) line() (line []byte, ended bool, err error) {
	if s.afterCR && s.start < s.end {
		s.afterCR = false
		if s.buf[s.start] == '\n' {
			s.start++
		}
		s.seen = max(s.seen, s.start)
	}
	if s.seek(); s.seen < s.end {
		line := s.buf[s.start:s.seen]
		s.afterCR = s.buf[s.seen] == '\r'
		s.seen++
		s.start = s.seen
		return s.first(line), true, s.within(len(line))
	}
	if err := s.within(s.end - s.start); err != nil {
		return nil, false, err
	}
	if s.err != nil {
		line, err := s.rest()
		return line, true, err
	}
	return nil, false, nil
}

// seek moves seen to the end of the line. Each byte is looked at once for an LF
// and once for a CR, whichever of them ends lines here.
func (s *scanner) seek() {
	s.feed = max(s.feed, s.seen)
	if s.feed < s.end && s.buf[s.feed] != '\n' {
		s.feed += until(s.buf[s.feed:s.end], '\n')
	}
	s.seen += until(s.buf[s.seen:s.feed], '\r')
}

// until is how many bytes stand before c.
func until(b []byte, c byte) int {
	if i := bytes.IndexByte(b, c); i >= 0 {
		return i
	}
	return len(b)
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

// peek waits for the first byte, or returns why there is none.
func (s *scanner) peek() error {
	for s.end == 0 && s.err == nil {
		s.fill()
	}
	if s.end == 0 {
		return s.err
	}
	return nil
}

// fill reads once. Room is made first: by moving what is unread to the front,
// else by doubling.
func (s *scanner) fill() {
	switch {
	case s.buf == nil:
		s.buf = make([]byte, firstBuffer)
	case s.start > 0:
		copy(s.buf, s.buf[s.start:s.end])
		s.end -= s.start
		s.seen -= s.start
		s.feed = max(s.feed-s.start, 0)
		s.start = 0
	case s.end == len(s.buf):
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
