package upstream

import (
	"errors"
	"io"
	"net/http"
	"slices"
)

// response is an answer whose head was accepted.
type response struct {
	timeouts *phaseTimer
	body     *boundedBody
	length   int64       // of the body as the head states it; negative: it does not
	header   http.Header // those of keptHeaders
	secrets  []string    // of the operator's key that was sent
}

// maxFirstRead is how much memory a body gets by its stated length alone.
const maxFirstRead = 16 << 10

// readAll reads the whole body.
func (a *response) readAll() ([]byte, error) {
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
func (a *response) mentionsKey(text []byte) bool { return mentions(text, a.secrets) }

// close ends the exchange. It is safe to call twice.
func (a *response) close() {
	a.timeouts.end()
	a.body.close()
}
