package acp_test

import (
	"strings"
	"testing"
)

// TestACP40ToolCallIsReported: a prompt with a call goes from the editor to the model and the tool and
// back, and the call is reported before it runs (ACP-04, 20, 29, 40, 41, 44, 52, 55).
func TestACP40ToolCallIsReported(t *testing.T) {
	h := open(t, plan{}, asks("Let me look.", "time_now", `{}`), says("It is noon."))
	h.Initialize(nil)
	s := h.Session(h.root(t))
	if stop := h.Prompt(s, "What time is it?"); stop != "end_turn" {
		t.Fatalf("stopped by %q", stop)
	}
	calls := h.Calls(s)
	if len(calls) != 1 || strings.Join(calls[0].Statuses, " ") != "pending in_progress completed" || calls[0].Name != "time.now" {
		t.Fatalf("found the calls %+v", calls)
	}
	if got := h.Text(s); got != "Let me look.It is noon." {
		t.Errorf("found the text %q", got)
	}
	if second := h.asked(t, 1); !strings.Contains(second, `"role":"tool"`) || !strings.Contains(second, "tool_result") {
		t.Errorf("the model was asked %s", second)
	}
}
