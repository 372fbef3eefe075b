package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// The sizes of the first buffer of a reader, and of the largest that is used again.
const (
	firstBuffer = 16 << 10
	maxReused   = 64 << 10
)

// buffers are first buffers of readers that were released.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, firstBuffer)
	return &b
}}

// The errors of Next, beside those of Source.
var (
	// ErrEnd is the end of the stream after a complete event. It is not io.EOF: an error
	// that wraps io.EOF is a connection that broke.
	ErrEnd = errors.New("the end of the body")
	// ErrCut is the end of the stream in the middle of an event.
	ErrCut = errors.New("it ended in the middle")
	// ErrTooLarge is a line, or the data of an event, over MaxBytes.
	ErrTooLarge = errors.New("more bytes came than are allowed")

	errReleased = errors.New("the reader was released")
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// Reader splits a stream into events. The events depend on the bytes alone, not on how reads
// split them. It reads no further than it needs for the next event. It is for one goroutine.
type Reader struct {
	// Source is the stream.
	Source io.Reader
	// MaxBytes bounds a line, and the data of an event.
	MaxBytes int
	// Last reports whether an event with this data is complete even if the stream ends before the
	// empty line after it; nil: none is. It must not keep data.
	Last func(data []byte) bool

	room       *[]byte // the buffer as it is kept
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

	nextID, lastID string // of the event that is read, and of the last one that has ended
	pause          time.Duration
}

// maxID bounds the id of an event, in bytes.
const maxID = 1 << 10

// LastID is the last id of the events that have ended, whether they had data or not; empty if none had one of up to 1 KiB.
func (r *Reader) LastID() string { return r.lastID }

// Pause is the time after which the server wants to be asked for the rest of a stream that it has ended; 0 if it names none.
func (r *Reader) Pause() time.Duration { return r.pause }

// Release gives the buffer of the reader back. The reader and its events must not be used
// any more; without Release, the buffer is left to the garbage collector.
func (r *Reader) Release() {
	if r.room != nil && len(r.buf) <= maxReused {
		*r.room = r.buf
		buffers.Put(r.room)
	}
	*r = Reader{Source: r.Source, MaxBytes: r.MaxBytes, Last: r.Last, err: errReleased}
}

// Next returns the type, which may be empty, and the data of the next event. Both are valid
// until the next call of Next or Peek. After an error it must not be called again.
func (r *Reader) Next() (name, data []byte, err error) {
	for !r.ready() {
		r.fill()
	}
	r.complete, r.returned = false, true
	if r.eventErr != nil {
		return nil, nil, r.eventErr
	}
	return r.name, r.data, nil
}

// Partial reports whether the beginning of another event has been read, or of a line that is no
// comment. It may be called after an error.
func (r *Reader) Partial() bool {
	return r.hasData || len(r.name) > 0 || r.start < r.end && r.buf[r.start] != ':'
}

// Peek returns the data of the next event if that has been read already. It never reads, and
// invalidates the event that Next returned last.
func (r *Reader) Peek() (data []byte, ok bool) {
	if !r.ready() || r.eventErr != nil {
		return nil, false
	}
	return r.data, true
}

// ready reports whether Next would return without reading. It invalidates the event that Next
// returned last.
func (r *Reader) ready() bool {
	if r.returned {
		r.name, r.data, r.hasData, r.returned = r.name[:0], r.data[:0], false, false
	}
	if !r.complete {
		r.complete, r.eventErr = r.event()
	}
	return r.complete
}

// event parses the current event as far as its bytes were read.
func (r *Reader) event() (whole bool, err error) {
	for {
		line, ended, err := r.line()
		switch {
		case errors.Is(err, ErrEnd) && r.hasData:
			return true, r.checkLast()
		case err != nil:
			return true, err
		case !ended:
			return false, nil
		case len(line) > 0:
			if err := r.field(line); err != nil {
				return true, err
			}
		case r.hasData:
			r.lastID = r.nextID
			return true, nil
		default:
			r.name, r.lastID = r.name[:0], r.nextID
		}
	}
}

// checkLast checks an unfinished last event: only one that Last knows is complete without the
// empty line after it.
func (r *Reader) checkLast() error {
	if r.isLast(r.data) {
		return nil
	}
	return ErrCut
}

func (r *Reader) isLast(data []byte) bool {
	return r.Last != nil && r.Last(data)
}

// line returns the next line without its end, if its end was read.
func (r *Reader) line() (line []byte, ended bool, err error) {
	if r.afterCR && r.start < r.end {
		r.afterCR = false
		if r.buf[r.start] == '\n' {
			r.start++
		}
		r.searchedCR = max(r.searchedCR, r.start)
	}
	if r.findLineEnd(); r.searchedCR < r.end {
		line := r.buf[r.start:r.searchedCR]
		r.afterCR = r.buf[r.searchedCR] == '\r'
		r.searchedCR++
		r.start = r.searchedCR
		return r.trimMark(line), true, r.checkLength(len(line))
	}
	if err := r.checkLength(r.end - r.start); err != nil {
		return nil, false, err
	}
	if r.err != nil {
		line, err := r.lastLine()
		return line, true, err
	}
	return nil, false, nil
}

// findLineEnd moves searchedCR to the end of the line. Each byte is searched once for LF and
// once for CR, whichever ends lines here.
func (r *Reader) findLineEnd() {
	r.searchedLF = max(r.searchedLF, r.searchedCR)
	if r.searchedLF < r.end && r.buf[r.searchedLF] != '\n' {
		r.searchedLF += indexOrEnd(r.buf[r.searchedLF:r.end], '\n')
	}
	r.searchedCR += indexOrEnd(r.buf[r.searchedCR:r.searchedLF], '\r')
}

// indexOrEnd returns the index of c, or the length of b.
func indexOrEnd(b []byte, c byte) int {
	if i := bytes.IndexByte(b, c); i >= 0 {
		return i
	}
	return len(b)
}

// lastLine returns the bytes after the last line end.
func (r *Reader) lastLine() ([]byte, error) {
	if !errors.Is(r.err, ErrEnd) {
		return nil, r.err
	}
	line := r.trimMark(r.buf[r.start:r.end])
	r.start = r.end
	switch {
	case len(line) == 0:
		return nil, r.err
	case line[0] == ':':
		return line, nil
	}
	if value, ok := bytes.CutPrefix(line, []byte("data:")); ok && r.isLast(trimSpace(value)) {
		return line, nil
	}
	return nil, ErrCut
}

func (r *Reader) checkLength(n int) error {
	if n > r.MaxBytes {
		return fmt.Errorf("%w: a line of a stream over %d bytes", ErrTooLarge, r.MaxBytes)
	}
	return nil
}

// trimMark drops a byte order mark before the first line.
func (r *Reader) trimMark(line []byte) []byte {
	if r.started {
		return line
	}
	r.started = true
	return bytes.TrimPrefix(line, byteOrderMark)
}

// Wait waits for the first byte, or returns the error that came instead.
func (r *Reader) Wait() error {
	for r.end == 0 && r.err == nil {
		r.fill()
	}
	if r.end == 0 {
		return r.err
	}
	return nil
}

// fill reads once, after it has made room: it moves the unread bytes to the front, or doubles
// the buffer.
func (r *Reader) fill() {
	switch {
	case r.buf == nil:
		r.room = buffers.Get().(*[]byte)
		r.buf = *r.room
	case r.start > 0:
		copy(r.buf, r.buf[r.start:r.end])
		r.end -= r.start
		r.searchedCR -= r.start
		r.searchedLF = max(r.searchedLF-r.start, 0)
		r.start = 0
	case r.end == len(r.buf):
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	n, err := r.Source.Read(r.buf[r.end:])
	r.end += n
	r.err = err
	if err == io.EOF { // not errors.Is: a wrapped io.EOF is a broken connection
		r.err = ErrEnd
	}
}

// field parses a non-empty line.
func (r *Reader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = trimSpace(value)
	switch string(name) {
	case "data":
		if r.hasData {
			r.data = append(r.data, '\n')
		}
		r.hasData = true
		if len(r.data)+len(value) > r.MaxBytes {
			return fmt.Errorf("%w: an event of a stream over %d bytes", ErrTooLarge, r.MaxBytes)
		}
		r.data = append(r.data, value...)
	case "event":
		r.name = append(r.name[:0], value...)
	case "id":
		if len(value) <= maxID {
			r.nextID = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			r.pause = time.Duration(ms) * time.Millisecond
		}
	}
	return nil
}

// trimSpace removes the one space that may follow the colon.
func trimSpace(value []byte) []byte { return bytes.TrimPrefix(value, []byte(" ")) }
