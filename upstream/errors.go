package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"

	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/refusal"
)

// Causes of a cancelled exchange.
var (
	errConnect         = errors.New("the connection was not established in time")
	errResponseTimeout = errors.New("the answer did not begin in time")
	errIdle            = errors.New("the answer stalled")
	errTotal           = errors.New("the whole answer took too long")
)

// errOversize is a body over its bound.
var errOversize = errors.New("more bytes came than are allowed")

// unavailable is the refusal when the model gave no usable answer. The message is for the caller,
// the cause for the operator.
func unavailable(message, format string, args ...any) *refusal.Error {
	return refusal.New(refusal.UpstreamUnavailable, message).WithCause(fmt.Errorf(format, args...))
}

func timedOut(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.UpstreamTimeout, "The model did not answer in time; none of its calls was used. The operator sets how long it may take.").WithCause(fmt.Errorf(format, args...))
}

func unreachable(format string, args ...any) *refusal.Error {
	return unavailable("The model cannot be reached, whatever the request says. The operator finds the cause in the log.", format, args...)
}

func brokenOff(format string, args ...any) *refusal.Error {
	return unavailable("The model's answer broke off; none of its calls was used.", format, args...)
}

func tooLarge(format string, args ...any) *refusal.Error {
	return unavailable("The model's answer is larger than Callgate accepts; none of its calls was used.", format, args...)
}

// malformed is the refusal of an answer with a fault, which the caller is told too: it holds no text
// of the answer.
func malformed(upstream string, fault error) *refusal.Error {
	message := "The model's answer cannot be read without doubt: Callgate found " + fault.Error() + ". None of its calls was used."
	return unavailable(message, "%s: found %w", upstream, fault)
}

// Malformed is the refusal of an answer that the reading of a wire found at fault. The cause must not
// hold text of the answer.
func Malformed(route *Route, cause error) *refusal.Error {
	return malformed(route.Upstream, cause)
}

// BrokenOff is the refusal of a stream that ended before the wire's last event.
func BrokenOff(route *Route, cause error) *refusal.Error {
	return brokenOff("%s: %w", route.Upstream, cause)
}

// TooLarge is the refusal of an answer over its bound.
func TooLarge(route *Route, cause error) *refusal.Error {
	return tooLarge("%s: %w", route.Upstream, cause)
}

func overBudget(format string, args ...any) *refusal.Error {
	refused := refusal.New(refusal.Overloaded, "Too much of the models' answers is held at once: wait 1000 ms, then send the same request again. None of its calls was used.").WithCause(fmt.Errorf(format, args...))
	refused.RetryAfterMS = 1000
	return refused
}

func failed(format string, args ...any) *refusal.Error {
	return unavailable("The model's provider reports a failure. The operator finds the cause in the log.", format, args...)
}

func misconfigured(format string, args ...any) *refusal.Error {
	return unavailable("The model's provider does not accept Callgate; the operator has been told.", format, args...)
}

// transportError returns the refusal for an exchange that ended without a whole answer. begun
// says that a byte of the answer was received.
func transportError(ctx context.Context, upstream string, err error, started bool) *refusal.Error {
	switch cause := context.Cause(ctx); {
	case errors.Is(err, errOversize), errors.Is(err, sse.ErrTooLarge):
		return tooLarge("%s: %w", upstream, err)
	case errors.Is(err, errBudget):
		return overBudget("%s: %w", upstream, err)
	case errors.Is(cause, errConnect), errors.Is(cause, errResponseTimeout), errors.Is(cause, errIdle), errors.Is(cause, errTotal),
		errors.Is(ctx.Err(), context.DeadlineExceeded):
		return timedOut("%s: %w", upstream, cause)
	case errors.Is(cause, context.Canceled):
		return refusal.New(refusal.Canceled,
			"The client left before the model had answered, so its answer was given up.").WithCause(fmt.Errorf("%s: %w", upstream, cause))
	case cause != nil:
		return unavailable("The request was given up before the model had answered.", "%s: %w", upstream, cause)
	case !started:
		return unreachable("%s: %s", upstream, describe(err))
	default:
		return brokenOff("%s: %s", upstream, describe(err))
	}
}

// describe describes a network error without text from the peer.
func describe(err error) string {
	if errors.Is(err, sse.ErrCut) || errors.Is(err, sse.ErrEnd) {
		err = io.ErrUnexpectedEOF
	}
	return cmp.Or(netx.Describe(err), "the response is not valid HTTP")
}

// isPermanent reports whether another attempt would fail in the same way: also where the
// server does not speak TLS at all.
func isPermanent(err error) bool {
	var record tls.RecordHeaderError
	return netx.IsPermanent(err) || errors.As(err, &record)
}

// refusePanic turns a panic into a refusal. The panic's value is not logged unless it is a
// runtime error: it may hold a model's output.
func refusePanic(panicked error) error {
	return refusal.New(refusal.Internal,
		"Callgate could not ask the model. The operator has been told.").WithCause(fmt.Errorf("upstream: %w", panicked))
}

// errBudget says that an answer within its own bound exceeds the client's memory budget.
var errBudget = errors.New("too many bytes of answers are held")
