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
		Unavailable("x"), BrokenOff("x"), TimedOut("x"), OutcomeUnknown("x"), AddressBlocked("x"), Internal("x"),
		ResultTooLarge(call), ResultTooLarge(read), InvalidResult(call, "x"), InvalidResult(read, "x"),
	}
	for code := 100; code < 600; code++ {
		all = append(all, Status(call, code, 0), Status(read, code, 0))
	}
	for _, refused := range all {
		m := refused.Message
		if !strings.HasSuffix(m, ".") || strings.Count(m, ".") != 1 || strings.Contains(m, "sample") || strings.Contains(m, "://") || refused.Cause == nil {
			t.Errorf("%s: %q, cause %v", refused.Code, m, refused.Cause)
		}
	}
}

// TestStatus: a status is told as what it is. The arguments are blamed by few alone, and a call
// may be sent again where the server has said that it is busy and has not taken it.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		code          int
		words         string
		read, once    refusal.Code
		readMS, named int64 // without a Retry-After, and with one of 7 s
		onceMS        int64 // of an effect once, with one of 7 s
	}{
		{302, "redirect", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{400, "check the arguments", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{401, "only the operator", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{402, "only the operator", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{403, "credential", refusal.ToolFailed, refusal.ToolFailed, 0, 7000, 7000},
		{404, "does not exist there", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{405, "only the operator", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{407, "credential", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{408, "in time", refusal.ToolFailed, refusal.ToolFailed, 1000, 7000, 0},
		{409, "present state", refusal.ToolFailed, refusal.ToolFailed, 0, 7000, 7000},
		{410, "does not exist there", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{412, "present state", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{413, "check the arguments", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{414, "check the arguments", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{422, "check the arguments", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{423, "locked", refusal.ToolFailed, refusal.ToolFailed, 0, 7000, 7000},
		{424, "failed with HTTP status 424", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{425, "busy", refusal.ToolFailed, refusal.ToolFailed, 1000, 7000, 7000},
		{429, "busy", refusal.ToolFailed, refusal.ToolFailed, 1000, 7000, 7000},
		{431, "check the arguments", refusal.ToolFailed, refusal.ToolFailed, 0, 0, 0},
		{451, "legal reasons", refusal.ToolFailed, refusal.ToolFailed, 0, 7000, 7000},
		{500, "failed with HTTP status 500", refusal.ToolFailed, refusal.ToolFailed, 0, 7000, 0},
		{502, "server is not available (HTTP status 502)", refusal.ToolUnavailable, refusal.OutcomeUnknown, 0, 7000, 0},
		{503, "server is not available (HTTP status 503)", refusal.ToolUnavailable, refusal.OutcomeUnknown, 0, 7000, 0},
		{529, "failed with HTTP status 529", refusal.ToolFailed, refusal.ToolFailed, 0, 7000, 0},
	} {
		read := tool.Call{Tool: "sample", Effect: "read"}
		once := tool.Call{Tool: "sample", Effect: "once"}
		if r := Status(read, c.code, 0); r.Code != c.read || r.RetryAfterMS != c.readMS || !strings.Contains(r.Message, c.words) ||
			strings.Contains(r.Message, "arguments") != strings.Contains(c.words, "arguments") {
			t.Errorf("%d: %v, %d ms", c.code, r, r.RetryAfterMS)
		}
		if r := Status(read, c.code, 7*time.Second); r.RetryAfterMS != c.named || r.Retryable() != (c.named > 0) {
			t.Errorf("%d with Retry-After: %v, %d ms", c.code, r, r.RetryAfterMS)
		}
		if r := Status(once, c.code, 7*time.Second); r.Code != c.once || r.RetryAfterMS != c.onceMS {
			t.Errorf("%d once: %v, %d ms", c.code, r, r.RetryAfterMS)
		}
	}
}
