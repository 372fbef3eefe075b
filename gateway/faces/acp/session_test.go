package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/tool"
)

// list are the sessions that the face lists, by their ids.
func list(t *testing.T, h *fixture, params any) map[string]string {
	t.Helper()
	var r struct {
		Sessions []struct{ SessionID, Title, Cwd, UpdatedAt string }
	}
	h.Call("session/list", params, &r)
	if r.Sessions == nil {
		t.Error("the list is none")
	}
	titles := map[string]string{}
	for _, s := range r.Sessions {
		titles[s.SessionID] = s.Title
	}
	return titles
}

// codeOf is the code of an error of the peer.
func codeOf(err error) int {
	var own *acptest.Error
	if errors.As(err, &own) {
		return own.Code
	}
	return 0
}

// TestACP20NewSession: sessions have ids of their own, in a folder of the project (ACP-21).
func TestACP20NewSession(t *testing.T) {
	h := open(t, plan{config: project(t, "0s"), loose: true}, says("Hello."))
	h.Initialize(nil)
	if a, b := h.Session("/w"), h.Session("/w/deeper"); a == b || a == "" {
		t.Errorf("found the ids %q and %q", a, b)
	}
	for name, params := range map[string]string{
		"a relative folder":       `{"cwd":"w","mcpServers":[]}`,
		"a folder outside":        `{"cwd":"/etc","mcpServers":[]}`,
		"a way out":               `{"cwd":"/w/../etc","mcpServers":[]}`,
		"a further one outside":   `{"cwd":"/w","additionalDirectories":["/etc"],"mcpServers":[]}`,
		"no folder":               `{"mcpServers":[]}`,
		"no servers":              `{"cwd":"/w"}`,
		"a server on http":        `{"cwd":"/w","mcpServers":[{"type":"http","name":"x","url":"http://x","headers":[]}]}`,
		"a server of other words": `{"cwd":"/w","mcpServers":[{"type":"carrier pigeon","name":"x"}]}`,
	} {
		_, err := h.Ask("session/new", json.RawMessage(params))
		if codeOf(err) != -32602 || !strings.Contains(err.Error(), `"callgate"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.Ask("session/new", json.RawMessage(`{"cwd":"/w","additionalDirectories":["/w/a"],"mcpServers":[]}`)); err != nil {
		t.Error(err)
	}
}

// TestACP22Servers: a server that the operator has accepted is taken, and any other refused with the
// command that accepts it.
func TestACP22Servers(t *testing.T) {
	h := open(t, plan{config: project(t, "0s"), accepted: "/bin/good"}, says("Hello."))
	h.Initialize(nil)
	server := func(command string) json.RawMessage {
		return json.RawMessage(`{"cwd":"/w","mcpServers":[{"name":"x","command":"` + command + `","args":[],"env":[]}]}`)
	}
	if _, err := h.Ask("session/new", server("/bin/good")); err != nil {
		t.Error(err)
	}
	if _, err := h.Ask("session/new", server("/bin/bad")); codeOf(err) != -32602 || !strings.Contains(err.Error(), "callgate servers accept") {
		t.Errorf("found %v", err)
	}
}

// TestACP24Load: a session is shown again as a whole by session/load, and not at all by session/resume
// (ACP-25); the model knows what was said. Both also in another process.
func TestACP24Load(t *testing.T) {
	folder := t.TempDir()
	config := project(t, "0s")
	h := open(t, plan{config: config, folder: folder}, asks("Let me look.", "acp_fs_read", `{"path":"/w/a"}`), says("It says: four."))
	h.Initialize(nil)
	h.Put("/w/a", "four")
	s := h.Session("/w")
	h.Prompt(s, "Read the file a.\nPlease.")
	shown := h.Calls(s)[0]
	h.leave()
	if err := <-h.served; err != nil {
		t.Fatal(err)
	}
	h.served <- nil

	h = open(t, plan{config: config, folder: folder}, says("As I said."))
	h.Initialize(nil)
	if titles := list(t, h, map[string]any{}); titles[s] != "Read the file a." || len(titles) != 1 {
		t.Errorf("found the titles %q", titles)
	}
	if titles := list(t, h, map[string]any{"cwd": "/w/elsewhere"}); len(titles) != 0 {
		t.Errorf("found the titles %q", titles)
	}
	if _, err := h.Ask("session/load", map[string]any{"sessionId": s, "cwd": "/w", "mcpServers": []any{}}); err != nil {
		t.Fatal(err)
	}
	calls := h.Calls(s)
	if len(calls) != 1 || calls[0].ToolCallID != shown.ToolCallID || calls[0].Status() != "completed" || string(calls[0].Content) != string(shown.Content) {
		t.Errorf("found %+v; expected %+v", calls, shown)
	}
	if text := h.Text(s); text != "Let me look.It says: four." {
		t.Errorf("found the text %q", text)
	}
	said := ""
	for _, m := range h.Got("session/update") {
		if strings.Contains(string(m.Params), "user_message_chunk") {
			said += string(m.Params)
		}
	}
	if !strings.Contains(said, "Please.") {
		t.Errorf("the user said %s", said)
	}
	if stop := h.Prompt(s, "And?"); stop != "end_turn" {
		t.Errorf("stopped by %q", stop)
	}
	if asked := h.asked(t, 0); !strings.Contains(asked, "four") || !strings.Contains(asked, "And?") || strings.Count(asked, `"role":"system"`) != 1 {
		t.Errorf("the model was asked %s", asked)
	}

	h = open(t, plan{config: config, folder: folder}, says("Third."))
	h.Initialize(nil)
	if _, err := h.Ask("session/resume", map[string]any{"sessionId": s, "cwd": "/w"}); err != nil {
		t.Fatal(err)
	}
	if n := len(h.Got("session/update")); n != 0 {
		t.Errorf("session/resume was followed by %d updates", n)
	}
	h.Prompt(s, "Now?")
	if asked := h.asked(t, 0); !strings.Contains(asked, "As I said.") {
		t.Errorf("the model was asked %s", asked)
	}
}

// TestSessionsOfOthers: a session that was kept for another agent of the same configuration is not
// listed, loaded, resumed or deleted.
func TestSessionsOfOthers(t *testing.T) {
	folder := t.TempDir()
	config := project(t, "0s")
	connect := func(agent string) *fixture {
		h := open(t, plan{config: config, folder: folder, agent: agent}, says("It is 4711."))
		h.Initialize(nil)
		return h
	}
	h := connect("")
	s := h.Session("/w")
	h.Prompt(s, "Which number?")
	other := connect("Second")
	if titles := list(t, other, map[string]any{}); len(titles) != 0 {
		t.Errorf("listed %q", titles)
	}
	for _, method := range []string{"session/load", "session/resume"} {
		if _, err := other.Ask(method, map[string]any{"sessionId": s, "cwd": "/w", "mcpServers": []any{}}); codeOf(err) != -32002 {
			t.Errorf("%s: %v", method, err)
		}
	}
	if _, err := other.Ask("session/delete", map[string]string{"sessionId": s}); err != nil {
		t.Error(err)
	}
	if n := len(other.Got("session/update")); n != 0 {
		t.Errorf("got %d updates", n)
	}
	if titles := list(t, connect(""), map[string]any{}); len(titles) != 1 {
		t.Errorf("its own agent is told of %q", titles)
	}
}

// TestACP26Close: a closed session is there no longer, but is kept; a deleted one is gone, also if it
// never was (ACP-27, ACP-31).
func TestACP26Close(t *testing.T) {
	h := open(t, plan{config: project(t, "0s"), loose: true}, says("Hello."))
	h.Initialize(nil)
	if titles := list(t, h, map[string]any{}); len(titles) != 0 {
		t.Errorf("found %q", titles)
	}
	s := h.Session("/w")
	h.Prompt(s, "Hello.")
	of := map[string]string{"sessionId": s}
	var empty map[string]any
	if h.Call("session/close", of, &empty); len(empty) != 0 {
		t.Errorf("found %v", empty)
	}
	for _, method := range []string{"session/prompt", "session/close"} {
		params := any(of)
		if method == "session/prompt" {
			params = acptest.TextPrompt(s, "?")
		}
		if _, err := h.Ask(method, params); codeOf(err) != -32002 {
			t.Errorf("%s: %v", method, err)
		}
	}
	if titles := list(t, h, map[string]any{}); len(titles) != 1 {
		t.Errorf("found %q", titles)
	}
	h.Call("session/delete", of, &empty)
	h.Call("session/delete", map[string]string{"sessionId": "nobody"}, &empty)
	h.Call("session/delete", map[string]string{"sessionId": "../../../etc/passwd"}, &empty)
	if titles := list(t, h, map[string]any{}); len(titles) != 0 {
		t.Errorf("found %q", titles)
	}
	for _, id := range []string{s, "../x", strings.Repeat("A", 26)} {
		if _, err := h.Ask("session/load", map[string]any{"sessionId": id, "cwd": "/w", "mcpServers": []any{}}); codeOf(err) != -32002 {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := h.Ask("session/list", map[string]string{"cursor": "x"}); codeOf(err) != -32602 {
		t.Errorf("found %v", err)
	}
}

// TestKeptFiles: only the owner may read a kept session, and a file that is none is refused without its
// text.
func TestKeptFiles(t *testing.T) {
	h := open(t, plan{config: project(t, "0s"), loose: true}, says("Hello."))
	h.Initialize(nil)
	s := h.Session("/w")
	h.Prompt(s, "Hello.")
	names, err := filepath.Glob(filepath.Join(h.folder, "*", s+".json"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%q, %v", names, err)
	}
	name := names[0]
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	h.Call("session/close", map[string]string{"sessionId": s}, &struct{}{})
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"cut": string(whole[:len(whole)/2]), "empty": "", "a list": "[]\n[]\n", "a name twice": strings.Replace(string(whole), `{"id"`, `{"id":"x","id"`, 1),
		"of another": strings.Replace(string(whole), s, strings.Repeat("B", 26), 1),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := h.Ask("session/load", map[string]any{"sessionId": s, "cwd": "/w", "mcpServers": []any{}})
		if code := codeOf(err); code != -32603 && code != -32002 || strings.Contains(err.Error(), "Hello") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDeepOutput: a session with an output that nests as deep as any is loaded again.
func TestDeepOutput(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 61) + strings.Repeat("]", 61) + `}`
	h := open(t, plan{loose: true, engine: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Body: []byte(deep), JSON: true}, nil
	}}, asks("", "time_now", `{}`), says("Deep."))
	h.Initialize(nil)
	root := h.root(t)
	s := h.Session(root)
	h.Prompt(s, "Go.")
	if calls := h.Calls(s); len(calls) != 1 || calls[0].Status() != "completed" {
		t.Fatalf("found %+v", calls)
	}
	h.Call("session/close", map[string]string{"sessionId": s}, &struct{}{})
	if _, err := h.Ask("session/load", map[string]any{"sessionId": s, "cwd": root, "mcpServers": []any{}}); err != nil {
		t.Error(err)
	}
}
