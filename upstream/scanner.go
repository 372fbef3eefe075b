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

// scanner splits a stream into events (WHATWG HTML, section 9.2). The events depend on the
// bytes alone, not on how reads split them.
type scanner struct {
	src     io.Reader
	maxLine int // bytes of a line, and of an event's data

	buf        []byte
	start, end int  // the unread part of buf
	searchedCR int  // no line ends before this position
	searchedLF int  // no LF from searchedCR up to this position
	afterCR    bool // an LF here is the second half of a CRLF
	started    bool // the first line was read
	err        error

	name     []byte
	data     []byte
	hasData  bool // there was a data line, which may be empty
	complete bool // an event or an error is ready to be returned
	eventErr error
	returned bool // the last event was returned
}

// next returns the type and the data of the next event. Both are valid until the next call.
// errEnd is the end of the stream after a complete event.
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

// ready reports whether next would return without reading. It invalidates the event that next
// returned last.
func (s *scanner) ready() bool {
	if s.returned {
		s.name, s.data, s.hasData, s.returned = s.name[:0], s.data[:0], false, false
	}
	if !s.complete {
		s.complete, s.eventErr = s.event()
	}
	return s.complete
}

// event parses the current event as far as its bytes were read.
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

// checkLast checks an event that the stream ended in: only [DONE] is complete without the
// empty line behind it.
func (s *scanner) checkLast() error {
	if string(s.data) == doneWord {
		return nil
	}
	return errCut
}

// line returns the next line without its end, if its end was read.
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

// findLineEnd moves searchedCR to the end of the line. Each byte is searched once for LF and
// once for CR, whichever ends lines here.
func (s *scanner) findLineEnd() {
	s.searchedLF = max(s.searchedLF, s.searchedCR)
	if s.searchedLF < s.end && s.buf[s.searchedLF] != '\n' {
		s.searchedLF += indexOrEnd(s.buf[s.searchedLF:s.end], '\n')
	}
	s.searchedCR += indexOrEnd(s.buf[s.searchedCR:s.searchedLF], '\r')
}

// indexOrEnd returns the index of c, or the length of b.
func indexOrEnd(b []byte, c byte) int {
	if i := bytes.IndexByte(b, c); i >= 0 {
		return i
	}
	return len(b)
}

// lastLine returns the bytes after the last line end.
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

// peek waits for the first byte, or returns the error that came instead.
func (s *scanner) peek() error {
	for s.end == 0 && s.err == nil {
		s.fill()
	}
	if s.end == 0 {
		return s.err
	}
	return nil
}

// fill reads once, after it has made room: it moves the unread bytes to the front, or doubles
// the buffer.
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
	if err == io.EOF { // not errors.Is: a wrapped io.EOF is a broken connection
		s.err = errEnd
	}
}

// field parses a non-empty line.
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

// trimSpace removes the one space that may follow the colon.
func trimSpace(value []byte) []byte { return bytes.TrimPrefix(value, []byte(" ")) }
