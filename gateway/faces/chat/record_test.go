package chat_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/upstream"
)

// summary says of each turn of a run how far it repairs, and what became of its calls.
func summary(run *runs.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", run.Face, run.State)
	for _, turn := range run.Turns {
		fmt.Fprintf(&b, "; %d", turn.Repair)
		for _, c := range turn.Calls {
			fmt.Fprintf(&b, " %s %s", c.Verdict, c.Tool)
			if c.Error != nil {
				fmt.Fprintf(&b, " %s", c.Error.Code)
			}
			fmt.Fprintf(&b, " %s", c.Outcome)
			if !strings.HasPrefix(c.CallID, "call_") {
				b.WriteString(" without an id")
			}
		}
	}
	if run.Error != nil {
		fmt.Fprintf(&b, "; %s", run.Error.Code)
	}
	return b.String()
}

// TestRecord: an answer names its run, whole and streamed, and the record of it has each turn.
func TestRecord(t *testing.T) {
	good, bad := toolCalls("c1", "time_now", "{}"), toolCalls("c1", "time_now", "{}", "c2", "files_delete", `{"path":"x"}`)
	for name, c := range map[string]struct {
		script func(int, http.ResponseWriter, *http.Request)
		rules  func(*upstream.Rules)
		want   string
	}{
		"orchestrated": {
			inTurn(says(bad, "stop"), says(good, "stop"), says(content("noon"), "stop")), orchestrate,
			"chat answered; 0 refused time.now  refused files.delete permission_denied ; 1 tool_call time.now result; 0 text  ",
		},
		"handed over": {inTurn(says(good, "tool_calls")), nil, "chat answered; 0 tool_call time.now handed_over"},
		"refused": {
			inTurn(says(bad, "tool_calls")), noRepairs,
			"chat failed; 0 refused time.now  refused files.delete permission_denied ; permission_denied",
		},
		"turned away": {inTurn(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "{}", 404) }), nil, "chat failed; upstream_unavailable"},
	} {
		for _, streamed := range []string{"false", "true"} {
			h := open(t, c.script, plan{rules: all(func(r *upstream.Rules) {
				if c.rules != nil {
					c.rules(r)
				}
			})})
			w := h.post(asks(tools("time_now", "files_delete") + `,"stream":` + streamed))
			id := w.Header().Get(server.HeaderRunID)
			run := h.runs.Find("", id)
			if run == nil {
				t.Fatalf("%s, %s: no run %q; %d %s", name, streamed, id, w.Code, w.Body)
			}
			if got := summary(run); got != c.want {
				t.Errorf("%s, %s: found %q, want %q", name, streamed, got, c.want)
			}
			if run.Model != "m" || run.Upstream != "sample" || run.Agent == "" {
				t.Errorf("%s, %s: %+v", name, streamed, run)
			}
		}
	}
}

// TestOtherWire: a model is served at the faces that its upstream speaks, and nowhere else.
func TestOtherWire(t *testing.T) {
	h := open(t, inTurn(says(content("hi"), "stop")), plan{rules: func(r *upstream.Rules) {
		r.Speaks = []upstream.Wire{upstream.MessagesWire, upstream.ResponsesWire}
	}})
	w := h.post(asks(""))
	var got completion
	err := json.Unmarshal(w.Body.Bytes(), &got)
	if err != nil || w.Code != 404 || got.Error.Code != "not_found" || got.Error.Param != "model" {
		t.Errorf("found %d %s", w.Code, w.Body)
	}
	if !strings.Contains(got.Error.Message, "Request it by POST /v1/messages or POST /v1/responses. Where its provider has this API, the operator adds chat to speaks of the upstream ") || h.model.times() != 0 {
		t.Errorf("found %q, and %d requests", got.Error.Message, h.model.times())
	}
}
