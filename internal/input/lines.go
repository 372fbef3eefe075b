package input

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrLineTooLong is the error of a line beyond the limit.
var ErrLineTooLong = errors.New("the line is longer than a completion can be")

// LineReader reads lines of bounded length. A longer line is skipped, with an error of its
// own.
type LineReader struct {
	r     *bufio.Reader
	limit int
	line  []byte
}

// NewLineReader returns a reader of lines of at most limit bytes, their end included.
func NewLineReader(r io.Reader, limit int) *LineReader {
	return &LineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// Waiting reports whether the next line has to be read from the reader first.
func (l *LineReader) Waiting() bool { return l.r.Buffered() == 0 }

// Next returns the next line without its end; it is valid until the next call.
// Empty lines at the end of input are no lines.
func (l *LineReader) Next() ([]byte, error) {
	l.line = l.line[:0]
	tooLong := false
	for {
		piece, err := l.r.ReadSlice('\n')
		if !tooLong {
			if len(l.line)+len(piece) > l.limit {
				tooLong, l.line = true, l.line[:0]
			} else {
				l.line = append(l.line, piece...)
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(piece) == 0 && len(l.line) == 0 && !tooLong:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case tooLong:
			return nil, fmt.Errorf("%w (%d bytes)", ErrLineTooLong, l.limit)
		}
		return bytes.TrimSuffix(l.line, []byte("\n")), nil
	}
}
