package outbound

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"strings"
)

const (
	plainStatus     = "HTTP/1.1 200 OK\r\n"
	maxPlainHeaders = 8
)

// plainResponse is a response, its header's values and its body in one piece of memory.
type plainResponse struct {
	http.Response
	values  [maxPlainHeaders]string
	body    plainBody
	chunked chunkedBody
}

// plainBody is a body of known length. Its end comes with its last byte, as with net/http.
type plainBody struct{ io.LimitedReader }

func (b *plainBody) Read(p []byte) (int, error) {
	n, err := b.LimitedReader.Read(p)
	switch {
	case err == io.EOF && b.N > 0: //nolint:errorlint // as net/http compares it
		err = io.ErrUnexpectedEOF
	case err == nil && n > 0 && b.N == 0:
		err = io.EOF
	}
	return n, err
}

func (*plainBody) Close() error { return nil }

// chunkedBody is a body that comes in chunks, and ends with a trailer, which is nearly always empty.
type chunkedBody struct {
	io.Reader // of the chunks
	from      *bufio.Reader
	response  *http.Response
}

// codings are those of a body that comes in chunks.
var codings = []string{"chunked"}

func (b *chunkedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF { //nolint:errorlint // as net/http compares it
		b.Reader = http.NoBody
		if broken := b.readTrailer(); broken != nil {
			err = broken
		}
	}
	return n, err
}

func (*chunkedBody) Close() error { return nil }

// readTrailer reads what stands behind the last chunk, which the buffer must have room for.
func (b *chunkedBody) readTrailer() error {
	if b.from == nil {
		return nil // it was read
	}
	from := b.from
	b.from = nil
	if next, err := from.Peek(2); err != nil || string(next) == "\r\n" {
		_, _ = from.Discard(len(next))
		return unexpected(err)
	}
	for arrived := 4; ; arrived = from.Buffered() + 1 {
		all, err := from.Peek(max(arrived, from.Buffered()))
		if bytes.Contains(all, []byte("\r\n\r\n")) {
			break
		}
		if err != nil {
			return unexpected(err)
		}
	}
	trailer, err := textproto.NewReader(from).ReadMIMEHeader()
	if err == nil {
		b.response.Trailer = http.Header(trailer)
	}
	return unexpected(err)
}

// unexpected is an error within a response.
func unexpected(err error) error {
	if err == io.EOF { //nolint:errorlint // as net/http compares it
		return io.ErrUnexpectedEOF
	}
	return err
}

// readPlain reads the head of a plain response, if the whole of it has come: a 200 with a length, or in chunks, and a
// few headers of which none changes how the rest is read otherwise. It returns what http.ReadResponse returns
// for the same bytes, or nil, with nothing read, for a response that is to be read by that.
func readPlain(from *bufio.Reader, request *http.Request) (*http.Response, error) {
	if _, err := from.Peek(1); err != nil {
		return nil, unexpected(err)
	}
	arrived, _ := from.Peek(from.Buffered())
	end := bytes.Index(arrived, []byte("\r\n\r\n"))
	if end < len(plainStatus) || string(arrived[:len(plainStatus)]) != plainStatus ||
		request.Method != http.MethodPost && request.Method != http.MethodGet {
		return nil, nil
	}
	r := &plainResponse{}
	header, rest := make(http.Header, maxPlainHeaders), string(arrived[len(plainStatus):end])
	length, chunked := int64(0), false
	for n, more := 0, true; more; n++ {
		var line string
		line, rest, more = strings.Cut(rest, "\r\n")
		name, value, ok := strings.Cut(line, ": ")
		if _, twice := header[name]; n == maxPlainHeaders || !ok || twice || !isPlainName(name) || !isPlainValue(value) {
			return nil, nil
		}
		switch name {
		case "Trailer", "Pragma", "Upgrade":
			return nil, nil
		case "Connection":
			if value != "keep-alive" {
				return nil, nil
			}
		case "Transfer-Encoding":
			if chunked || value != codings[0] {
				return nil, nil
			}
			chunked = true
			continue
		case "Content-Length":
			length = plainLength(value)
		}
		r.values[n] = value
		header[name] = r.values[n : n+1 : n+1]
	}
	if _, both := header["Content-Length"]; chunked == both || !chunked && length == 0 {
		return nil, nil
	}
	_, _ = from.Discard(end + len("\r\n\r\n")) // they are in the buffer
	r.Response = http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: request,
	}
	if chunked {
		r.chunked = chunkedBody{httputil.NewChunkedReader(from), from, &r.Response}
		r.Body, r.ContentLength, r.TransferEncoding = &r.chunked, -1, codings
	} else {
		r.body.R, r.body.N = from, length
		r.Body, r.ContentLength = &r.body, length
	}
	return &r.Response, nil
}

// plainLength reads a length that is not 0 and that any int holds; 0 is another.
func plainLength(value string) int64 {
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return int64(n)
	}
	return 0
}

// isPlainName reports whether the name of a header is spelled as net/http spells it.
func isPlainName(name string) bool {
	upper := true
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '-' || c >= '0' && c <= '9':
		case upper && c >= 'A' && c <= 'Z', !upper && c >= 'a' && c <= 'z':
		default:
			return false
		}
		upper = c == '-'
	}
	return name != ""
}

// isPlainValue reports whether the value of a header is visible ASCII, with spaces inside alone.
func isPlainValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' {
			return false
		}
	}
	return value != "" && value[0] != ' ' && value[len(value)-1] != ' '
}
