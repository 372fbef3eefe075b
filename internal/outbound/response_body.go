package outbound

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// compressedSlack is by how much a compressed body may be longer than its content. It
// bounds streams that decode to nothing.
const compressedSlack = 64 << 10

// The first buffer of a body: if its length is unknown, and at most.
const (
	unknownLength  = 511
	maxFirstBuffer = 1 << 20
)

// errBodyTooLong is a compressed body longer than any that may decode to a
// result within bounds.
var errBodyTooLong = errors.New("the body is longer than any result may be")

// wireReader reads a body as it comes over the wire, at most left bytes, and keeps
// the error of the wire apart from those of the decoders above it.
type wireReader struct {
	from io.Reader
	left int64
	err  error
}

func (s *wireReader) Read(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.left <= 0 {
		s.err = errBodyTooLong
		return 0, s.err
	}
	if int64(len(b)) > s.left {
		b = b[:s.left]
	}
	n, err := s.from.Read(b)
	s.left -= int64(n)
	s.err = err
	return n, err
}

// ReadResult reads the answer of a tool that ran. It returns a result, or a refusal,
// or the error with which the connection broke.
func ReadResult(response *http.Response, call tool.Call) (tool.Result, *refusal.Error, error) {
	json, fault := parseContentType(response.Header.Values("Content-Type"))
	if fault != "" {
		return tool.Result{}, refuse.InvalidResult(call, fault), nil
	}
	limit := call.Run.MaxResultBytes
	encoding := strings.ToLower(strings.Join(response.Header.Values("Content-Encoding"), ","))
	if encoding != "" && encoding != "identity" {
		return readCompressed(response, call, encoding, json)
	}
	if response.ContentLength > limit {
		return tool.Result{}, refuse.ResultTooLarge(call), nil
	}
	body, err := readAll(response.Body, response.ContentLength, limit)
	if err != nil {
		return tool.Result{}, nil, err
	}
	return newResult(body, call, json)
}

// newResult checks a body, of which more than the limit was read if it is too long.
func newResult(body []byte, call tool.Call, json bool) (tool.Result, *refusal.Error, error) {
	switch {
	case int64(len(body)) > call.Run.MaxResultBytes:
		return tool.Result{}, refuse.ResultTooLarge(call), nil
	case !json && !utf8.Valid(body):
		return tool.Result{}, refuse.InvalidResult(call, "its text is not UTF-8"), nil
	}
	return tool.Result{Body: body, JSON: json}, nil, nil
}

// readAll reads to the end, or more than limit bytes. The buffer has room for the expected
// bytes, where they are known, and for one more, which finds the end.
func readAll(from io.Reader, expected, limit int64) ([]byte, error) {
	if expected < 0 {
		expected = unknownLength
	}
	b := make([]byte, 0, min(expected+1, maxFirstBuffer))
	for {
		n, err := from.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF || int64(len(b)) > limit:
			return b, nil
		case err != nil:
			return nil, err
		case len(b) == cap(b):
			b = append(b, 0)[:len(b)]
		}
	}
}

// readCompressed is ReadResult for a body with a content encoding.
func readCompressed(response *http.Response, call tool.Call, encoding string, json bool) (tool.Result, *refusal.Error, error) {
	limit := call.Run.MaxResultBytes
	wire := &wireReader{from: response.Body, left: limit + compressedSlack}
	var decoded io.Reader
	var err error
	switch encoding {
	case "gzip", "x-gzip":
		decoded, err = gzip.NewReader(wire)
	case "deflate":
		decoded, err = zlib.NewReader(wire)
	default:
		return tool.Result{}, refuse.InvalidResult(call, "its content encoding is not supported"), nil
	}
	if err == nil {
		var body []byte
		if body, err = readAll(decoded, -1, limit); err == nil {
			return newResult(body, call, json)
		}
	}
	switch {
	case errors.Is(wire.err, errBodyTooLong):
		return tool.Result{}, refuse.ResultTooLarge(call), nil
	case wire.err != nil && !errors.Is(wire.err, io.EOF):
		return tool.Result{}, nil, wire.err
	default:
		return tool.Result{}, refuse.InvalidResult(call, "its compressed body cannot be decoded"), nil
	}
}

// parseContentType parses the content type. A fault describes why it is not accepted.
func parseContentType(values []string) (json bool, fault string) {
	switch len(values) {
	case 0:
		return false, ""
	case 1:
	default:
		return false, "it names more than one content type"
	}
	switch values[0] {
	case "application/json", "application/json; charset=utf-8":
		return true, ""
	}
	media, parameters, err := mime.ParseMediaType(values[0])
	if err != nil {
		return false, "its content type cannot be read"
	}
	if !netx.IsUTF8(parameters["charset"]) {
		return false, "it is in an encoding of characters other than UTF-8"
	}
	switch {
	case media == "application/json", media == "text/json", strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"):
		return true, ""
	case strings.HasPrefix(media, "text/"):
		return false, ""
	default:
		return false, "it is neither JSON nor text by its content type"
	}
}
