package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/callgate/callgate/engine"
)

// errTooLarge is more than an answer may have.
const errTooLarge engine.Reason = "it sent more than is allowed"

// limitedReader reads at most left bytes, and then fails.
type limitedReader struct {
	from io.Reader
	left int64
}

func (b *limitedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.from.Read(p)
	b.left -= int64(n)
	return n, err
}

// eventReader are those of a stream (text/event-stream). What it holds at once is bounded
// by what it reads from.
type eventReader struct {
	lines *bufio.Reader
	cr    bool // the line before ended in CR
}

func newEventReader(from io.Reader) *eventReader { return &eventReader{lines: bufio.NewReader(from)} }

// next returns the data of the next event of the type message that has any. io.EOF
// is the end of the stream; what stands behind the last empty line is no event.
func (e *eventReader) next() ([]byte, error) {
	var data []byte
	var filled, other bool // there is a line of data; it is of another type
	for {
		line, err := e.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if len(data) > 0 && !other {
				return data, nil
			}
			data, filled, other = nil, false, false
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if filled {
				data = append(data, '\n')
			}
			data, filled = append(data, value...), true
		case "event":
			other = len(value) > 0 && string(value) != "message"
		}
	}
}

// line is one line without its end, which is LF, CR or CRLF. The LF of a CRLF is
// skipped when it comes, so that nothing waits for it.
func (e *eventReader) line() ([]byte, error) {
	var line []byte
	for {
		c, err := e.lines.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) && len(line) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		second := e.cr && c == '\n'
		e.cr = c == '\r'
		switch {
		case second && len(line) == 0:
		case c == '\r', c == '\n':
			return line, nil
		default:
			line = append(line, c)
		}
	}
}
