package server

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// unreadTime is how long is waited for a body that nobody here reads.
const unreadTime = 500 * time.Millisecond

// pieceSize is how much of an answer its client must take within the time for that.
const pieceSize = 256 << 10

// answer is what a request is answered with, on its way to the client. A client that
// does not take it holds its slot no longer than Options.WriteTimeout: then the connection
// is cut. A long answer has that time for each piece, and so has each event of a stream.
// A face that sets deadlines of its own is left to it.
type answer struct {
	http.ResponseWriter
	time  time.Duration
	until time.Time
	own   bool // the face sets the deadlines
	// unread says that there is a body which was not read to its end. net/http reads a
	// little of it when the answer begins, so that its sender hears the answer.
	unread bool
	// begins is called once, before anything is written; nil is nothing.
	begins func()
}

// answerOf is the answer to a request.
func answerOf(c *gin.Context) *answer {
	return c.Writer.(interface{ Unwrap() http.ResponseWriter }).Unwrap().(*answer)
}

func (a *answer) WriteHeader(status int) {
	a.begin()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (n int, err error) {
	for {
		a.begin()
		piece := p[n:min(n+pieceSize, len(p))]
		written, err := a.ResponseWriter.Write(piece)
		if n += written; err != nil || n == len(p) {
			return n, err
		}
	}
}

// Flush sends what was written.
func (a *answer) Flush() {
	a.begin()
	_ = http.NewResponseController(a.ResponseWriter).Flush() // a client that has left is noticed by the next write
}

// SetWriteDeadline is for the face.
func (a *answer) SetWriteDeadline(until time.Time) error {
	a.own = true
	return http.NewResponseController(a.ResponseWriter).SetWriteDeadline(until)
}

// Unwrap leads to the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// begin gives the client its time for what is written next.
func (a *answer) begin() {
	if a.begins != nil {
		begins := a.begins
		a.begins = nil
		begins()
	}
	if a.unread {
		a.unread = false
		_ = http.NewResponseController(a.ResponseWriter).SetReadDeadline(time.Now().Add(unreadTime))
	}
	if a.own {
		return
	}
	// To set a deadline costs more than to write a little: one stands for a while.
	if until := time.Now().Add(a.time); until.Sub(a.until) > a.time/32 {
		// A connection that cannot bear deadlines is one that a test made.
		_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(until)
		a.until = until
	}
}

// KeepBody has the body of a request count until it is answered, and not only until its
// answer begins: for faces that still need the body then.
func KeepBody(c *gin.Context) { answerOf(c).begins = nil }
