package refuse

import (
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Every message for the model is a sentence that holds no internals.
func TestMessages(t *testing.T) {
	call := tool.Call{Tool: "sample", Run: tool.Run{Timeout: time.Second, MaxResultBytes: 1}}
	read := call
	read.Effect = "read"
	all := []*refusal.Error{
		Unavailable("x"), TimedOut("x"), OutcomeUnknown("x"), AddressBlocked("x"), Internal("x"),
		ResultTooLarge(call), ResultTooLarge(read), InvalidResult(call, "x"), InvalidResult(read, "x"),
	}
	for code := 100; code < 600; code++ {
		all = append(all, Status(call, code), Status(read, code))
	}
	for _, refused := range all {
		m := refused.Message
		if !strings.HasSuffix(m, ".") || strings.Count(m, ".") != 1 || strings.Contains(m, "sample") || strings.Contains(m, "://") || refused.Cause == nil {
			t.Errorf("%s: %q, cause %v", refused.Code, m, refused.Cause)
		}
		if refused.Retryable() {
			t.Errorf("%s is retryable", refused.Code)
		}
	}
}
