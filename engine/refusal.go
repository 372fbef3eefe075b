package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// maxQuoteBytes bounds one text of a server that is passed on.
const maxQuoteBytes = 2 << 10

// Every refusal of the engine is built here. The messages are for the model and
// name nothing but an HTTP status. The causes are for the operator and hold
// neither what a tool sent nor more of a URL than its origin: paths and queries
// of webhooks are credentials.

func Unavailable(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.ToolUnavailable,
		"The tool could not be reached; continue without it or try again later.").WithCause(fmt.Errorf(format, args...))
}

func TimedOut(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.ToolTimeout,
		"The tool did not answer in time; continue without it or try again later.").WithCause(fmt.Errorf(format, args...))
}

func OutcomeUnknown(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.OutcomeUnknown,
		"It is not known whether the tool carried this out; find out before asking for it again.").WithCause(fmt.Errorf(format, args...))
}

func AddressBlocked(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.AddressBlocked,
		"The tool is at an address that may not be connected to; continue without it.").WithCause(fmt.Errorf(format, args...))
}

func ResultTooLarge(call tool.Call) *refusal.Error {
	message := "The tool's result is larger than allowed; ask for less."
	if !Retryable(call.Effect) {
		message = "The tool ran, but its result is larger than allowed; do not ask for the same again."
	}
	return refusal.New(refusal.ResultTooLarge, message).
		WithCause(fmt.Errorf("%s gave more than %d bytes", call.Tool, call.Run.MaxResultBytes))
}

func InvalidResult(call tool.Call, what string) *refusal.Error {
	message := "The tool answered in a form that cannot be passed on; continue without its result."
	if !Retryable(call.Effect) {
		message = "The tool ran, but answered in a form that cannot be passed on; do not ask for the same again."
	}
	return refusal.New(refusal.InvalidResult, message).WithCause(fmt.Errorf("%s: %s", call.Tool, what))
}

// Failed is a tool that was reached and said no. The message is for the model.
func Failed(message string) *refusal.Error { return refusal.New(refusal.ToolFailed, message) }

// Internal is a fault of the engine itself.
func Internal(what string) *refusal.Error {
	return refusal.At(refusal.Execute, refusal.Internal,
		"Callgate could not run this tool; continue without it.").WithCause(errors.New(what))
}

// Stopped is a call that was given up before it was dispatched.
func Stopped(ctx context.Context, call tool.Call) *refusal.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return TimedOut("%s was not reached within %s", call.Tool, call.Run.Timeout)
	}
	return Unavailable("%s: the call was stopped before it was dispatched", call.Tool)
}

// Status is an answer other than 2xx.
func Status(call tool.Call, code int) *refusal.Error {
	cause := fmt.Errorf("%s answered with HTTP status %d", call.Tool, code)
	switch {
	case code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		if !Retryable(call.Effect) {
			return OutcomeUnknown("%w", cause)
		}
		return Unavailable("%w", cause)
	case code >= 300 && code < 400:
		return Failed(fmt.Sprintf("The tool answered with a redirect (HTTP status %d), which is not followed; continue without it.", code)).WithCause(cause)
	case code >= 400 && code < 500:
		return Failed(fmt.Sprintf("The tool refused the call with HTTP status %d; check the arguments before calling it again.", code)).WithCause(cause)
	default:
		return Failed(fmt.Sprintf("The tool failed with HTTP status %d; continue without it or try again later.", code)).WithCause(cause)
	}
}

// Retryable tells whether calls of this effect may be tried again.
func Retryable(effect string) bool { return effect == "read" || effect == "idempotent" }

// Quote is a text of a server's as it goes on: bounded, between quotes that it
// cannot end, and with nothing in it that does not show.
func Quote(s string) string {
	if len(s) > maxQuoteBytes {
		cut := maxQuoteBytes
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return strconv.Quote(s)
}

// Reason is an error whose text is of our own making, so that an operator can be
// told it.
type Reason string

func (r Reason) Error() string { return string(r) }
