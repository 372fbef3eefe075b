package server

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// unreadBodyTimeout is how long net/http may wait for a body that is not read.
const unreadBodyTimeout = 500 * time.Millisecond

// chunkSize is how much of an answer its client must take within the time for that.
const chunkSize = 256 << 10

// responseWriter bounds how long a client may take to read an answer. A client that does not
// read holds its slot no longer than Options.WriteTimeout: then the connection is closed. A
// long answer has that time for each chunk, and a stream for each event. A face that sets
// deadlines itself overrides this.
type responseWriter struct {
	http.ResponseWriter
	timeout       time.Duration
	deadline      time.Time
	faceDeadlines bool // the face sets the deadlines
	// unreadBody says that there is a body which was not read to its end. net/http reads a
	// little of it when the answer begins, so that its sender hears the answer.
	unreadBody bool
	// onBegin is called once, before anything is written; nil is nothing.
	onBegin func()
}

// responseOf is the answer to a request.
func responseOf(c *gin.Context) *responseWriter {
	return c.Writer.(interface{ Unwrap() http.ResponseWriter }).Unwrap().(*responseWriter)
}

func (a *responseWriter) WriteHeader(status int) {
	a.beforeWrite()
	a.ResponseWriter.WriteHeader(status)
}

func (a *responseWriter) Write(p []byte) (n int, err error) {
	for {
		a.beforeWrite()
		piece := p[n:min(n+chunkSize, len(p))]
		written, err := a.ResponseWriter.Write(piece)
		if n += written; err != nil || n == len(p) {
			return n, err
		}
	}
}

// Flush sends the written bytes.
func (a *responseWriter) Flush() {
	a.beforeWrite()
	_ = http.NewResponseController(a.ResponseWriter).Flush() // a client that has left is noticed by the next write
}

// SetWriteDeadline is for the face.
func (a *responseWriter) SetWriteDeadline(until time.Time) error {
	a.faceDeadlines = true
	return http.NewResponseController(a.ResponseWriter).SetWriteDeadline(until)
}

// Unwrap leads to the connection.
func (a *responseWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// beforeWrite sets the deadline of the next write.
func (a *responseWriter) beforeWrite() {
	if a.onBegin != nil {
		begins := a.onBegin
		a.onBegin = nil
		begins()
	}
	if a.unreadBody {
		a.unreadBody = false
		_ = http.NewResponseController(a.ResponseWriter).SetReadDeadline(time.Now().Add(unreadBodyTimeout))
	}
	if a.faceDeadlines {
		return
	}
	// Setting a deadline costs more than a small write, so each deadline is used for a
	// while.
	if until := time.Now().Add(a.timeout); until.Sub(a.deadline) > a.timeout/32 {
		// A connection that cannot bear deadlines is one that a test made.
		_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(until)
		a.deadline = until
	}
}

// KeepBody has the body of a request count until it is answered, and not only until its
// answer begins: for faces that still need the body then.
func KeepBody(c *gin.Context) { responseOf(c).onBegin = nil }
