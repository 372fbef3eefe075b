package outbound

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"syscall"
	"time"

	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Failure is why one attempt gave no result.
type Failure struct {
	refusal    *refusal.Error
	retry      bool          // another attempt may end otherwise
	untaken    bool          // the server has not taken the call, so that one of any effect may be sent again
	retryAfter time.Duration // the wait that the tool asked for; 0 if none
	health     health        // of the tool's server
	uncounted  bool          // it was no attempt: there was no credential to make it with
}

func (f *Failure) Error() string { return f.refusal.Error() }

// Refusal returns the refusal of the call, if no other attempt is made.
func (f *Failure) Refusal() *refusal.Error { return f.refusal }

// Retry reports whether another attempt may end differently.
func (f *Failure) Retry() bool { return f.retry }

// health is the health of a tool's server by one attempt.
type health int

const (
	healthUnknown health = iota // the server did not cause the failure
	healthOK                    // it was reached, and answered for itself
	healthFailed                // it could not be reached, did not answer, or reported that it fails
)

// ConnectionFailure is the failure of an attempt that ended without a whole response. at
// is the origin of the server.
func ConnectionFailure(ctx context.Context, call tool.Call, at string, err error, dispatched bool) *Failure {
	f := connectionRefusal(ctx, call, at, err, dispatched)
	f.health = healthOfError(ctx, err)
	return f
}

// connectionRefusal is ConnectionFailure without the health.
func connectionRefusal(ctx context.Context, call tool.Call, at string, err error, dispatched bool) *Failure {
	var b *blockedError
	switch {
	case errors.As(err, &b):
		return &Failure{refusal: refuse.AddressBlocked("%s: %s", call.Tool, b.reason)}
	case !dispatched && ctx.Err() != nil:
		return &Failure{refusal: refuse.Stopped(ctx, call)}
	case !dispatched:
		return &Failure{refusal: refuse.Unavailable("%s at %s could not be connected to: %s", call.Tool, at, DescribeError(err)),
			retry: !netx.IsPermanent(err)}
	case !refuse.Retryable(call.Effect) && ctx.Err() != nil:
		return &Failure{refusal: refuse.OutcomeUnknown("%s at %s was sent the call and did not answer within %s", call.Tool, at,
			duration.Spell(call.Run.Timeout))}
	case !refuse.Retryable(call.Effect):
		return &Failure{refusal: refuse.OutcomeUnknown("%s at %s was sent the call: %s", call.Tool, at, DescribeError(err))}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Failure{refusal: refuse.TimedOut("%s at %s did not answer within %s", call.Tool, at, duration.Spell(call.Run.Timeout))}
	case ctx.Err() != nil:
		return &Failure{refusal: refuse.BrokenOff("%s: the call was stopped before there was an answer", call.Tool)}
	default:
		return &Failure{refusal: refuse.BrokenOff("%s at %s was sent the call: %s", call.Tool, at, DescribeError(err)), retry: true}
	}
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

// UntakenFailure is the failure of a call that its server certainly has not taken: one of any effect is sent once more.
func UntakenFailure(refused *refusal.Error) *Failure {
	return &Failure{refusal: refused, retry: true, untaken: true}
}

// UnsentFailure is the failure of a call of which nothing was sent, and of which another
// attempt would end alike.
func UnsentFailure(refused *refusal.Error) *Failure { return &Failure{refusal: refused} }

// RetryAfterFailure is the failure of a server that responded for itself and may be tried
// again, after a time if that is not 0.
func RetryAfterFailure(refused *refusal.Error, after time.Duration) *Failure {
	return &Failure{refusal: refused, retry: true, retryAfter: after, health: healthOK}
}

// healthOfError is the health of a server after an attempt without a response.
func healthOfError(ctx context.Context, err error) health {
	var (
		b     *blockedError
		errno syscall.Errno
	)
	switch {
	case errors.As(err, &b), errors.Is(ctx.Err(), context.Canceled):
		return healthUnknown
	case errors.As(err, &errno) && isLocalShortage(errno):
		return healthUnknown
	}
	return healthFailed
}

// isLocalShortage reports whether this host was short of a resource of connections.
func isLocalShortage(errno syscall.Errno) bool {
	switch errno {
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL:
		return true
	}
	return false
}

// healthOfStatus is the health of a server that responded with a status.
func healthOfStatus(status int) health {
	if status >= http.StatusInternalServerError {
		return healthFailed
	}
	return healthOK
}

// DescribeError describes a network error in words of our own: errors of the HTTP client
// quote what the peer sent.
func DescribeError(err error) string {
	var (
		reason  refuse.Reason
		blocked *blockedError
	)
	switch {
	case errors.As(err, &blocked):
		return blocked.reason
	case errors.As(err, &reason):
		return string(reason)
	}
	return cmp.Or(netx.Describe(err), "the response could not be understood")
}
