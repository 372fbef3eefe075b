package refuse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// maxQuoteBytes bounds one text of a server that is passed on.
const maxQuoteBytes = 2 << 10

// Unavailable refuses a call whose tool cannot be reached.
func Unavailable(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.ToolUnavailable,
		"The tool could not be reached; continue without it or try again later.").WithCause(fmt.Errorf(format, args...))
}

// BrokenOff refuses a call that was sent to a tool whose answer did not come, or not whole.
func BrokenOff(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.ToolUnavailable,
		"The tool gave no whole answer; continue without it or try again later.").WithCause(fmt.Errorf(format, args...))
}

// TimedOut refuses a call whose tool did not respond in time.
func TimedOut(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.ToolTimeout,
		"The tool did not answer in time; continue without it or try again later.").WithCause(fmt.Errorf(format, args...))
}

// OutcomeUnknown refuses a call that may have been carried out.
func OutcomeUnknown(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.OutcomeUnknown,
		"It is not known whether the tool carried this out; find out before asking for it again.").WithCause(fmt.Errorf(format, args...))
}

// AddressBlocked refuses a call whose tool is at an address that is not allowed.
func AddressBlocked(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.AddressBlocked,
		"The tool is at an address that may not be connected to; continue without it.").WithCause(fmt.Errorf(format, args...))
}

// The messages of the refusals of a call whose tool is called as its caller.
const (
	noToken = "This tool is called as the user, and no token for the user can be had for it; continue without it."
	expired = "This tool is called as the user, whose token has expired or is about to; only the application can send the call again with a new token."
	stepUp  = "The user must sign in again, or consent to more, before this tool can be called for them, which only the application can bring about; continue without it."
)

// AsCaller refuses a call whose tool is called as its caller: CredentialUnavailable, CredentialExpired or
// StepUpRequired.
func AsCaller(code refusal.Code, format string, args ...any) *refusal.Error {
	message := noToken
	switch code {
	case refusal.CredentialExpired:
		message = expired
	case refusal.StepUpRequired:
		message = stepUp
	}
	return refusal.New(code, message).WithCause(fmt.Errorf(format, args...))
}

// WithoutToken refuses a call of a tool that is called as its caller, if the caller has no token that can be exchanged
// now; nil: it has one.
func WithoutToken(name string, caller *tool.Caller, now time.Time) *refusal.Error {
	switch {
	case caller == nil:
		return AsCaller(refusal.CredentialUnavailable, "%s is called as its caller, who was not authenticated by a token", name)
	case caller.Expired(now):
		return AsCaller(refusal.CredentialExpired, "%s is called as its caller, whose token expires at %s", name,
			caller.Expires.UTC().Format(time.RFC3339))
	}
	return nil
}

// ResultTooLarge refuses a result that is larger than the tool allows.
func ResultTooLarge(call tool.Call) *refusal.Error {
	message := "The tool's result is larger than allowed; ask for less."
	if !Retryable(call.Effect) {
		message = "The tool ran, but its result is larger than allowed; do not ask for the same again."
	}
	return refusal.New(refusal.ResultTooLarge, message).
		WithCause(fmt.Errorf("%s gave more than %d bytes", call.Tool, call.Run.MaxResultBytes))
}

// InvalidResult refuses a result that cannot be passed on. The reason is for the operator,
// and holds no text of the tool.
func InvalidResult(call tool.Call, reason string) *refusal.Error {
	message := "The tool answered in a form that cannot be passed on; continue without its result."
	if !Retryable(call.Effect) {
		message = "The tool ran, but answered in a form that cannot be passed on; do not ask for the same again."
	}
	return refusal.New(refusal.InvalidResult, message).WithCause(fmt.Errorf("%s: %s", call.Tool, reason))
}

// Failed refuses a call that its tool rejected. The message is for the model.
func Failed(message string) *refusal.Error { return refusal.New(refusal.ToolFailed, message) }

// Internal refuses a call because of a fault of the engine.
func Internal(what string) *refusal.Error {
	return refusal.At(refusal.Execute, refusal.Internal,
		"Callgate could not run this tool; continue without it.").WithCause(errors.New(what))
}

// Stopped refuses a call that ended before it was dispatched.
func Stopped(ctx context.Context, call tool.Call) *refusal.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return TimedOut("%s was not reached within %s", call.Tool, duration.Spell(call.Run.Timeout))
	}
	return Unavailable("%s: the call was stopped before it was dispatched", call.Tool)
}

// busyPause is the pause that is asked of a caller where a busy server names none.
const busyPause = time.Second

// Status refuses a call that got a response other than 2xx. after is the pause of its
// Retry-After; 0 if it named none: a 403 with one says that the caller is too fast. Only a status that blames the arguments sends the model to
// its arguments: with any other it would vary them in vain.
func Status(call tool.Call, code int, after time.Duration) *refusal.Error {
	cause := fmt.Errorf("%s answered with HTTP status %d", call.Tool, code)
	busy := code == http.StatusTooEarly || code == http.StatusTooManyRequests || code == http.StatusForbidden && after > 0
	refused := Failed(fmt.Sprintf(statusMessage(code), code)).WithCause(cause)
	switch {
	case busy:
		after = cmp.Or(after, busyPause)
		refused.Message = fmt.Sprintf("The tool's server is busy and did not take the call (HTTP status %d): wait %d ms, then send the same call again.", code, after.Milliseconds())
	case code == http.StatusBadGateway, code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout:
		if !Retryable(call.Effect) {
			return OutcomeUnknown("%w", cause)
		}
		refused = refusal.New(refusal.ToolUnavailable, fmt.Sprintf(
			"The tool's server is not available (HTTP status %d); continue without it or try again later.", code)).WithCause(cause)
	case code == http.StatusRequestTimeout:
		// A proxy says so, too, after it has passed the call on.
		if after = cmp.Or(after, busyPause); !Retryable(call.Effect) {
			after = 0
		}
	case code == http.StatusConflict, code == http.StatusLocked, code == http.StatusUnavailableForLegalReasons:
	default:
		if code < http.StatusInternalServerError || !Retryable(call.Effect) {
			after = 0
		}
	}
	refused.RetryAfterMS = after.Milliseconds()
	return refused
}

// statusMessage is the message for the model about a status, with a verb for its number.
func statusMessage(code int) string {
	switch code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusUnprocessableEntity,
		http.StatusRequestHeaderFieldsTooLarge:
		return "The tool refused the call with HTTP status %d; check the arguments before calling it again."
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return "The tool's server denies the gateway access with HTTP status %d, because of its credential or what that may do, which only the operator can change; continue without it."
	case http.StatusNotFound, http.StatusGone:
		return "The tool's server has nothing at the place of this call (HTTP status %d): what it asks for does not exist there; do not repeat the call, and continue without it."
	case http.StatusConflict, http.StatusPreconditionFailed:
		return "The call conflicts with the present state of what it is about (HTTP status %d); find out that state before calling the tool again."
	case http.StatusLocked:
		return "What the call is about is locked by something else (HTTP status %d); continue without it or try again later."
	case http.StatusRequestTimeout:
		return "The tool's server did not get the call in time (HTTP status %d); continue without it or try again later."
	case http.StatusUnavailableForLegalReasons:
		return "The tool's server withholds this for legal reasons (HTTP status %d); continue without it."
	}
	switch {
	case code >= 300 && code < 400:
		return "The tool answered with a redirect (HTTP status %d), which is not followed; continue without it."
	case code >= 400 && code < 500 && code != http.StatusFailedDependency:
		return "The tool's server does not take calls in this form (HTTP status %d), which only the operator can change; continue without it."
	}
	return "The tool failed with HTTP status %d; continue without it or try again later."
}

// Retryable reports whether calls of this effect may be tried again.
func Retryable(effect string) bool { return effect == "read" || effect == "idempotent" }

// Quote bounds and quotes a server's text, with invisible characters escaped, so that it
// can be passed on.
func Quote(s string) string {
	if len(s) > maxQuoteBytes {
		s = text.Cut(s, maxQuoteBytes) + "…"
	}
	return strconv.Quote(s)
}

// Reason is an error whose text holds nothing from a server, so that it can be shown to an
// operator.
type Reason string

func (r Reason) Error() string { return string(r) }
