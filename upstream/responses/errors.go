package responses

import (
	"fmt"

	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/refusal"
)

// ProviderError is a failure that the provider reports within a reply: by the status failed,
// or by an event.
type ProviderError struct {
	Type, Code, Message string // as they were sent; each may be empty
}

// Error does not contain the provider's message, which may repeat the prompt.
func (e *ProviderError) Error() string { return "the provider reports a failure in its reply" }

// Refusal is the failure as a refusal, for where the provider's own words cannot be shown.
func (e *ProviderError) Refusal() *refusal.Error {
	return refusal.New(refusal.UpstreamUnavailable, "The model's provider reports a failure. The operator finds the cause in the log.").WithCause(e)
}

// malformed is the refusal of a reply that cannot be read without doubt. The cause is for the
// operator and quotes nothing of the reply.
func malformed(format string, args ...any) *refusal.Error {
	const message = "The model's answer is not in a form that Callgate can read without doubt; nothing of it was used."
	return refusal.New(refusal.UpstreamUnavailable, message).WithCause(fmt.Errorf("found "+format, args...))
}

// notAllowed is the refusal of a part that a switch of the upstream's entry could allow.
func notAllowed(format string, args ...any) *refusal.Error {
	const message = "The model's answer has a part that this gateway does not allow; nothing of it was used."
	cause := fmt.Errorf("found "+format+", which the upstream's entry does not allow", args...)
	return refusal.New(refusal.UpstreamUnavailable, message).WithCause(cause)
}

func tooLarge(format string, args ...any) *refusal.Error {
	const message = "The model's answer is larger than Callgate accepts; nothing of it was used."
	return refusal.New(refusal.UpstreamUnavailable, message).WithCause(fmt.Errorf("found "+format, args...))
}

func brokenOff(format string, args ...any) *refusal.Error {
	const message = "The model's answer broke off; nothing of it was used. Try again."
	return refusal.New(refusal.UpstreamUnavailable, message).WithCause(fmt.Errorf("found "+format, args...))
}

// unreadable is the refusal of a document that is not strict JSON; other errors stay.
func unreadable(err error) error {
	if syntax, ok := err.(*strictjson.Error); ok { //nolint:errorlint // one within a refusal was told already
		return malformed("bytes that are no strict JSON, at byte %d: %w", syntax.Offset, err)
	}
	return err
}
