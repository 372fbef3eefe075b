package outbound

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/callgate/callgate/engine/internal/refuse"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Failure is why one attempt gave no result.
type Failure struct {
	refusal    *refusal.Error
	retry      bool          // another attempt may end otherwise
	retryAfter time.Duration // what the tool asked to wait; 0 if nothing
	health     health        // what it tells of the tool's server
}

func (f *Failure) Error() string { return f.refusal.Error() }

// Refusal is what the failure means for the call, if no other attempt is made.
func (f *Failure) Refusal() *refusal.Error { return f.refusal }

// Retry tells whether another attempt may end differently.
func (f *Failure) Retry() bool { return f.retry }

// ConnectionFailure is the failure of an attempt that ended without a whole response. at
// is the origin of the server.
func ConnectionFailure(ctx context.Context, call tool.Call, at string, err error, dispatched bool) *Failure {
	f := connectionRefusal(ctx, call, at, err, dispatched)
	f.health = healthOfError(ctx, err)
	return f
}

// connectionRefusal says what such an attempt means for the call.
func connectionRefusal(ctx context.Context, call tool.Call, at string, err error, dispatched bool) *Failure {
	var b *blockedError
	switch {
	case errors.As(err, &b):
		return &Failure{refusal: refuse.AddressBlocked("%s: %s", call.Tool, b.reason)}
	case !dispatched && ctx.Err() != nil:
		return &Failure{refusal: refuse.Stopped(ctx, call)}
	case !dispatched:
		return &Failure{refusal: refuse.Unavailable("%s at %s could not be connected to: %s", call.Tool, at, DescribeError(err)), retry: !netx.IsPermanent(err)}
	case !refuse.Retryable(call.Effect) && ctx.Err() != nil:
		return &Failure{refusal: refuse.OutcomeUnknown("%s at %s was sent the call and did not answer within %s", call.Tool, at, call.Run.Timeout)}
	case !refuse.Retryable(call.Effect):
		return &Failure{refusal: refuse.OutcomeUnknown("%s at %s was sent the call: %s", call.Tool, at, DescribeError(err))}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Failure{refusal: refuse.TimedOut("%s at %s did not answer within %s", call.Tool, at, call.Run.Timeout)}
	case ctx.Err() != nil:
		return &Failure{refusal: refuse.Unavailable("%s: the call was stopped before there was an answer", call.Tool)}
	default:
		return &Failure{refusal: refuse.Unavailable("%s at %s was sent the call: %s", call.Tool, at, DescribeError(err)), retry: true}
	}
}

// transientStatus reports whether a later attempt may get another status.
func transientStatus(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// StatusFailure is the failure of an attempt that got a status other than 2xx, with its
// Retry-After.
func (o *Client) StatusFailure(call tool.Call, code int, after string) *Failure {
	return &Failure{refusal: refuse.Status(call, code), retry: transientStatus(code), retryAfter: retryAfter(o.now, after), health: healthOfStatus(code)}
}

// FinalFailure is the failure of a server that responded for itself, so that another
// attempt would end alike.
func FinalFailure(refused *refusal.Error) *Failure {
	return &Failure{refusal: refused, health: healthOK}
}

// RetryableFailure is the failure of a call that its server did not accept. Another
// attempt may end differently, and the failure says nothing about the server's health.
func RetryableFailure(refused *refusal.Error) *Failure {
	return &Failure{refusal: refused, retry: true}
}

// UnsentFailure is the failure of a call of which nothing was sent, and of which another
// attempt would end alike.
func UnsentFailure(refused *refusal.Error) *Failure { return &Failure{refusal: refused} }

// RetryAfterFailure is the failure of a server that responded for itself and may be tried
// again, after a time if that is not 0.
func RetryAfterFailure(refused *refusal.Error, after time.Duration) *Failure {
	return &Failure{refusal: refused, retry: true, retryAfter: after, health: healthOK}
}
