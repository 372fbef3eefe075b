package upstream

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// StatusError is a provider's own refusal or failure, for the caller to read: a 4xx or a 5xx, or an
// error that stands in an answer with the status 200.
type StatusError struct {
	Upstream string
	Status   int // 400 to 599, but for 401, 403 and 407
	// Body is the answer's body, byte for byte, or unpacked where it is compressed by gzip. It is nil
	// where Withheld says why, where nothing is in it, and for an error within an answer.
	Body []byte
	// ContentType is that of Body; empty if the provider stated none, or more than one.
	ContentType string
	// Header has the headers of keptHeaders.
	Header http.Header
	// Type, Code, Param and Message are what ReadFailure finds in the body, and Message is else the
	// beginning of a body that is a text; empty if there is none, or if it contains the operator's key.
	Type, Code, Param, Message string
	RetryAfter                 time.Duration // 0 if the provider sent none
	// Withheld completes the sentence: the provider's answer cannot be shown, since it …
	Withheld string
	stated   bool // it stands in an answer
}

// Error is for the operator. It does not contain the provider's message, which may repeat the
// prompt.
func (e *StatusError) Error() string {
	how := fmt.Sprintf("answered with HTTP status %d", e.Status)
	if e.stated {
		how = "states an error in its answer"
	}
	return e.Upstream + " " + how + ErrorSuffix(e.Type, e.Code)
}

// Why is what the provider says of why, in words for the caller.
func (e *StatusError) Why() string {
	if e.Withheld != "" {
		return fmt.Sprintf("The model's provider reports a failure, with the status %d. Its answer cannot be shown, since it %s.", e.Status,
			e.Withheld)
	}
	return cmp.Or(e.Message, fmt.Sprintf("The model's provider reports a failure, with the status %d, and does not say why.", e.Status))
}

// WithheldKey is why an answer is withheld in which the operator's key stands.
const WithheldKey = "contains the key of this gateway's operator"

const (
	// maxErrorBody bounds the body of an error, and maxErrorText the text that is taken for a message, in
	// bytes.
	maxErrorBody = 64 << 10
	maxErrorText = 1 << 10
)

// newStatusError reads the body of an answer, and parses it as far as possible.
func newStatusError(upstream string, secrets []string, response *http.Response, body io.Reader, after time.Duration) *StatusError {
	e := &StatusError{Upstream: upstream, Status: response.StatusCode, RetryAfter: after, Header: keptHeaders(response.Header, secrets)}
	var raw []byte
	if raw, e.Withheld = readErrorBody(response, body); e.Withheld != "" {
		return e
	}
	if mentions(raw, secrets) {
		e.Withheld = WithheldKey
		return e
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(raw), "\uFFFD")), " ")
	if text == "" {
		return e
	}
	e.Body = raw
	if stated := response.Header.Values("Content-Type"); len(stated) == 1 && isKeptValue(stated[0], secrets) {
		e.ContentType = stated[0]
	}
	failure := ReadFailure(raw)
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	e.Type, e.Code, e.Param, e.Message = failure.Type, failure.Code, failure.Param, cmp.Or(failure.Message, text)
	return e
}

// readErrorBody reads the body of an error, or says why it is withheld. Some providers compress it
// though that was not asked for.
func readErrorBody(response *http.Response, body io.Reader) (raw []byte, withheld string) {
	switch response.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip", "x-gzip":
		unpacked, err := gzip.NewReader(io.LimitReader(body, maxErrorBody))
		if err != nil {
			return nil, "is compressed, and cannot be unpacked"
		}
		body = unpacked
	default:
		return nil, "is compressed"
	}
	raw, err := io.ReadAll(io.LimitReader(body, maxErrorBody+1))
	switch {
	case len(raw) > maxErrorBody:
		return nil, fmt.Sprintf("is longer than %d bytes", maxErrorBody)
	case err != nil:
		return nil, "broke off"
	}
	return raw, ""
}

// StatedFailure is the error for a failure that a provider states in an answer with the status 200; each of
// its words may be empty. Its code may be the status that it stands for.
func StatedFailure(route *Route, f Failure, mentionsKey func(text []byte) bool) error {
	upstream := route.Upstream
	status, err := strconv.Atoi(f.Code)
	if err != nil || status < http.StatusBadRequest || status > 599 {
		status = http.StatusBadGateway
	}
	suffix := ErrorSuffix(f.Type, f.Code)
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return misconfigured("%s states an error in its answer%s: its key, or what the key may do", upstream, suffix)
	case f.Message == "", mentionsKey([]byte(f.Message + f.Type + f.Code + f.Param)):
		return failed("%s: an error stands in the answer%s", upstream, suffix)
	}
	return &StatusError{Upstream: upstream, Status: status, Header: http.Header{}, Type: f.Type, Code: f.Code, Param: f.Param,
		Message: f.Message, stated: true}
}
