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

	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/refusal"
)

// checkBodyHeaders checks the headers of a body and returns its type.
func checkBodyHeaders(r *http.Request, route Route, limit int) (media string, _ *refusal.Error) {
	media = first(r.Header["Content-Type"])
	if !slices.Contains(route.MediaTypes, media) {
		var params map[string]string
		var err error
		media, params, err = mime.ParseMediaType(media)
		if err != nil || !slices.Contains(route.MediaTypes, media) || !netx.IsUTF8(params["charset"]) {
			return "", refusal.New(refusal.UnsupportedMediaType, fmt.Sprintf("The Content-Type must be %s, in UTF-8.", route.ExpectedMedia))
		}
	}
	if encoding := first(r.Header["Content-Encoding"]); encoding != "" && !strings.EqualFold(encoding, "identity") {
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

// firstRead is how much memory a body gets before any of it has come: a Content-Length alone
// must not cost more.
const firstRead = 4 << 10

// readBody reads a body of bounded size within bounded time, into memory of its own: a face
// keeps it as long as it likes. The bytes count in s.bodyBytes until w.body is released.
func (s *Server) readBody(w *responseWriter, r *http.Request, route Route, limit int) ([]byte, *refusal.Error) {
	// A connection that cannot bear a deadline is one that a test made.
	// net/http lifts the deadline behind the body's end.
	_ = http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Now().Add(s.options.BodyTimeout))
	w.body.quota = s.bodyBytes
	length := int(r.ContentLength) // at which net/http ends the body
	if length < 0 {
		length = limit
	}
	data := make([]byte, 0, min(length, firstRead))
	for {
		n, err := r.Body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if !w.body.take(w.client, int64(n), s.extraBodyBytes(route)) {
			w.setHeader("Connection", "close")
			return nil, s.overloaded()
		}
		switch {
		case len(data) > limit:
			return nil, tooLarge(limit)
		case err == io.EOF:
			w.unreadBody = false
			return data, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, bad("The body did not arrive in time.")
		case err != nil:
			return nil, bad("The body could not be read to its end.")
		case len(data) == cap(data):
			data = slices.Grow(data, max(1, min(len(data), length-len(data))))
		}
	}
}
