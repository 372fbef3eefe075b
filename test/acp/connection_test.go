package acp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/acptest"
)

// refusedWith is the code of an error and the code of the gateway in it; empty where there is
// none.
func refusedWith(t *testing.T, err error) string {
	t.Helper()
	var e *acptest.Error
	if !errors.As(err, &e) {
		if err != nil {
			t.Fatal(err)
		}
		return ""
	}
	var data struct {
		Callgate struct{ Code, Message string }
	}
	if e.Data != nil {
		if err := json.Unmarshal(e.Data, &data); err != nil || data.Callgate.Message != e.Message {
			t.Errorf("the data of an error: %v: %+v", err, e)
		}
	}
	return strings.TrimSpace(fmt.Sprint(e.Code, " ", data.Callgate.Code))
}

// open opens a connection without checks of its own, for messages that no client may send.
func hostile(t *testing.T) *reporter {
	t.Helper()
	r := openReporter(t, editorTools(t), nil)
	r.Foreign(acptest.Client)
	return r
}

// TestACP01InitializeFirst: nothing is answered before initialize, which comes once.
func TestACP01InitializeFirst(t *testing.T) {
	r := hostile(t)
	r.Foreign(acptest.Agent) // an error before initialize is its own matter
	if _, err := r.Ask("session/new", raw(`{"cwd":"/w","mcpServers":[]}`)); refusedWith(t, err) != "-32600" {
		t.Errorf("before initialize: %v", err)
	}
	r.Initialize(nil)
	if _, err := r.Ask("initialize", raw(`{"protocolVersion":1}`)); refusedWith(t, err) != "-32600" {
		t.Errorf("initialize again: %v", err)
	}
	if r.Session("/w") == "" {
		t.Error("no session")
	}
}

// TestACP02VersionACP04Capabilities: whatever version a client asks for, it gets ours, with
// capabilities and the agent's name.
func TestACP02VersionACP04Capabilities(t *testing.T) {
	for _, version := range []int{0, 1, 2, 65535} {
		r := openReporter(t, editorTools(t), nil)
		var answer struct {
			ProtocolVersion   int
			AgentCapabilities map[string]json.RawMessage
			AgentInfo         struct{ Name, Version string }
			AuthMethods       []any
		}
		r.Call("initialize", map[string]any{"protocolVersion": version}, &answer)
		if answer.ProtocolVersion != 1 || len(answer.AgentCapabilities) == 0 || answer.AgentInfo.Name == "" || answer.AgentInfo.Version == "" || len(answer.AuthMethods) > 0 {
			t.Errorf("%d: %+v", version, answer)
		}
	}
}

// TestACP09UnknownMethods: an unknown request is -32601, also of an extension (ACP-10), of a
// method that is not offered (ACP-28, ACP-75), and of one that the client implements; an unknown
// notification is ignored.
func TestACP09UnknownMethods(t *testing.T) {
	r := hostile(t)
	r.Initialize(nil)
	s := r.Session("/w")
	for _, method := range []string{"nothing", "_own/method", "session/set_mode", "session/set_config_option", "authenticate", "logout", "fs/read_text_file", "session/fork", "mcp/message", "session/cancel"} {
		if _, err := r.Ask(method, raw(`{"sessionId":`+quoted(s)+`}`)); refusedWith(t, err) != "-32601" {
			t.Errorf("%s: %v", method, err)
		}
	}
	for _, method := range []string{"nothing", "_own/notification", "session/prompt", "session/update"} {
		r.Notify(method, map[string]string{"sessionId": s})
	}
	if r.Session("/w") == "" {
		t.Error("no session")
	}
}

// TestACP12BadMessages: what is no JSON is -32700 with the id null, what is no request -32600,
// and what are no params -32602; and the next message is answered.
func TestACP12BadMessages(t *testing.T) {
	r := hostile(t)
	r.Initialize(nil)
	answered := 0
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":100`: "null -32700",
		"\xff":                      "null -32700",
		`{"jsonrpc":"2.0","id":101,"id":102,"method":"session/list"}`:              "null -32700",
		`{"jsonrpc":"1.0","id":103,"method":"session/list"}`:                       "103 -32600",
		`[{"jsonrpc":"2.0","id":104,"method":"session/list"}]`:                     "null -32600",
		`{"jsonrpc":"2.0","id":null,"method":"session/list"}`:                      "null -32600",
		`{"jsonrpc":"2.0","id":105,"method":"session/list","params":{"cursor":5}}`: "105 -32602",
		`{"jsonrpc":"2.0","id":106,"method":"session/list","params":[]}`:           "106 -32600",
		`{"jsonrpc":"2.0","id":107,"method":"session/new"}`:                        "107 -32602",
	} {
		r.Send(line)
		answered++
		seen := 0
		m, ok := r.Await(func(m acptest.Message) bool {
			switch {
			case m.Error != nil:
				seen++
			case string(m.ID) == "1": // the first message: it looks from the start
				seen = 0
			}
			return seen == answered
		})
		if got := fmt.Sprint(string(m.ID), " ", m.Error); !ok || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	if r.Session("/w") == "" {
		t.Error("no session")
	}
}

// TestACP20Sessions: ids are new each time, and folders are absolute and lie within the project
// (ACP-21).
func TestACP20Sessions(t *testing.T) {
	r := hostile(t)
	r.Initialize(nil)
	seen := map[string]bool{}
	for range 5 {
		id := r.Session("/w/sub")
		if len(id) < 20 || seen[id] {
			t.Errorf("the id %q", id)
		}
		seen[id] = true
	}
	for params, want := range map[string]string{
		`{"cwd":"w","mcpServers":[]}`:                                   "-32602 bad_request",
		`{"cwd":"/elsewhere","mcpServers":[]}`:                          "-32602 boundary_violation",
		`{"cwd":"/w/../etc","mcpServers":[]}`:                           "-32602 boundary_violation",
		`{"cwd":"/w","mcpServers":[],"additionalDirectories":["/x/y"]}`: "",
		`{"cwd":"/w","mcpServers":[],"additionalDirectories":["x"]}`:    "-32602 bad_request",
		`{"cwd":"/w","mcpServers":[],"additionalDirectories":["/etc"]}`: "-32602 boundary_violation",
		`{"cwd":"/w","mcpServers":[{"name":"n","command":"/c"}]}`:       "-32602 bad_request",
		`{"cwd":"/w"}`: "-32602 bad_request",
	} {
		if _, err := r.Ask("session/new", raw(params)); refusedWith(t, err) != want {
			t.Errorf("%s: %v, want %q", params, err, want)
		}
	}
}

// TestACP22Servers: an MCP server that the operator has not accepted is refused, with the command
// that accepts one.
func TestACP22Servers(t *testing.T) {
	r := openReporter(t, editorTools(t), nil)
	r.Initialize(nil)
	_, err := r.Ask("session/new", raw(`{"cwd":"/w","mcpServers":[{"name":"files","command":"/bin/files","args":[],"env":[]}]}`))
	if refusedWith(t, err) != "-32602 bad_request" || !strings.Contains(err.Error(), "files") || !strings.Contains(err.Error(), "callgate servers accept") {
		t.Errorf("%v", err)
	}
}

// TestACP23Blocks: text and links are taken, and so is what is offered; other blocks are -32602.
func TestACP23Blocks(t *testing.T) {
	r := hostile(t)
	r.Initialize(nil)
	s := r.Session("/w")
	for block, want := range map[string]string{
		`{"type":"text","text":"A text."}`:                                                   "A text.",
		`{"type":"resource_link","name":"a.go","uri":"file:///w/a.go"}`:                      "file:///w/a.go",
		`{"type":"resource","resource":{"uri":"file:///w/b.go","text":"The content of b."}}`: "The content of b.",
		`{"type":"audio","data":"AAAA","mimeType":"audio/wav"}`:                              "",
		`{"type":"image","data":"AAAA","mimeType":"image/png"}`:                              "",
		`{"type":"resource","resource":{"uri":"file:///w/b.go","blob":"AAAA"}}`:              "",
		`{"type":"video"}`: "",
	} {
		r.model.Say()
		_, err := r.Ask("session/prompt", raw(`{"sessionId":`+quoted(s)+`,"prompt":[`+block+`]}`))
		heard := strings.Join(r.model.Requests(), "\n")
		if want == "" && (refusedWith(t, err) != "-32602 bad_request" || heard != "") || want != "" && (err != nil || !strings.Contains(heard, want)) {
			t.Errorf("%s: %v; the model was asked %s", block, err, heard)
		}
	}
}

// TestACP31UnknownSession: a session that is not open is an error, and a cancellation of one is
// ignored.
func TestACP31UnknownSession(t *testing.T) {
	r := hostile(t)
	r.Initialize(nil)
	for _, method := range []string{"session/prompt", "session/close", "session/load", "session/resume"} {
		_, err := r.Ask(method, map[string]any{
			"session/prompt": acptest.TextPrompt("nowhere", "Hi."), "session/close": raw(`{"sessionId":"nowhere"}`),
			"session/load": raw(`{"sessionId":"nowhere","cwd":"/w","mcpServers":[]}`), "session/resume": raw(`{"sessionId":"../nowhere","cwd":"/w"}`),
		}[method])
		if refusedWith(t, err) != "-32002 not_found" {
			t.Errorf("%s: %v", method, err)
		}
	}
	r.Notify("session/cancel", map[string]string{"sessionId": "nowhere"})
	if r.Session("/w") == "" {
		t.Error("no session")
	}
}
