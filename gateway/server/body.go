package server

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/refusal"
)

// checkBodyHeaders checks the headers of a body and returns its type.
func checkBodyHeaders(r *http.Request, route Route, limit int) (media string, _ *refusal.Error) {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || !slices.Contains(route.MediaTypes, media) || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return "", refusal.New(refusal.UnsupportedMediaType, fmt.Sprintf("The Content-Type must be %s, in UTF-8.", route.ExpectedMedia))
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return "", refusal.New(refusal.UnsupportedMediaType, "The Content-Encoding must be identity.")
	}
	if r.ContentLength > int64(limit) {
		return "", tooLarge(limit)
	}
	return media, nil
}

func tooLarge(limit int) *refusal.Error {
	return refusal.New(refusal.RequestTooLarge, fmt.Sprintf("The body is longer than %d bytes.", limit))
}

// readBody reads a body of bounded size within bounded time.
func (s *Server) readBody(c *gin.Context, body io.ReadCloser, limit int) ([]byte, *refusal.Error) {
	// A connection that cannot bear a deadline is one that a test made.
	// net/http lifts the deadline behind the body's end.
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(s.options.BodyTimeout))
	data, err := io.ReadAll(http.MaxBytesReader(c.Writer, body, int64(limit)))
	var size *http.MaxBytesError
	switch {
	case errors.As(err, &size):
		return nil, tooLarge(limit)
	case errors.Is(err, errTooManyBytes):
		c.Header("Connection", "close")
		return nil, s.overloaded()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, bad("The body did not arrive in time.")
	case err != nil:
		return nil, bad("The body could not be read to its end.")
	}
	responseOf(c).unreadBody = false
	return data, nil
}

// countedBody counts the bytes of a body in a quota, for its client. They count longer than
// they are read: the values that a face has read mostly point into them.
type countedBody struct {
	io.ReadCloser
	quota  *quota
	client string
	extra  int64 // than others may hold
	read   int64
}

var errTooManyBytes = errors.New("too many bytes of bodies are held")

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.quota.take(b.client, int64(n), b.extra) {
		return 0, errTooManyBytes
	}
	b.read += int64(n)
	return n, err
}

// release gives the bytes back. It is safe to call twice.
func (b *countedBody) release() {
	b.quota.release(b.client, b.read)
	b.read = 0
}
