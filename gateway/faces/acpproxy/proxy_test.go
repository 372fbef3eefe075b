package acpproxy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/testkit/acptest"
)

// TestOneTurn: a prompt in which the agent reads a file, is refused another, asks for permissions,
// and runs a command. All of it is in the audit log before it passes.
func TestOneTurn(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
	x.begin()
	done := x.prompt()

	if got := x.must(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a.go","line":3,"limit":2}`); got != `{"content":"text"}` {
		t.Errorf("read: %s", got)
	}
	if _, fault := x.ask(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/secret"}`); code(fault) != "-32000 permission_denied" {
		t.Errorf("a denied file: %+v", fault)
	}
	if _, fault := x.ask(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/etc/passwd"}`); code(fault) != "-32000 boundary_violation" {
		t.Errorf("a file outside of the project: %+v", fault)
	}
	x.must(x.agent, wire.MethodWriteTextFile, `{"sessionId":"s1","path":"/w/b","content":"x\u202ey"}`)
	x.must(x.agent, wire.MethodTerminalCreate, `{"sessionId":"s1","command":"go","args":["test"],"env":[{"name":"A","value":"b"}],"cwd":"/w"}`)
	x.must(x.agent, wire.MethodTerminalRelease, `{"sessionId":"s1","terminalId":"t1"}`)

	const options = `"options":[{"optionId":"1","name":"Always","kind":"allow_always"},{"optionId":"2","name":"Yes","kind":"allow_once"},{"optionId":"3","name":"Never","kind":"reject_always"},{"optionId":"4","name":"No","kind":"reject_once"}]`
	outcome := func(toolCall string) string {
		var r wire.RequestPermissionResponse
		if err := json.Unmarshal([]byte(x.must(x.agent, wire.MethodRequestPermission, `{"sessionId":"s1","toolCall":`+toolCall+`,`+options+`}`)), &r); err != nil {
			t.Fatal(err)
		}
		return string(r.Outcome.Outcome) + " " + r.Outcome.OptionID
	}
	if got := outcome(`{"toolCallId":"c1","title":"Edit","kind":"edit","locations":[{"path":"/w/a"}]}`); got != "selected 2" {
		t.Errorf("allowed: %s", got)
	}
	if got := outcome(`{"toolCallId":"c2","title":"Edit","kind":"edit","locations":[{"path":"/x"}]}`); got != "selected 4" {
		t.Errorf("outside of the project: %s", got)
	}
	if got := outcome(`{"toolCallId":"c3","title":"Fetch","kind":"fetch"}`); got != "selected 4" {
		t.Errorf("denied: %s", got)
	}
	if got := outcome(`{"toolCallId":"c4","title":"Think","kind":"think"}`); got != "selected 4" {
		t.Errorf("a kind that is not registered: %s", got)
	}
	if got := outcome(`{"toolCallId":"c5","title":"Deploy","name":"deploy","rawInput":{"to":"staging"}}`); got != "selected 2" {
		t.Errorf("a tool that is registered: %s", got)
	}
	if got := outcome(`{"toolCallId":"c6","title":"Deploy","name":"deploy","rawInput":{"to":"production"}}`); got != "selected 4" {
		t.Errorf("arguments that its schema refuses: %s", got)
	}
	w.answer <- ended
	if result, fault := done(); fault != nil || result != ended {
		t.Errorf("%s %+v", result, fault)
	}

	if got := x.editorGot(wire.MethodReadTextFile); !slices.Equal(got, []string{`{"sessionId":"s1","path":"/w/a.go","line":3,"limit":2}`}) {
		t.Errorf("the editor was asked to read %q", got)
	}
	if got := x.editorGot(wire.MethodTerminalCreate); len(got) != 1 || !strings.Contains(got[0], `"env":[{"name":"A","value":"b"}]`) || !strings.Contains(got[0], `"cwd":"/w"`) {
		t.Errorf("the editor was asked to run %q", got)
	}
	if got := x.editorGot(wire.MethodWriteTextFile); len(got) != 1 {
		t.Errorf("the editor was asked to write %q", got)
	} else if r, err := wire.Read[wire.WriteTextFileRequest]([]byte(got[0])); err != nil || r.Content != "x\u202ey" {
		t.Errorf("the editor was asked to write %q, %v", r.Content, err)
	}
	if got := x.editorGot(wire.MethodRequestPermission); len(got) != 0 {
		t.Errorf("the user was asked %q", got)
	}
	want := []string{
		"decision acp.fs.read tool_call", "outcome acp.fs.read tool_call result",
		"decision acp.fs.read refused  permission_denied", "decision acp.fs.read refused  boundary_violation",
		"decision acp.fs.write tool_call", "outcome acp.fs.write tool_call result",
		"decision acp.terminal.create tool_call", "outcome acp.terminal.create tool_call result",
		"decision acp.permission.edit tool_call", "decision acp.permission.edit refused  boundary_violation",
		"decision acp.permission.fetch refused  permission_denied", "decision acp.permission.think refused  unknown_tool",
		"decision deploy tool_call", "decision deploy refused  invalid_value",
	}
	x.eventually("all outcomes are recorded", func() bool { return len(x.records()) == len(want)+2 })
	got := slices.DeleteFunc(x.records(), func(r string) bool { return strings.HasSuffix(r, "handed_over") })
	if !slices.Equal(got, want) {
		t.Errorf("records %q", got)
	}
	for _, r := range x.h.Journal.Records() {
		if r.Thread != "s1" {
			t.Errorf("a call of the thread %q", r.Thread)
		}
	}
	x.leave()
	if err := x.awaitEnd(); err != nil {
		t.Errorf("the editor left: %v", err)
	}
	select {
	case <-x.killed:
	default:
		t.Error("the agent was not ended")
	}
	if faults := x.recorded[0].Faults(acptest.Agent); len(faults) > 0 {
		t.Errorf("the proxy to the editor: %v", faults)
	}
	if faults := x.recorded[1].Faults(acptest.Client); len(faults) > 0 {
		t.Errorf("the proxy to the agent: %v", faults)
	}
}

// TestCommandsOfAFolder: a command without a folder of its own is judged with that of the session, where that is another
// than the one from which its words are judged.
func TestCommandsOfAFolder(t *testing.T) {
	const command = `{"sessionId":"s1","command":"go","args":["x"]}`
	for folder, expected := range map[string]string{"/w": command, "/w/.": command, "/w/sub": strings.TrimSuffix(command, "}") + `,"cwd":"/w/sub"}`, "/etc": ""} {
		w := newWaits()
		x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
		x.must(x.editor, wire.MethodInitialize, `{"protocolVersion":1,"clientCapabilities":`+allCapabilities+`}`)
		x.must(x.editor, wire.MethodSessionNew, `{"cwd":"`+folder+`","mcpServers":[]}`)
		done := x.prompt()
		_, fault := x.ask(x.agent, wire.MethodTerminalCreate, command)
		got := x.editorGot(wire.MethodTerminalCreate)
		if expected == "" {
			if code(fault) != "-32000 boundary_violation" || len(got) > 0 {
				t.Errorf("%s: %v, and the editor was asked %s", folder, fault, got)
			}
		} else if fault != nil || len(got) != 1 || got[0] != expected {
			t.Errorf("%s: %v, and the editor was asked %s; expected %s", folder, fault, got, expected)
		}
		w.answer <- ended
		done()
	}
}
