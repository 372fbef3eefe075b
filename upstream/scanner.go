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
	src     io.Reader
	maxLine int // bytes of a line, and of an event's data

	buf        []byte
	start, end int  // what of buf is unread
	searchedCR int  // up to where no line ends
	searchedLF int  // up to where, from seen on, there is no LF
	afterCR    bool // an LF here belongs to the line before
	started    bool // the first line has been read
	err        error

	name     []byte
	data     []byte
	hasData  bool // a data line came: its data may be empty
	complete bool // an event, or a fault in place of one, waits to be given
	eventErr error
	returned bool // the last one was
}

// next returns the next event: the name that it gives itself, and its data. Both
// hold until the call after it. errEnd is an end after a whole event.
func (s *scanner) next() (name, data []byte, err error) {
	for !s.ready() {
		s.fill()
	}
	s.complete, s.returned = false, true
	if s.eventErr != nil {
		return nil, nil, s.eventErr
	}
	return s.name, s.data, nil
}

// ready tells whether next would not read: the event, or what is wrong, is there.
// It ends what the call of next before it has returned.
func (s *scanner) ready() bool {
	if s.returned {
		s.name, s.data, s.hasData, s.returned = s.name[:0], s.data[:0], false, false
	}
	if !s.complete {
		s.complete, s.eventErr = s.event()
	}
	return s.complete
}

// event goes on with the event, as far as what was read reaches.
func (s *scanner) event() (whole bool, err error) {
	for {
		line, ended, err := s.line()
		switch {
		case errors.Is(err, errEnd) && s.hasData:
			return true, s.checkLast()
		case err != nil:
			return true, err
		case !ended:
			return false, nil
		case len(line) > 0:
			if err := s.field(line); err != nil {
				return true, err
			}
		case s.hasData:
			return true, nil
		default:
			s.name = s.name[:0]
		}
	}
}

// checkLast judges an event that the end of the stream left open. The word [DONE]
// says all that it has to say; the rest of any other is missing.
func (s *scanner) checkLast() error {
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
		s.searchedCR = max(s.searchedCR, s.start)
	}
	if s.findLineEnd(); s.searchedCR < s.end {
		line := s.buf[s.start:s.searchedCR]
		s.afterCR = s.buf[s.searchedCR] == '\r'
		s.searchedCR++
		s.start = s.searchedCR
		return s.trimMark(line), true, s.checkLength(len(line))
	}
	if err := s.checkLength(s.end - s.start); err != nil {
		return nil, false, err
	}
	if s.err != nil {
		line, err := s.lastLine()
		return line, true, err
	}
	return nil, false, nil
}

// findLineEnd moves seen to the end of the line. Each byte is looked at once for an LF
// and once for a CR, whichever of them ends lines here.
func (s *scanner) findLineEnd() {
	s.searchedLF = max(s.searchedLF, s.searchedCR)
	if s.searchedLF < s.end && s.buf[s.searchedLF] != '\n' {
		s.searchedLF += indexOrEnd(s.buf[s.searchedLF:s.end], '\n')
	}
	s.searchedCR += indexOrEnd(s.buf[s.searchedCR:s.searchedLF], '\r')
}

// indexOrEnd is how many bytes stand before c.
func indexOrEnd(b []byte, c byte) int {
	if i := bytes.IndexByte(b, c); i >= 0 {
		return i
	}
	return len(b)
}

// lastLine is what stands after the last end of a line.
func (s *scanner) lastLine() ([]byte, error) {
	line := s.trimMark(s.buf[s.start:s.end])
	s.start = s.end
	switch {
	case !errors.Is(s.err, errEnd) || len(line) == 0:
		return nil, s.err
	case line[0] == ':':
		return line, nil
	}
	if value, ok := bytes.CutPrefix(line, []byte("data:")); ok && string(trimSpace(value)) == doneWord {
		return line, nil
	}
	return nil, errCut
}

func (s *scanner) checkLength(n int) error {
	if n > s.maxLine {
		return fmt.Errorf("%w: a line of a stream over %d bytes", errOversize, s.maxLine)
	}
	return nil
}

// trimMark drops a byte order mark before the first line.
func (s *scanner) trimMark(line []byte) []byte {
	if s.started {
		return line
	}
	s.started = true
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
		s.searchedCR -= s.start
		s.searchedLF = max(s.searchedLF-s.start, 0)
		s.start = 0
	case s.end == len(s.buf):
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	n, err := s.src.Read(s.buf[s.end:])
	s.end += n
	s.err = err
	if err == io.EOF { // itself: what wraps it is a connection that broke
		s.err = errEnd
	}
}

// field reads a line that is not empty.
func (s *scanner) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = trimSpace(value)
	switch string(name) {
	case "data":
		if s.hasData {
			s.data = append(s.data, '\n')
		}
		s.hasData = true
		if len(s.data)+len(value) > s.maxLine {
			return fmt.Errorf("%w: an event of a stream over %d bytes", errOversize, s.maxLine)
		}
		s.data = append(s.data, value...)
	case "event":
		s.name = append(s.name[:0], value...)
	}
	return nil
}

// trimSpace drops the one space that may follow the colon.
func trimSpace(value []byte) []byte { return bytes.TrimPrefix(value, []byte(" ")) }
