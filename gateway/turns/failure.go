package turns

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// Failure is why a request has no answer of the model. A face writes it in the shape of its
// API.
type Failure struct {
	Refused *refusal.Error
	Param   string // the part of the request that is wrong
	Result  []byte // the last feedback to the model, if a turn was refused
	// Retryable says that the same request may be sent once more: nothing was acted on.
	Retryable bool
	// Message is the text of the final answer that the application is to get in place of an
	// error, of the last turn; empty: it gets the error (refusals: message of the upstream).
	Message string
	// Upstream is a refusal of the model's provider, which goes to the application. Refused is
	// nil then.
	Upstream *upstream.StatusError
}

func (f *Failure) Error() string {
	if f.Upstream != nil {
		return f.Upstream.Error()
	}
	return f.Refused.Error()
}

// Status is the HTTP status of the answer.
func (f *Failure) Status() int {
	if f.Upstream != nil {
		return f.Upstream.Status
	}
	return f.Refused.Status()
}

// Bad is a fault of the request, at a parameter.
func Bad(param, format string, args ...any) *Failure {
	return &Failure{Refused: refusal.New(refusal.BadRequest, fmt.Sprintf(format, args...)), Param: param}
}

// FailureOf turns an error that came before anything was acted on into a failure.
func FailureOf(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	var statusErr *upstream.StatusError
	if errors.As(err, &statusErr) {
		return &Failure{Upstream: statusErr, Retryable: true}
	}
	refused := refusal.From(refusal.Any, err)
	upstreamFailed := refused.Code == refusal.UpstreamUnavailable || refused.Code == refusal.UpstreamTimeout // of the provider, in vain
	return &Failure{Refused: refused, Retryable: refused.RetryAfterMS > 0 || upstreamFailed}
}

// Unserved is the failure of a request that did not get as far as a face.
func Unserved(refused *refusal.Error) *Failure {
	return &Failure{Refused: refused, Retryable: refused.RetryAfterMS > 0}
}

// Write answers with a failure, whose body is in the shape of the face's API.
func (f *Failure) Write(c *gin.Context, contentType string, body []byte) {
	f.Log(c)
	if f.Upstream != nil {
		for name, values := range f.Upstream.Header {
			c.Writer.Header()[name] = values
		}
		if f.Upstream.RetryAfter > 0 && c.Writer.Header()["Retry-After"] == nil {
			server.RefusalHeaders(c, retryAfter(f.Upstream))
		}
	} else {
		server.RefusalHeaders(c, f.Refused)
	}
	if !f.Retryable {
		// Clients repeat requests that failed with 409, 429 or 5xx, unless a header
		// forbids it.
		c.Header("X-Should-Retry", "false")
	}
	ExtendWriteDeadline(c)
	c.Data(f.Status(), contentType, body)
	c.Abort()
}

// WriteUpstream answers with the provider's own refusal, byte for byte and with its headers about
// waiting and limits (AM-62, RS-80), and reports whether there is one that may be shown.
func (f *Failure) WriteUpstream(c *gin.Context) bool {
	if f.Upstream == nil || f.Upstream.Body == nil {
		return false
	}
	f.Write(c, cmp.Or(f.Upstream.ContentType, "application/octet-stream"), f.Upstream.Body)
	return true
}

// Log has the line of the request name the refusal, or the failure of the provider. Write does so itself.
func (f *Failure) Log(c *gin.Context) {
	switch {
	case f.Upstream == nil:
		server.LogRefusal(c, f.Refused)
	case f.Upstream.Status >= http.StatusInternalServerError:
		server.LogRefusal(c, refusal.New(refusal.UpstreamUnavailable, f.Upstream.Why()).WithCause(f.Upstream))
	}
}

// WriteTimeout is how long an application may take to take what it is sent.
const WriteTimeout = 30 * time.Second

// ExtendWriteDeadline lets the application take an answer, however long it took to make: a run
// may last longer than the server waits for an answer to be written.
func ExtendWriteDeadline(c *gin.Context) {
	// A connection that cannot bear a deadline is one that a test made.
	_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(WriteTimeout))
}

// retryAfter returns the refusal for a provider's Retry-After.
func retryAfter(statusErr *upstream.StatusError) *refusal.Error {
	refused := refusal.New(refusal.RateLimited, "")
	refused.RetryAfterMS = statusErr.RetryAfter.Milliseconds()
	return refused
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

// boundReached ends a run that has reached a bound.
func boundReached(message string) *Failure {
	return &Failure{Refused: refusal.New(refusal.BoundReached, message)}
}
