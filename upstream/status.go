package upstream

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/callgate/callgate/upstream/chat"
)

// StatusError is a provider's 4xx answer, for the caller to read, and to a request of Post or
// Open also a 5xx.
type StatusError struct {
	Upstream string
	Status   int // 400 to 599, but for 401, 403 and 407
	// Body is the answer's body, byte for byte; nil if it is longer than 64 KiB, compressed, or
	// contains the operator's key.
	Body []byte
	// ContentType is that of Body; empty if the provider stated none, or more than one.
	ContentType string
	// Header has the headers of keptHeaders.
	Header http.Header
	// Fields of OpenAI's error object in the body; empty if the body cannot be parsed, or
	// contains the operator's key.
	Type, Code, Param, Message string
	RetryAfter                 time.Duration // 0 if the provider sent none
}

// Error is for the operator. It does not contain the provider's message, which may repeat the
// prompt.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s answered with HTTP status %d%s", e.Upstream, e.Status, chat.ErrorSuffix(e.Type, e.Code))
}

// maxErrorBody bounds the body of an error, in bytes.
const maxErrorBody = 64 << 10

// newStatusError reads the body of an answer, and parses it as far as possible.
func newStatusError(upstream string, secrets []string, response *http.Response, body io.Reader, after time.Duration) *StatusError {
	e := &StatusError{Upstream: upstream, Status: response.StatusCode, RetryAfter: after, Header: keptHeaders(response.Header, secrets)}
	if response.Header.Get("Content-Encoding") != "" {
		return e
	}
	raw, err := io.ReadAll(io.LimitReader(body, maxErrorBody+1))
	if err != nil || len(raw) > maxErrorBody || mentions(raw, secrets) {
		return e
	}
	e.Body = raw
	if stated := response.Header.Values("Content-Type"); len(stated) == 1 && isKeptValue(stated[0], secrets) {
		e.ContentType = stated[0]
	}
	failure := chat.ReadFailure(raw)
	e.Type, e.Code, e.Param, e.Message = failure.Type, failure.Code, failure.Param, failure.Message
	return e
}
