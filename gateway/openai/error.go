package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// failure is why a request has no completion.
type failure struct {
	refused *refusal.Error
	param   string // the part of the request that is wrong
	result  []byte // the last feedback to the model, if a completion was refused
	// retryable says that the same request may be sent once more: nothing was acted on.
	retryable bool
	// upstreamStatus is a refusal of the model's provider, which goes to the application.
	upstreamStatus *upstream.StatusError
}

func (f *failure) Error() string {
	if f.upstreamStatus != nil {
		return f.upstreamStatus.Error()
	}
	return f.refused.Error()
}

// status is the HTTP status of the answer.
func (f *failure) status() int {
	if f.upstreamStatus != nil {
		return f.upstreamStatus.Status
	}
	return f.refused.Status()
}

// bad is a fault of the request, at a parameter.
func bad(param, format string, args ...any) *failure {
	return &failure{refused: refusal.New(refusal.BadRequest, fmt.Sprintf(format, args...)), param: param}
}

// failureOf turns an error that came before anything was acted on into a failure.
func failureOf(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	var statusErr *upstream.StatusError
	if errors.As(err, &statusErr) {
		return &failure{upstreamStatus: statusErr, retryable: true}
	}
	refused := refusal.From(refusal.Any, err)
	return &failure{refused: refused, retryable: refused.RetryAfterMS > 0 || refused.Code == refusal.UpstreamUnavailable || refused.Code == refusal.UpstreamTimeout}
}

// body is an error in OpenAI's shape, with the refusal's members for models beside it.
func (f *failure) body() []byte {
	type details struct {
		Message  string          `json:"message"`
		Type     string          `json:"type"`
		Param    *string         `json:"param"`
		Code     *string         `json:"code"`
		Callgate json.RawMessage `json:"callgate,omitempty"`
	}
	var d details
	if f.upstreamStatus != nil {
		d = details{
			Message: cmp.Or(f.upstreamStatus.Message, "The model's provider refused the request, and did not say why."),
			Type:    cmp.Or(f.upstreamStatus.Type, errorType(f.upstreamStatus.Status)), Param: nullable(f.upstreamStatus.Param), Code: nullable(f.upstreamStatus.Code),
		}
	} else {
		code := string(f.refused.Code)
		d = details{Message: f.refused.Message, Type: errorType(f.status()), Param: nullable(f.param), Code: &code, Callgate: f.result}
		if d.Callgate == nil {
			result, _ := wrapper.Refusal(nil, f.refused) // it holds text and numbers
			d.Callgate = result.Line
		}
	}
	body, err := wrapper.Marshal(map[string]details{"error": d})
	if err != nil {
		return []byte(`{"error":{"message":"Callgate failed.","type":"server_error","param":null,"code":"internal"}}`)
	}
	return body
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// errorType is the word that clients of OpenAI know for a status.
func errorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

const contentJSON = "application/json; charset=utf-8"

// writeFailure answers with a failure.
func writeFailure(c *gin.Context, f *failure) {
	if f.upstreamStatus != nil {
		if f.upstreamStatus.RetryAfter > 0 {
			server.RetryAfter(c, retryAfter(f.upstreamStatus))
		}
	} else {
		server.LogRefusal(c, f.refused)
		server.RetryAfter(c, f.refused)
	}
	if !f.retryable {
		// OpenAI's clients repeat requests that failed with 409, 429 or 5xx, unless a
		// header forbids it.
		c.Header("X-Should-Retry", "false")
	}
	extendWriteDeadline(c)
	c.Data(f.status(), contentJSON, append(f.body(), '\n'))
	c.Abort()
}

// retryAfter returns the refusal for a provider's Retry-After.
func retryAfter(statusErr *upstream.StatusError) *refusal.Error {
	refused := refusal.New(refusal.RateLimited, "")
	refused.RetryAfterMS = statusErr.RetryAfter.Milliseconds()
	return refused
}

// Refuse answers a request that did not get as far as a face of OpenAI's API, in its shape.
func Refuse(c *gin.Context, refused *refusal.Error) {
	writeFailure(c, &failure{refused: refused, retryable: refused.RetryAfterMS > 0})
}

// clientLeft is the refusal of a run whose application has disconnected. A refusal that
// already says this is returned unchanged.
func clientLeft(err error) error {
	var refused *refusal.Error
	if errors.As(err, &refused) && refused.Code == refusal.Canceled {
		return err
	}
	return refusal.New(refusal.Canceled, "The application left before the model had answered, so the run was given up.").WithCause(err)
}

var errPanicked = errors.New("what was waited for broke off")
