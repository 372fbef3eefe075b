package messages_test

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/upstream"
)

// TestThread: the refusal of a thread has the code that the official clients recover from, and
// the contract's beside it.
func TestThread(t *testing.T) {
	h := open(t, says(message("end_turn", textOf("Hello."))), plan{})
	w := h.create(asks(`"thread":{"type":"create"}`))
	got := reads(t, w)
	if w.Code != 400 || got.Error.Type != "invalid_request_error" || got.Error.Details.Code != "thread_unsupported_request" ||
		!strings.Contains(w.Body.String(), `"unsupported":["thread"]`) || !strings.Contains(w.Body.String(), `"code":"bad_request"`) || h.model.times() > 0 {
		t.Errorf("found %d %s", w.Code, w.Body)
	}
	allowed := open(t, says(message("end_turn", textOf("Hello."))), plan{rules: func(r *upstream.Rules) { r.Messages.Thread = true }})
	if w := allowed.create(asks(`"thread":{"type":"create"}`)); w.Code != 200 || !strings.Contains(allowed.model.body(t, 0), `"thread":{"type":"create"}`) {
		t.Errorf("allowed: found %d %s", w.Code, w.Body)
	}
}
