package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// cancelTool is the tool by which models end subscriptions.
const cancelTool = `tools:
  - name: cancel_subscription
    description: Ends a subscription of this conversation.
    input_schema: {type: object, required: [tool_call_id], properties: {tool_call_id: {type: string, maxLength: 64}}}
    run: {type: cancel_subscription}
# end
`

// TestSUB06OnTheFaces: on each face a model that subscribed can end its subscription by the id
// that the result states, in the same thread: one that a header names, or a session. Another
// principal, or another thread, cannot; neither can an agent that no row permits, and there is
// no such tool unless the operator states it.
func TestSUB06OnTheFaces(t *testing.T) {
	t.Parallel()
	f, tool := newFrontage(t), newRepeater(t)
	tool.subscribes = true
	one, spy := newCaller("one", "acme", []string{"Analyst", "Intern"}, []string{"alpha"}), newCaller("spy", "globex", []string{"Spy"}, []string{"gamma"})
	config, data := patientConfig(t, tool.URL, f, one, spy)
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "tools", "own.yaml"), []byte(cancelTool), 0o600); err != nil {
		t.Fatal(err)
	}
	g := serveGate(t, config)
	f.lead(g)
	as := func(who caller, headers ...string) []string {
		return append([]string{"Authorization", "Bearer " + who.key, "Callgate-Agent", "Analyst"}, headers...)
	}
	mcp := func(tool, arguments string, headers ...string) string {
		return g.ask(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+`}}`, as(one, append(headers, "Content-Type", "application/json")...)...).body
	}
	native := func(tool, arguments string, headers ...string) string {
		return g.ask(t, http.MethodPost, "/v1/calls", `{"tool":{"name":"`+tool+`","arguments":`+arguments+`}}`, append(headers, "Content-Type", "text/plain")...).body
	}
	session := g.ask(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, as(one, "Content-Type", "application/json")...).header.Get("Mcp-Session-Id")
	inSession := []string{"Mcp-Session-Id", session, "MCP-Protocol-Version", "2025-11-25"}
	faces := map[string]func(tool, arguments string) string{
		"native": func(tool, arguments string) string {
			return native(tool, arguments, as(one, "Callgate-Thread", "conv")...)
		},
		"a session of MCP": func(tool, arguments string) string { return mcp(tool, arguments, inSession...) },
		"MCP":              func(tool, arguments string) string { return mcp(tool, arguments, "Callgate-Thread", "conv") },
	}
	stated := regexp.MustCompile(`subscription\\*":\\*"(call_[A-Z2-7]+)`)
	for name, face := range faces {
		body := face("later", `{"n":1,"as":"plain"}`)
		id := stated.FindStringSubmatch(body)
		if id == nil {
			t.Errorf("%s: the model reads %s", name, body)
			continue
		}
		tool.take()
		arguments := `{"tool_call_id":"` + id[1] + `"}`
		for other, headers := range map[string][]string{
			"another thread":    as(one, "Callgate-Thread", "other"),
			"no thread":         as(one),
			"another principal": {"Authorization", "Bearer " + spy.key, "Callgate-Thread", "conv"},
		} {
			if body := native("cancel_subscription", arguments, headers...); !strings.Contains(body, "tool_failed") {
				t.Errorf("%s, %s: %s", name, other, body)
			}
		}
		intern := []string{"Authorization", "Bearer " + one.key, "Callgate-Agent", "Intern", "Callgate-Thread", "conv"}
		if body := native("cancel_subscription", arguments, intern...); !strings.Contains(body, "permission_denied") {
			t.Errorf("%s: an agent without a row: %s", name, body)
		}
		if len(tool.reported) > 0 {
			t.Errorf("%s: told %s", name, <-tool.reported)
		}
		if body := face("cancel_subscription", arguments); !strings.Contains(body, "cancelled") {
			t.Errorf("%s: %s", name, body)
		}
		select {
		case got := <-tool.reported:
			if !strings.HasPrefix(got, "/cancel_tool_call ") || !strings.Contains(got, id[1]) {
				t.Errorf("%s: told %s", name, got)
			}
		case <-time.After(patience):
			t.Errorf("%s: the server is not told", name)
		}
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	outcomes, refused := endings(t, data)
	if n := len(refused["permission_denied"]); n != len(faces) {
		t.Errorf("%d calls without a row are in the log", n)
	}
	if len(outcomes) != 5*len(faces) {
		t.Errorf("%d calls have outcomes", len(outcomes))
	}
}
