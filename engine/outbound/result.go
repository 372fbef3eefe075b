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

	"github.com/callgate/callgate/engine/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// compressedSlack is by how much a compressed body may be longer than its content. It
// bounds streams that decode to nothing.
const compressedSlack = 64 << 10

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
	wire := &wireReader{from: response.Body, left: limit + compressedSlack}
	decoded, fault, err := decompress(response, wire, limit)
	if err == nil && fault == "" {
		var body []byte
		if body, err = io.ReadAll(io.LimitReader(decoded, limit+1)); err == nil {
			switch {
			case int64(len(body)) > limit:
				return tool.Result{}, refuse.ResultTooLarge(call), nil
			case !json && !utf8.Valid(body):
				return tool.Result{}, refuse.InvalidResult(call, "its text is not UTF-8"), nil
			}
			return tool.Result{Body: body, JSON: json}, nil, nil
		}
	}
	switch {
	case errors.Is(err, errBodyTooLong), errors.Is(wire.err, errBodyTooLong):
		return tool.Result{}, refuse.ResultTooLarge(call), nil
	case fault != "":
		return tool.Result{}, refuse.InvalidResult(call, fault), nil
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
	media, parameters, err := mime.ParseMediaType(values[0])
	if err != nil {
		return false, "its content type cannot be read"
	}
	if charset := strings.ToLower(parameters["charset"]); charset != "" && charset != "utf-8" && charset != "us-ascii" {
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

// decompress decodes the content encoding. A fault reports an unknown one.
func decompress(response *http.Response, wire *wireReader, limit int64) (decoded io.Reader, fault string, err error) {
	switch encoding := strings.ToLower(strings.Join(response.Header.Values("Content-Encoding"), ",")); encoding {
	case "", "identity":
		if response.ContentLength > limit {
			return nil, "", errBodyTooLong
		}
		return wire, "", nil
	case "gzip", "x-gzip":
		decoded, err = gzip.NewReader(wire)
		return decoded, "", err
	case "deflate":
		decoded, err = zlib.NewReader(wire)
		return decoded, "", err
	default:
		return nil, "its content encoding is not supported", nil
	}
}
