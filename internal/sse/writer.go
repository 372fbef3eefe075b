package sse

import (
	"bytes"
	"net/http"
	"time"
)

// AppendEvent appends an event to b. An empty name writes none: a client takes the event for
// a message. The name must not contain a line end; each one in data begins another data line.
func AppendEvent(b []byte, name string, data []byte) []byte {
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	for more := true; more; {
		line := data
		end := bytes.IndexAny(data, "\r\n")
		if more = end >= 0; more {
			line = data[:end]
			if bytes.HasPrefix(data[end:], []byte("\r\n")) {
				end++
			}
			data = data[end+1:]
		}
		b = append(append(append(b, "data: "...), line...), '\n')
	}
	return append(b, '\n')
}

// AppendComment appends a comment, which clients ignore. The text must not contain a line
// end.
func AppendComment(b []byte, text string) []byte {
	return append(append(append(b, ": "...), text...), "\n\n"...)
}

// Gatherer is a connection that writes at once what was written between Hold and Release.
type Gatherer interface {
	Hold()
	Release()
}

// Writer answers a request with a stream. It is for one goroutine at a time.
type Writer struct {
	// Connection gathers what is written for one piece; nil: each write goes out as it comes.
	Connection Gatherer

	w        http.ResponseWriter
	timeout  time.Duration
	step     time.Duration
	deadline time.Time
	values   [3]string // of the head, in no memory of their own
}

// NewWriter returns a writer whose client has the timeout to read each piece. A deadline is
// set again once it would move by more than step: setting one costs more than a short
// write.
func NewWriter(w http.ResponseWriter, timeout, step time.Duration) *Writer {
	return &Writer{w: w, timeout: timeout, step: step}
}

// Begin sets the head of the stream. The head is sent with the first piece.
func (w *Writer) Begin(contentType, cacheControl string) {
	h := w.w.Header()
	w.values = [...]string{contentType, cacheControl, "no"}
	h["Content-Type"], h["Cache-Control"] = w.values[:1:1], w.values[1:2:2]
	h["X-Accel-Buffering"] = w.values[2:] // for proxies that would hold events back
	w.w.WriteHeader(http.StatusOK)
}

// Send writes whole events and comments, and flushes them. The client has the timeout to take
// them.
func (w *Writer) Send(events []byte) error {
	if w.Connection != nil {
		w.Connection.Hold()
		defer w.Connection.Release()
	}
	if err := w.write(events); err != nil {
		return err
	}
	w.flush()
	return nil
}

// Write is Send without the flush: events leave with the next Send, or at the end of the answer.
func (w *Writer) Write(events []byte) error {
	if w.Connection != nil {
		w.Connection.Hold()
		defer w.Connection.Release()
	}
	return w.write(events)
}

func (w *Writer) write(events []byte) error {
	if deadline := time.Now().Add(w.timeout); deadline.Sub(w.deadline) > w.step {
		// A connection without deadlines is one of a test.
		_ = http.NewResponseController(w.w).SetWriteDeadline(deadline)
		w.deadline = deadline
	}
	_, err := w.w.Write(events)
	return err
}

// SendWithin is Send within the deadline that the last Send set.
func (w *Writer) SendWithin(events []byte) error {
	if _, err := w.w.Write(events); err != nil {
		return err
	}
	w.flush()
	return nil
}

// flush sends the written events. A client that has left is found by the next write.
func (w *Writer) flush() { _ = http.NewResponseController(w.w).Flush() }
