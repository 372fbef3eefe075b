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

// malformed is the refusal of a reply that cannot be read without doubt. The fault, of which the
// caller is told too, quotes nothing of the reply.
func malformed(format string, args ...any) *refusal.Error {
	fault := fmt.Errorf(format, args...)
	message := "The model's answer cannot be read without doubt: Callgate found " + fault.Error() + ". None of its calls was used."
	return refusal.New(refusal.UpstreamUnavailable, message).WithCause(fmt.Errorf("found %w", fault))
}

// notAllowed is the refusal of a part that a switch of the upstream's entry could allow.
func notAllowed(format string, args ...any) *refusal.Error {
	const message = "The model's answer has a part that this gateway does not allow; none of its calls was used."
	cause := fmt.Errorf("found "+format+", which the upstream's entry does not allow", args...)
	return refusal.New(refusal.UpstreamUnavailable, message).WithCause(cause)
}

func tooLarge(format string, args ...any) *refusal.Error {
	const message = "The model's answer is larger than Callgate accepts; none of its calls was used."
	return refusal.New(refusal.UpstreamUnavailable, message).WithCause(fmt.Errorf("found "+format, args...))
}

func brokenOff(format string, args ...any) *refusal.Error {
	const message = "The model's answer broke off; none of its calls was used."
	return refusal.New(refusal.UpstreamUnavailable, message).WithCause(fmt.Errorf("found "+format, args...))
}

// unreadable is the refusal of a document that is not strict JSON; other errors stay.
func unreadable(err error) error {
	if syntax, ok := err.(*strictjson.Error); ok { //nolint:errorlint // one within a refusal was told already
		return malformed("bytes that are no strict JSON, at byte %d: %w", syntax.Offset, err)
	}
	return err
}
