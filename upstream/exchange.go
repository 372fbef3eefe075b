package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"
)

// exchange is one attempt: the context of its request, which knows how far it has come, and once its head
// was accepted its answer.
type exchange struct {
	phaseTimer
	responseTime     time.Duration
	connected, begun atomic.Bool

	body    boundedBody
	length  int64       // of the body as the head states it; negative: it does not
	header  http.Header // those of keptHeaders
	secrets []string    // of the operator's key that was sent
}

// Connected is of outbound.Progress.
func (a *exchange) Connected() {
	a.connected.Store(true)
	a.start(a.responseTime, errResponseTimeout)
}

// Answered is of outbound.Progress.
func (a *exchange) Answered() { a.begun.Store(true) }

// traced is the context of a request that net/http sends.
func (a *exchange) traced() context.Context {
	return httptrace.WithClientTrace(a, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { a.Connected() }, GotFirstResponseByte: a.Answered,
	})
}

// maxFirstRead is how much memory a body gets by its stated length alone.
const maxFirstRead = 16 << 10

// readAll reads the whole body.
func (a *exchange) readAll() ([]byte, error) {
	b := make([]byte, 0, max(min(a.length, maxFirstRead)+1, 512)) // one more, for a read that finds the end
	for {
		n, err := a.body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return b, err
		case len(b) == cap(b):
			b = slices.Grow(b, len(b)/2)
		}
	}
}

// mentionsKey reports whether the operator's key stands in a text of the answer, also behind the escapes
// of JSON. A provider's error that does is not passed on.
func (a *exchange) mentionsKey(text []byte) bool { return mentions(text, a.secrets) }

// close ends the exchange. It is safe to call twice.
func (a *exchange) close() {
	a.end()
	a.body.close()
}
