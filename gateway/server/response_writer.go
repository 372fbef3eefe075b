package server

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// unreadBodyTimeout is how long net/http may wait for a body that is not read.
const unreadBodyTimeout = 500 * time.Millisecond

// chunkSize is how much of an answer its client must take within the time for that.
const chunkSize = 256 << 10

// responseWriter is the answer to one request, with everything that the server knows of the
// request: one allocation, which is never used for a second request.
//
// It bounds how long a client may take to read an answer. A client that does not
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

	values     [3]string // of headers, see setHeader
	valuesUsed int

	trace   trace
	request Request        // as far as it was read; zero once the face has it
	refused *refusal.Error // for the log
	judged  gateway.Judged // likewise
	leftOut string         // likewise: why the first of the tools that are left out is
	// judgedAttrs are the members of the log's line about it: a group in them takes no memory
	// of its own.
	judgedAttrs [3]slog.Attr
	client      string // by which the bounds count
	// identified is true once a credential or a token of the path has identified the caller.
	identified bool
	slot       *Quota // of the slot that the request has; nil is none
	body       countedBody
}

// responseOf is the answer to a request.
func responseOf(c *gin.Context) *responseWriter {
	return c.Writer.(interface{ Unwrap() http.ResponseWriter }).Unwrap().(*responseWriter)
}

// SetHeader sets a header of the answer. The name must be as net/http writes it.
func SetHeader(c *gin.Context, name, value string) { responseOf(c).setHeader(name, value) }

// SetToolsLeftOut names the tools of the request that are left out of the offer, in the head of the answer
// and in the log, which also says why the first one is.
func SetToolsLeftOut(c *gin.Context, names, why string) {
	w := responseOf(c)
	w.setHeader(HeaderToolsLeftOut, names)
	w.leftOut = why
}

// setHeader sets a header without allocating the list of its one value.
func (a *responseWriter) setHeader(name, value string) {
	n := a.valuesUsed
	if n == len(a.values) {
		a.Header()[name] = []string{value}
		return
	}
	a.values[n] = value
	a.valuesUsed++
	a.Header()[name] = a.values[n : n+1 : n+1]
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

// beforeWrite sets the deadline of the next write. Before the first, it gives the bytes of the
// body back.
func (a *responseWriter) beforeWrite() {
	if !a.body.untilAnswered {
		a.body.release(a.client)
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
func KeepBody(c *gin.Context) { responseOf(c).body.untilAnswered = true }
