package acp_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestACP01InitializeFirst: nothing is answered before initialize, which comes once.
func TestACP01InitializeFirst(t *testing.T) {
	h := open(t, plan{config: project(t, "0s"), loose: true}, says("Hello."))
	for _, method := range []string{"session/new", "session/list", "session/prompt", "nothing"} {
		if _, err := h.Ask(method, map[string]any{"cwd": "/w", "mcpServers": []any{}}); codeOf(err) != -32600 {
			t.Errorf("%s: %v", method, err)
		}
	}
	h.Initialize(nil)
	if _, err := h.Ask("initialize", map[string]any{"protocolVersion": 1}); codeOf(err) != -32600 {
		t.Errorf("found %v", err)
	}
}

// TestACP02Versions: another version is answered with ours, and the answer says what is there (ACP-04).
func TestACP02Versions(t *testing.T) {
	for _, version := range []int{0, 1, 2, 65535} {
		h := open(t, plan{loose: true, images: version == 2}, says("Hello."))
		var r struct {
			ProtocolVersion   int
			AgentInfo         struct{ Name, Version string }
			AgentCapabilities struct {
				LoadSession         bool
				PromptCapabilities  map[string]bool
				SessionCapabilities map[string]any
				MCPCapabilities     map[string]bool `json:"mcpCapabilities"`
			}
		}
		h.Call("initialize", map[string]any{"protocolVersion": version}, &r)
		c := r.AgentCapabilities
		if r.ProtocolVersion != 1 || r.AgentInfo.Name != "callgate" || !c.LoadSession || !c.PromptCapabilities["embeddedContext"] || c.PromptCapabilities["audio"] ||
			c.PromptCapabilities["image"] != (version == 2) || len(c.SessionCapabilities) != 5 || c.MCPCapabilities["http"] || c.MCPCapabilities["sse"] {
			t.Errorf("version %d: %+v", version, r)
		}
	}
}

// TestACP09Unknown: unknown requests are refused, extensions too (ACP-10); unknown notifications are
// passed over, and so is what is wrong with one.
func TestACP09Unknown(t *testing.T) {
	h := open(t, plan{config: project(t, "0s"), loose: true}, says("Hello."))
	h.Initialize(nil)
	for _, method := range []string{"session/fork", "_zed/thing", "authenticate", "logout", "session/set_mode", "session/set_config_option", "fs/read_text_file"} {
		if _, err := h.Ask(method, map[string]any{}); codeOf(err) != -32601 {
			t.Errorf("%s: %v", method, err)
		}
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","method":"nothing/such"}`, `{"jsonrpc":"2.0","method":"_x/y","params":{"a":1}}`, `{"jsonrpc":"2.0","method":"session/cancel"}`,
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"nobody"}}`, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":99}}`,
		`{"jsonrpc":"2.0","id":77,"result":{}}`, `{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1}}`,
	} {
		h.Send(line)
	}
	if s := h.Session("/w"); s == "" {
		t.Error("the connection did not go on")
	}
}

// TestACP12BadParams: params that are not those of a method are refused by their place, with the code of
// the refusal.
func TestACP12BadParams(t *testing.T) {
	h := open(t, plan{config: project(t, "0s"), loose: true}, says("Hello."))
	h.Initialize(nil)
	s := h.Session("/w")
	for params, place := range map[string]string{
		`{"sessionId":"` + s + `","prompt":"text"}`:                                                     "/prompt",
		`{"sessionId":"` + s + `","prompt":[{"type":"text"}]}`:                                          "/prompt/0",
		`{"sessionId":"` + s + `","prompt":[]}`:                                                         "at least one",
		`{"sessionId":7,"prompt":[]}`:                                                                   "/sessionId",
		`{"sessionId":"` + s + `","prompt":[{"type":"audio","data":"AA==","mimeType":"audio/wav"}]}`:    "/prompt/0",
		`{"sessionId":"` + s + `","prompt":[{"type":"image","data":"AA==","mimeType":"image/png"}]}`:    "/prompt/0",
		`{"sessionId":"` + s + `","prompt":[{"type":"resource","resource":{"uri":"a","blob":"AA=="}}]}`: "/prompt/0",
	} {
		_, err := h.Ask("session/prompt", json.RawMessage(params))
		if codeOf(err) != -32602 || !strings.Contains(err.Error(), place) || !strings.Contains(err.Error(), "bad_request") {
			t.Errorf("%s: %v", params, err)
		}
	}
	if _, err := h.Ask("session/prompt", map[string]any{"sessionId": "nobody", "prompt": []any{map[string]string{"type": "text", "text": "x"}}}); codeOf(err) != -32002 {
		t.Errorf("found %v", err)
	}
	if stop := h.Prompt(s, "Hello?"); stop != "end_turn" {
		t.Errorf("stopped by %q", stop)
	}
}
