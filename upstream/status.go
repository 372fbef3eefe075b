package upstream

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// StatusError is a provider's own refusal of a request, for the caller to read.
type StatusError struct {
	Upstream string
	Status   int // 400 to 499, but for 401, 403 and 407
	// What the body said, as OpenAI's error object has it; empty where it said
	// nothing that can be read, or repeated the operator's key.
	Type, Code, Param, Message string
	RetryAfter                 time.Duration // 0: the provider named none
}

// Error is the operator's line. What the provider said is not in it: it may
// repeat the prompt.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s answered with HTTP status %d%s", e.Upstream, e.Status, errorSuffix(e.Type, e.Code))
}

const (
	maxErrorBody    = 64 << 10
	maxErrorMessage = 4 << 10
	maxErrorWord    = 64
	maxRetryAfter   = 24 * time.Hour
)

// newStatusError reads the body of a refusal as far as it can be read.
func newStatusError(upstream, key string, response *http.Response, body io.Reader, after time.Duration) *StatusError {
	e := &StatusError{Upstream: upstream, Status: response.StatusCode, RetryAfter: after}
	if response.Header.Get("Content-Encoding") != "" {
		return e
	}
	raw, err := io.ReadAll(io.LimitReader(body, maxErrorBody+1))
	if err != nil || len(raw) > maxErrorBody {
		return e
	}
	said := readFailure(raw)
	// The words are searched as they were decoded: an escape must not hide a key.
	for _, word := range []string{said.Type, said.Code, said.Param, said.Message} {
		if key != "" && strings.Contains(word, key) {
			return e
		}
	}
	e.Type, e.Code, e.Param, e.Message = said.Type, said.Code, said.Param, said.Message
	return e
}

// failure is an error object as OpenAI writes it.
type failure struct{ Type, Code, Param, Message string }

// readFailure reads {"error": {...}}, and {"error": "…"} and {"message": "…"} as
// some providers write it. What is not strict JSON says nothing.
func readFailure(raw []byte) failure {
	var (
		f failure
		r reader
	)
	// A fault leaves what came before it unsaid, too.
	if r.document(raw, func(name []byte) error {
		switch {
		case string(name) == "error" && r.kind() == '{':
			return r.object(func(name []byte) error { return r.failureMember(&f, name) })
		case string(name) == "error" && r.kind() == '"':
			return r.word(&f.Message)
		}
		return r.failureMember(&f, name)
	}) != nil {
		return failure{}
	}
	f.Type, f.Code, f.Param, f.Message = truncate(f.Type, maxErrorWord), truncate(f.Code, maxErrorWord), truncate(f.Param, maxErrorMessage), truncate(f.Message, maxErrorMessage)
	return f
}

// failureMember reads one member of an error object. A code may be a number.
func (r *reader) failureMember(f *failure, name []byte) error {
	switch string(name) {
	case "type":
		return r.word(&f.Type)
	case "code":
		return r.word(&f.Code)
	case "param":
		return r.word(&f.Param)
	case "message":
		return r.word(&f.Message)
	}
	return r.skip()
}

// word reads a string or a number; anything else says nothing.
func (r *reader) word(into *string) error {
	switch r.kind() {
	case '"':
		s, err := r.text()
		*into = s
		return err
	case '0':
		raw, err := r.value()
		*into = string(raw)
		return err
	}
	return r.skip()
}

// truncate cuts a text between characters.
func truncate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// errorSuffix shows the words of a provider's error in a line of the operator, where
// they are no more than names.
func errorSuffix(kind, code string) string {
	said := ""
	if isName(kind) {
		said += ", type " + kind
	}
	if isName(code) {
		said += ", code " + code
	}
	return said
}

// retryAfter reads a Retry-After header (RFC 9110, section 10.2.3): seconds or a
// date; 0 where there is none that can be read. A time that is past is the
// shortest pause.
func retryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(header); err == nil {
		wait = date.Sub(now)
	} else {
		return 0
	}
	return min(max(wait, firstPause), maxRetryAfter)
}
