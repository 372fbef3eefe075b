package upstream

import (
	"errors"
	"strings"
	"testing"

	"github.com/callgate/callgate/refusal"
)

// TestMessagesAgreeWithRetryable: no message advises to try again where the refusal says that it
// cannot be retried.
func TestMessagesAgreeWithRetryable(t *testing.T) {
	for _, refused := range []*refusal.Error{
		timedOut("x"), unreachable("x"), brokenOff("x"), tooLarge("x"), malformed("x", errors.New("x")), overBudget("x"), failed("x"), misconfigured("x"),
		Malformed(&Route{}, errors.New("x")),
	} {
		if again := strings.Contains(strings.ToLower(refused.Message), "again"); again != refused.Retryable() {
			t.Errorf("%s, retryable %t: %s", refused.Code, refused.Retryable(), refused.Message)
		}
	}
}
