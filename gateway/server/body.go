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

// announced refuses a body by what its head says of it, and returns its type.
func announced(r *http.Request, route Route, limit int) (media string, _ *refusal.Error) {
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

// readAll reads a body of bounded size within bounded time.
func (d *Server) readAll(c *gin.Context, body io.ReadCloser, limit int) ([]byte, *refusal.Error) {
	// A connection that cannot bear a deadline is one that a test made.
	// net/http lifts the deadline behind the body's end.
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(d.options.BodyTimeout))
	data, err := io.ReadAll(http.MaxBytesReader(c.Writer, body, int64(limit)))
	var size *http.MaxBytesError
	switch {
	case errors.As(err, &size):
		return nil, tooLarge(limit)
	case errors.Is(err, errHeld):
		c.Header("Connection", "close")
		return nil, d.shed()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, bad("The body did not arrive in time.")
	case err != nil:
		return nil, bad("The body could not be read to its end.")
	}
	answerOf(c).unread = false
	return data, nil
}

// counted is a body whose bytes are counted among those of all, as somebody's. They are
// counted as long as they are needed, which is longer than they are read: what a face
// has made of a body mostly points into it.
type counted struct {
	io.ReadCloser
	held *quota
	who  string
	more int64 // than others may hold
	read int64
}

var errHeld = errors.New("too many bytes of bodies are held")

func (b *counted) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.held.take(b.who, int64(n), b.more) {
		return 0, errHeld
	}
	b.read += int64(n)
	return n, err
}

// release gives the bytes back. It is safe to call twice.
func (b *counted) release() {
	b.held.give(b.who, b.read)
	b.read = 0
}
