package mcp

import (
	"bytes"
	"errors"
	"io"

	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/internal/sse"
)

// errTooLarge is a response that is longer than its limit.
const errTooLarge refuse.Reason = "it sent more than is allowed"

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

// eventReader reads the messages of a stream (text/event-stream).
type eventReader struct{ events sse.Reader }

// newEventReader returns a reader of a stream that holds at most limit bytes.
func newEventReader(from io.Reader, limit int64) *eventReader {
	return &eventReader{sse.Reader{Source: &limitedReader{from, limit}, MaxBytes: int(limit)}}
}

// next returns the data of the next event of the type message that has any. io.EOF
// is the end of the stream; bytes after the last empty line are no event.
func (e *eventReader) next() ([]byte, error) {
	for {
		kind, data, err := e.events.Next()
		switch {
		case errors.Is(err, sse.ErrEnd), errors.Is(err, sse.ErrCut):
			return nil, io.EOF
		case err != nil:
			return nil, err
		case len(data) > 0 && (len(kind) == 0 || string(kind) == "message"):
			return bytes.Clone(data), nil
		}
	}
}
