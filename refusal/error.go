// Package refusal is the vocabulary of refusals: the stages that can refuse,
// the codes with their HTTP status, and the one error type that carries them.
//
// A refusal speaks to three audiences and keeps them apart. The code is for
// machines, the message and the violations are for the model, and the cause is
// for the operator alone: it is never marshalled. The package imports nothing
// but the standard library, so that every other package can speak it.
package refusal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Error is one refusal. A nil *Error is no refusal. It is immutable once it
// has left the package that built it.
type Error struct {
	Code    Code
	Stage   Stage
	Message string // for the model: how to correct the call, in one sentence
	// Violations are sorted (see Sort) and may be empty.
	Violations []Violation
	// DidYouMean holds names that this agent may use; offered, never used.
	DidYouMean []string
	// RetryAfterMS is the time in milliseconds after which the same request can pass; 0
	// means unknown.
	RetryAfterMS int64
	// Cause is for the operator's log. It never reaches model or caller.
	Cause error
}

// Violation is one fault at one place of the completion.
type Violation struct {
	Code Code
	Path string // JSON Pointer (RFC 6901) from the completion's root
	// Offset is a byte offset in the raw completion; a negative one (a native call has no
	// completion) is not marshalled.
	Offset  int
	Message string
}

// New returns a refusal with the stage that owns the code.
func New(code Code, message string) *Error {
	return &Error{Code: code, Stage: codes[code].stage, Message: message}
}

// At returns a refusal of a stage other than the one that owns the code, as
// for WrongType in the envelope or Internal in a named check.
func At(stage Stage, code Code, message string) *Error {
	return &Error{Code: code, Stage: stage, Message: message}
}

// WithCause returns a copy that carries the operator's cause.
func (e *Error) WithCause(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// From turns any error into a refusal. A refusal, wrapped or not, is returned unchanged;
// every other error becomes Internal at the given stage, with details only for the
// operator.
func From(stage Stage, err error) *Error {
	if err == nil {
		return nil
	}
	var refused *Error
	if errors.As(err, &refused) && refused != nil {
		return refused
	}
	return At(stage, Internal, "Callgate could not judge this. It was not executed; the operator has been told.").WithCause(err)
}

// Error is the operator's line: stage, code, message and cause.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %s: %v", e.Stage, e.Code, e.Message, e.Cause)
	}
	return fmt.Sprintf("%s: %s: %s", e.Stage, e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Status returns the HTTP status of the refusal.
func (e *Error) Status() int {
	if e.Code == ThreadRequired && e.Stage == Request { // the request alone shows it
		return http.StatusBadRequest
	}
	return e.Code.Status()
}

// Retryable reports whether the same agent may try again: after correcting the completion
// (stages parse and schema), or after waiting. A canceled request has no client that could.
func (e *Error) Retryable() bool {
	return (e.Stage == Parse || e.Stage == Schema) && e.Code != Canceled || e.RetryAfterMS > 0
}

// encodedError is the shape of an error in JSON.
type encodedError struct {
	Code         Code               `json:"code"`
	Stage        Stage              `json:"stage"`
	Message      string             `json:"message"`
	Violations   []encodedViolation `json:"violations,omitempty"`
	DidYouMean   []string           `json:"did_you_mean,omitempty"`
	RetryAfterMS int64              `json:"retry_after_ms,omitempty"`
	Retryable    bool               `json:"retryable"`
}

type encodedViolation struct {
	Code    Code   `json:"code"`
	Path    string `json:"path"`
	Offset  *int   `json:"offset,omitempty"`
	Message string `json:"message,omitempty"`
}

// MarshalJSON writes the shape that goes back to callers and models. Absent
// optional members are omitted. A lone violation has no message of its own: that of the refusal says
// the same.
func (e *Error) MarshalJSON() ([]byte, error) {
	out := encodedError{Code: e.Code, Stage: e.Stage, Message: e.Message, DidYouMean: e.DidYouMean, RetryAfterMS: e.RetryAfterMS,
		Retryable: e.Retryable()}
	for i := range e.Violations {
		v := &e.Violations[i]
		w := encodedViolation{Code: v.Code, Path: v.Path}
		if len(e.Violations) > 1 {
			w.Message = v.Message
		}
		if v.Offset >= 0 {
			w.Offset = &v.Offset
		}
		out.Violations = append(out.Violations, w)
	}
	// Not escaped for HTML: messages contain marks such as <tool_call> unchanged.
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON reads the output of MarshalJSON, which never has the cause.
func (e *Error) UnmarshalJSON(b []byte) error {
	var in encodedError
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*e = Error{Code: in.Code, Stage: in.Stage, Message: in.Message, DidYouMean: in.DidYouMean, RetryAfterMS: in.RetryAfterMS}
	for _, v := range in.Violations {
		offset := -1
		if v.Offset != nil {
			offset = *v.Offset
		}
		message := v.Message
		if len(in.Violations) == 1 {
			message = in.Message
		}
		e.Violations = append(e.Violations, Violation{Code: v.Code, Path: v.Path, Offset: offset, Message: message})
	}
	return nil
}

// order of codes among violations of one path.
func rank(c Code) int {
	switch c {
	case WrongType:
		return 0
	case MissingField, MissingArgument:
		return 1
	case UnexpectedField, UnexpectedArgument:
		return 2
	default:
		return 3
	}
}

// Sort orders violations by path bytes, then wrong_type, missing_*,
// unexpected_*, and the rest; equal ones by offset and message, so that the
// order is the same from run to run.
func Sort(vs []Violation) {
	slices.SortStableFunc(vs, func(a, b Violation) int {
		return cmp.Or(
			strings.Compare(a.Path, b.Path),
			cmp.Compare(rank(a.Code), rank(b.Code)),
			cmp.Compare(a.Offset, b.Offset),
			strings.Compare(a.Message, b.Message),
		)
	})
}

// Summary is the message of a refusal with several violations: the first one's, and how many
// more there are.
func Summary(violations []Violation) string {
	message := violations[0].Message
	if more := len(violations) - 1; more == 1 {
		message += " One more fault is listed in violations."
	} else if more > 1 {
		message += fmt.Sprintf(" %d more faults are listed in violations.", more)
	}
	return message
}

// EscapePointer escapes one reference token of a JSON Pointer (RFC 6901).
func EscapePointer(token string) string {
	if !strings.ContainsAny(token, "~/") {
		return token
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

// UnescapePointer decodes an escaped reference token.
func UnescapePointer(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

// Pointer returns the JSON Pointer of a path; that of the root is empty.
func Pointer(path ...string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteByte('/')
		b.WriteString(EscapePointer(token))
	}
	return b.String()
}

// Detail is the message of the first violation; of a refusal without any, its own.
func (e *Error) Detail() string {
	if len(e.Violations) > 0 {
		return e.Violations[0].Message
	}
	return e.Message
}
