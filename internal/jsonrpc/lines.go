package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrTooLong is a line that is longer than a message may be.
var ErrTooLong = errors.New("the line is longer than a message may be")

// Lines reads lines of bounded length, in constant memory beside the line that it returns.
type Lines struct {
	in       *bufio.Reader
	most     int
	skipping bool  // the rest of a line that was too long
	err      error // of the reader
}

// NewLines reads lines of at most so many bytes.
func NewLines(r io.Reader, most int) *Lines {
	return &Lines{in: bufio.NewReaderSize(r, 64<<10), most: most}
}

// Next returns the next line without its end, in memory of its own; it may be empty. For a line
// that is too long it returns ErrTooLong, once, with its beginning. Any other error is that of the
// reader, and final; a last line without an end comes before it.
func (l *Lines) Next() ([]byte, error) {
	var line []byte
	for l.err == nil {
		part, err := l.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
		}
		l.err = err
		whole := err != nil || part[len(part)-1] == '\n'
		if l.skipping {
			l.skipping = !whole
			continue
		}
		if len(line)+len(bytes.TrimRight(part, "\r\n")) > l.most {
			l.skipping = !whole
			return append(line, part...), ErrTooLong
		}
		if line = append(line, part...); whole && (err == nil || len(line) > 0) {
			return bytes.TrimRight(line, "\r\n"), nil
		}
	}
	return nil, l.err
}
