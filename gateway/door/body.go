package door

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/refusal"
)

// readBody reads the body of a request, of a type that the route takes.
func (d *Door) readBody(c *gin.Context, route Route, body io.ReadCloser, a *Asked) *refusal.Error {
	r := c.Request
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || !slices.Contains(route.Media, media) || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return refusal.New(refusal.UnsupportedMediaType, fmt.Sprintf("The Content-Type must be %s, in UTF-8.", route.Expected))
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return refusal.New(refusal.UnsupportedMediaType, "The Content-Encoding must be identity.")
	}
	data, refused := d.readAll(c, body, route.MaxBody())
	a.Body, a.Media = data, media
	return refused
}

// readAll reads a body of bounded size within bounded time.
func (d *Door) readAll(c *gin.Context, body io.ReadCloser, limit int) ([]byte, *refusal.Error) {
	tooLarge := refusal.New(refusal.RequestTooLarge, fmt.Sprintf("The body is longer than %d bytes.", limit))
	if c.Request.ContentLength > int64(limit) {
		c.Header("Connection", "close") // what follows is not read
		return nil, tooLarge
	}
	// A connection that cannot bear a deadline is one that a test made.
	// net/http lifts the deadline behind the body's end.
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(d.options.BodyTime))
	data, err := io.ReadAll(http.MaxBytesReader(c.Writer, body, int64(limit)))
	var size *http.MaxBytesError
	switch {
	case errors.As(err, &size):
		return nil, tooLarge
	case errors.Is(err, errHeld):
		c.Header("Connection", "close")
		return nil, d.shed()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, bad("The body did not arrive in time.")
	case err != nil:
		return nil, bad("The body could not be read to its end.")
	}
	return data, nil
}

// counted is a body whose bytes are counted among those of all.
type counted struct {
	io.ReadCloser
	held *atomic.Int64
	most int64
	read int64
}

var errHeld = errors.New("too many bytes of bodies are held")

func (b *counted) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if b.held.Add(int64(n)) > b.most {
		return n, errHeld
	}
	return n, err
}
