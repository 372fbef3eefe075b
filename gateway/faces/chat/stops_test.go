package chat_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// TestStops: once its agent is stopped no model is asked, neither for a new request nor for the next turn of
// one that runs. Where a tool is stopped, the model reads that, and can say so.
func TestStops(t *testing.T) {
	for _, streamed := range []string{"", `"stream":true`} {
		var h *fixture
		call := says(toolCalls("c1", "time_now", "{}"), "stop")
		h = open(t, inTurn(call, call, says(content("It was stopped."), "stop")), plan{rules: orchestrate, engine: func(tool.Call) (tool.Result, error) {
			h.Executor.Kernel.Stop([]store.Stop{{ID: "stop_1", Agent: "Analyst", Reason: "canary"}}, true)
			return tool.Result{Body: []byte(`{"ok":true}`), JSON: true}, nil
		}})
		w := h.post(asks(streamed))
		if !strings.Contains(w.Body.String(), `"code":"stopped"`) || strings.Contains(w.Body.String(), "canary") || h.model.times() != 1 || streamed == "" && w.Code != http.StatusForbidden {
			t.Errorf("%s: between two turns: %d %s, asked %d times", streamed, w.Code, w.Body, h.model.times())
		}
		w = h.post(asks(streamed))
		if w.Code != http.StatusForbidden || w.Header().Get("X-Should-Retry") != "false" || !strings.Contains(w.Body.String(), `"code":"stopped"`) || h.model.times() != 1 {
			t.Errorf("%s: a new request: %d %s, asked %d times", streamed, w.Code, w.Body, h.model.times())
		}
		if records := strings.Join(h.settled(t), ", "); records != "decision call tool_call, outcome call tool_call result, decision call refused  stopped, decision call refused  stopped" {
			t.Errorf("%s: %s", streamed, records)
		}
		h.Executor.Kernel.Stop([]store.Stop{{ID: "stop_1", Tool: "time.now", Reason: "canary"}}, true)
		w = h.post(asks(streamed))
		if got := reads(t, w); w.Code != http.StatusOK || got.text() != "It was stopped." || !strings.Contains(string(h.model.body(t, 2)), "The operator has stopped this.") || strings.Contains(string(h.model.body(t, 2)), "canary") {
			t.Errorf("%s: a tool: %d %s", streamed, w.Code, w.Body)
		}
	}
}
