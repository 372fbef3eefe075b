package turns

import (
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/wrapper"
)

// maxBuffered bounds how much of a stream is buffered while more of it is available. The bytes of
// one read of the model's connection are sent by one write.
const maxBuffered = 31 << 10

// EventWriter writes a stream of events to the application. A face appends whole events to
// Buffer, and says when they are sent. The head of the answer goes out with the first of them:
// until then a failure can still be an error with its status. A disconnected application is
// detected elsewhere: the request's context ends. It is for one goroutine.
type EventWriter struct {
	Buffer []byte

	room      *[]byte // the buffer as it is kept
	c         *gin.Context
	run       *Run
	writer    *sse.Writer
	begun     bool
	unflushed bool // something was written after the last flush
}

// buffers are the buffers of streams that have ended.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, 4<<10)
	return &b
}}

// NewEventWriter returns the writer of a stream, which is released at its end. From now on the
// body of the request is kept: a stream may begin before the last turn is requested.
func (r *Run) NewEventWriter(c *gin.Context) EventWriter {
	server.KeepBody(c)
	w := sse.NewWriter(c.Writer, WriteTimeout, time.Second)
	r.sentAt = time.Now() // nothing is due yet
	w.Connection = server.GathererOf(c)
	room := buffers.Get().(*[]byte)
	return EventWriter{c: c, run: r, writer: w, Buffer: *room, room: room}
}

// Release gives the buffer back. Nothing can be sent any more.
func (w *EventWriter) Release() {
	if cap(w.Buffer) <= 2*maxBuffered {
		*w.room = w.Buffer[:0]
		buffers.Put(w.room)
	}
	w.Buffer, w.room = nil, nil
}

// Begun reports whether the head of the answer was sent, with the status 200.
func (w *EventWriter) Begun() bool { return w.begun }

// writeHead sends the head of the answer.
func (w *EventWriter) writeHead() {
	if w.begun {
		return
	}
	w.begun = true
	w.run.SetHeaders(w.c)
	w.writer.Begin("text/event-stream; charset=utf-8", "no-cache")
}

// Send writes and flushes the buffer.
func (w *EventWriter) Send() {
	w.writeHead()
	_ = w.writer.Send(wrapper.Escape(w.Buffer))
	w.Buffer, w.unflushed, w.run.sentAt = w.Buffer[:0], false, time.Now()
}

// Write writes the buffer without a flush: more follows without waiting, or the answer ends, and
// net/http flushes it with the end of the body.
func (w *EventWriter) Write() {
	w.writeHead()
	_ = w.writer.Write(wrapper.Escape(w.Buffer))
	w.Buffer, w.unflushed = w.Buffer[:0], true
}

// Flush sends what has not been sent yet, if there is something.
func (w *EventWriter) Flush() {
	if len(w.Buffer) > 0 || w.unflushed {
		w.Send()
	}
}

// Pace is called when the events of one read of the model were appended. While more is ready
// to be read, released text is sent together with it; only the first events are not held for
// that.
func (w *EventWriter) Pace(ready bool) {
	switch {
	case !w.begun || !ready:
		w.Flush()
	case len(w.Buffer) > maxBuffered:
		w.Write()
	}
}

// Fail sends an event in which a stream that has begun ends by a failure, and has the line of
// the request name it.
func (w *EventWriter) Fail(f *Failure, event []byte) {
	f.Log(w.c)
	w.Buffer = append(w.Buffer, event...)
	w.Send()
}
