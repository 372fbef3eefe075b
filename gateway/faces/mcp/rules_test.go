package mcp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/tool"
)

// TestMCP15Tools: what a tool is given is judged, who may use it is asked, how often is
// counted, and what it says hides nothing.
func TestMCP15Tools(t *testing.T) {
	rate, err := ratelimit.ParseRate("1/h")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	h := open(t, plan{
		engine: func(tool.Call) (tool.Result, error) {
			ran++
			return tool.Result{Body: []byte("{\"a\":\"x\u202e\u200b\"}"), JSON: true}, nil
		},
		state: func(s *gateway.Config, _ *calls.Deps) {
			s.Limits = &ratelimit.Limits{Replicas: 1, Tools: map[string]ratelimit.Budget{"time.now": {Rate: rate, Burst: 1}}}
		},
	})
	for _, c := range []struct{ name, arguments, code string }{
		{"web_search", `{"query":1}`, "wrong_type"},
		{"web_search", `{"query":"x","more":1}`, "unexpected_argument"},
		{"web_search", `{"query":"x","query":"y"}`, "duplicate_key"},
		{"files_delete", `{"path":"/srv/acme/alpha/a"}`, "permission_denied"},
		{"time_now", `{}`, ""},
		{"time_now", `{}`, "rate_limited"},
	} {
		before := ran
		r := h.call(t, c.name, c.arguments)
		if r.code() != c.code || r.Result.IsError != (c.code != "") || (ran > before) != (c.code == "") {
			t.Errorf("%s %s: %s", c.name, c.arguments, r.raw)
		}
		if strings.ContainsAny(r.raw, "\u202e\u200b") {
			t.Errorf("%s hides something: %q", c.name, r.raw)
		}
	}
}

// TestMCT08NoTasks: tasks are not declared, so no method of theirs is known, in any
// revision, and no call is answered with one.
func TestMCT08NoTasks(t *testing.T) {
	h := open(t, plan{})
	for _, method := range []string{"tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/update"} {
		if r := h.ask(t, method, `"taskId":"x"`); r.status != http.StatusNotFound || r.Error.Code != -32601 {
			t.Errorf("%s: %d %s", method, r.status, r.raw)
		}
		if r := h.old(t, method, `"taskId":"x"`); r.status != http.StatusOK || r.Error.Code != -32601 {
			t.Errorf("%s of 2025-11-25: %d %s", method, r.status, r.raw)
		}
	}
	for _, r := range []reply{h.call(t, "time_now", `{}`), h.old(t, "tools/call", `"name":"time_now","arguments":{}`)} {
		if r.status != http.StatusOK || r.Result.IsError || strings.Contains(r.raw, "taskId") {
			t.Errorf("%d %s", r.status, r.raw)
		}
	}
	if r := h.ask(t, "server/discover", ""); r.status != http.StatusOK || strings.Contains(r.raw, "tasks") {
		t.Errorf("%d %s", r.status, r.raw)
	}
}
