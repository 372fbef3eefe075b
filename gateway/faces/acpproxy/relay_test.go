package acpproxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
)

// TestACP06Capabilities: the agent sees of the editor what the proxy judges, and the editor of the
// agent what the proxy understands.
func TestACP06Capabilities(t *testing.T) {
	x := openProxy(t, plan{})
	got := x.must(x.editor, wire.MethodInitialize, `{"protocolVersion":7,"clientCapabilities":`+allCapabilities+`,"_meta":{"x":1}}`)
	if want := `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"auth":{"terminal":false}}}`; x.agentGot(wire.MethodInitialize)[0] != want {
		t.Errorf("the agent got %s", x.agentGot(wire.MethodInitialize)[0])
	}
	want := `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"audio":false,"embeddedContext":false},"mcpCapabilities":{"http":false,"sse":false},` +
		`"sessionCapabilities":{"list":{},"delete":{},"resume":{},"close":{}},"auth":{}},"authMethods":[{"id":"key","name":"Key"}],"agentInfo":{"name":"scripted","version":"1"}}`
	if got != want {
		t.Errorf("the editor got %s", got)
	}
	if _, fault := x.ask(x.editor, wire.MethodInitialize, `{"protocolVersion":1}`); fault == nil || fault.Code != jsonrpc.CodeRequest {
		t.Errorf("initialized twice: %v", fault)
	}
	for _, method := range []string{"session/fork", "_x", wire.MethodLogout, wire.MethodReadTextFile, wire.MethodSessionCancel, "mcp/message"} {
		if _, fault := x.ask(x.editor, method, `{"sessionId":"s1"}`); fault == nil || fault.Code != jsonrpc.CodeMethod {
			t.Errorf("%s of the editor: %v", method, fault)
		}
	}
	for _, method := range []string{"mcp/message", "_x", "elicitation/create", wire.MethodSessionPrompt, wire.MethodSessionUpdate, "proxy/successor"} {
		if _, fault := x.ask(x.agent, method, `{"sessionId":"s1"}`); fault == nil || fault.Code != jsonrpc.CodeMethod {
			t.Errorf("%s of the agent: %v", method, fault)
		}
	}
}

// TestACP01InitializeFirst: nothing passes before the agent has answered initialize.
func TestACP01InitializeFirst(t *testing.T) {
	x := openProxy(t, plan{})
	for _, method := range []string{wire.MethodSessionNew, wire.MethodSessionPrompt, wire.MethodAuthenticate} {
		if _, fault := x.ask(x.editor, method, `{}`); fault == nil || fault.Code != jsonrpc.CodeRequest {
			t.Errorf("%s: %v", method, fault)
		}
	}
	if got := x.got(&x.toAgent); len(got) != 0 {
		t.Errorf("the agent got %q", got)
	}
}

// TestACP03Version: an agent of another version of the protocol is not used.
func TestACP03Version(t *testing.T) {
	x := openProxy(t, plan{initialized: `{"protocolVersion":2}`})
	if _, fault := x.ask(x.editor, wire.MethodInitialize, `{"protocolVersion":1}`); fault == nil {
		t.Error("the agent of version 2 was used")
	}
	if _, fault := x.ask(x.editor, wire.MethodSessionNew, `{"cwd":"/w","mcpServers":[]}`); fault == nil || fault.Code != jsonrpc.CodeRequest {
		t.Errorf("a session: %v", fault)
	}
}

// TestMCPServersReplaced: the agent gets the gateway's server, and none of the editor's.
func TestMCPServersReplaced(t *testing.T) {
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionLoad: says(`null`), wire.MethodSessionResume: says(`{}`)}})
	x.must(x.editor, wire.MethodInitialize, `{"protocolVersion":1,"clientCapabilities":`+allCapabilities+`}`)
	const servers = `"mcpServers":[{"name":"own","command":"/bin/own","args":[],"env":[{"name":"A","value":"b"}]},{"type":"http","name":"h","url":"https://h","headers":[]}],"_meta":{"claudeCode":{"options":{"permissionMode":"bypassPermissions"}}}`
	x.must(x.editor, wire.MethodSessionNew, `{"cwd":"/w",`+servers+`}`)
	x.must(x.editor, wire.MethodSessionLoad, `{"cwd":"/w","sessionId":"s2",`+servers+`}`)
	x.must(x.editor, wire.MethodSessionResume, `{"cwd":"/w","sessionId":"s3",`+servers+`}`)
	const only = `"mcpServers":[{"name":"callgate","command":"/bin/callgate","args":["mcp"],"env":[]}]}`
	for method, want := range map[string]string{
		wire.MethodSessionNew: `{"cwd":"/w",` + only, wire.MethodSessionLoad: `{"sessionId":"s2","cwd":"/w",` + only, wire.MethodSessionResume: `{"sessionId":"s3","cwd":"/w",` + only,
	} {
		if got := x.agentGot(method); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q", method, got)
		}
	}
}

// TestNoToolsNoMCPServer: an agent that may use no tool over MCP gets no server, which it would take
// for one that has failed.
func TestNoToolsNoMCPServer(t *testing.T) {
	f := files()
	for name, text := range map[string]string{
		"of the client":   strings.ReplaceAll(f["tools.yaml"], "run: {type: demo}", "run: {type: client}"),
		"of other agents": f["tools.yaml"],
	} {
		policy := f["policy.csv"]
		if name == "of other agents" {
			policy = "p, Other, *, *, , allow\n"
		}
		x := openProxy(t, plan{files: map[string]string{"tools.yaml": text, "policy.csv": policy}, agent: map[string]answer{wire.MethodSessionLoad: says(`null`)}})
		x.must(x.editor, wire.MethodInitialize, `{"protocolVersion":1,"clientCapabilities":`+allCapabilities+`}`)
		x.must(x.editor, wire.MethodSessionNew, `{"cwd":"/w","mcpServers":[]}`)
		x.must(x.editor, wire.MethodSessionLoad, `{"cwd":"/w","sessionId":"s2","mcpServers":[]}`)
		for method, want := range map[string]string{
			wire.MethodSessionNew: `{"cwd":"/w","mcpServers":[]}`, wire.MethodSessionLoad: `{"sessionId":"s2","cwd":"/w","mcpServers":[]}`,
		} {
			if got := x.agentGot(method); len(got) != 1 || got[0] != want {
				t.Errorf("tools %s: %s: %q", name, method, got)
			}
		}
	}
}

// TestRequireDelegation: a session of an editor that runs nothing for the agent is refused, unless
// the operator lets it.
func TestRequireDelegation(t *testing.T) {
	x := openProxy(t, plan{})
	x.must(x.editor, wire.MethodInitialize, `{"protocolVersion":1}`)
	if _, fault := x.ask(x.editor, wire.MethodSessionNew, `{"cwd":"/w","mcpServers":[]}`); code(fault) != "-32602 permission_denied" {
		t.Errorf("%v", fault)
	}
	x = openProxy(t, plan{options: func(o *acp.ProxyOptions) { o.WithoutDelegation = true }})
	x.begin(`{}`)
	if _, fault := x.ask(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a"}`); fault == nil || fault.Code != jsonrpc.CodeMethod {
		t.Errorf("a file that the editor does not offer: %v", fault)
	}
	if got := x.got(&x.toEditor); len(got) != 0 {
		t.Errorf("the editor got %q", got)
	}
}

// TestModesAreRefused: a mode that asks nobody is not shown, and cannot be set; a session that
// begins in one does not begin.
func TestModesAreRefused(t *testing.T) {
	modes := func(current string) answer {
		return says(`{"sessionId":"s1","modes":{"currentModeId":"` + current + `","availableModes":[{"id":"ask","name":"Ask"},{"id":"bypassPermissions","name":"Bypass"}]},` +
			`"configOptions":[{"id":"m","name":"M","type":"select","category":"mode","currentValue":"ask","options":[{"value":"ask","name":"Ask"},{"value":"yolo","name":"Yolo"}]}]}`)
	}
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionNew: modes("ask"), wire.MethodSessionSetMode: says(`{}`)}})
	x.must(x.editor, wire.MethodInitialize, `{"protocolVersion":1,"clientCapabilities":`+allCapabilities+`}`)
	if got := x.must(x.editor, wire.MethodSessionNew, `{"cwd":"/w","mcpServers":[]}`); strings.Contains(got, "bypass") || strings.Contains(got, "yolo") {
		t.Errorf("shown: %s", got)
	}
	x.must(x.editor, wire.MethodSessionSetMode, `{"sessionId":"s1","modeId":"ask"}`)
	for method, params := range map[string]string{
		wire.MethodSessionSetMode:         `{"sessionId":"s1","modeId":"bypassPermissions"}`,
		wire.MethodSessionSetConfigOption: `{"sessionId":"s1","configId":"m","value":"yolo"}`,
	} {
		if _, fault := x.ask(x.editor, method, params); code(fault) != "-32602 permission_denied" {
			t.Errorf("%s: %v", method, fault)
		}
	}
	if got := len(x.agentGot(wire.MethodSessionSetMode)) + len(x.agentGot(wire.MethodSessionSetConfigOption)); got != 1 {
		t.Errorf("%d of them passed", got)
	}

	x = openProxy(t, plan{agent: map[string]answer{wire.MethodSessionNew: modes("bypassPermissions")}})
	x.must(x.editor, wire.MethodInitialize, `{"protocolVersion":1,"clientCapabilities":`+allCapabilities+`}`)
	if _, fault := x.ask(x.editor, wire.MethodSessionNew, `{"cwd":"/w","mcpServers":[]}`); code(fault) != "-32602 permission_denied" {
		t.Errorf("a session in a mode that asks nobody: %v", fault)
	}
	if _, fault := x.ask(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a"}`); code(fault) != "-32000 not_found" {
		t.Errorf("a file of it: %v", fault)
	}
	x.eventually("the agent closes it", func() bool { return len(x.agentGot(wire.MethodSessionClose)) == 1 })
}

// TestACP29Order: what the agent sends passes in its order: the answer to session/new before the
// session's first update, and all updates of a turn before its answer.
func TestACP29Order(t *testing.T) {
	const updates = 200
	var x *proxied
	x = openProxy(t, plan{agent: map[string]answer{
		wire.MethodSessionPrompt: func(context.Context, json.RawMessage) (any, *jsonrpc.Error) {
			for i := range updates {
				x.update(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%d"}}`, i))
			}
			return json.RawMessage(ended), nil
		},
	}})
	x.begin()
	x.update(`{"sessionUpdate":"available_commands_update","availableCommands":[]}`)
	x.must(x.editor, wire.MethodSessionPrompt, `{"sessionId":"s1","prompt":[]}`)
	got := x.editorGot(wire.MethodSessionUpdate) // all are there already
	if len(got) != updates+1 {
		t.Fatalf("%d updates before the answer", len(got))
	}
	for i := range updates {
		if !strings.Contains(got[i+1], fmt.Sprintf(`"text":"%d"`, i)) {
			t.Fatalf("the update %d is %s", i, got[i+1])
		}
	}
}

// TestSessionBeforeItsUpdates: an update directly behind the answer to session/new is not lost.
func TestSessionBeforeItsUpdates(t *testing.T) {
	x := openProxy(t, plan{agent: map[string]answer{
		wire.MethodSessionNew: func(context.Context, json.RawMessage) (any, *jsonrpc.Error) { return nil, jsonrpc.NoAnswer },
	}})
	x.must(x.editor, wire.MethodInitialize, `{"protocolVersion":1,"clientCapabilities":`+allCapabilities+`}`)
	go func() {
		for len(x.agentGot(wire.MethodSessionNew)) == 0 {
			time.Sleep(time.Millisecond)
		}
		_, _ = io.WriteString(x.raw, `{"jsonrpc":"2.0","id":"editor-2","result":{"sessionId":"s1"}}`+"\n"+
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}`+"\n")
	}()
	x.must(x.editor, wire.MethodSessionNew, `{"cwd":"/w","mcpServers":[]}`)
	x.eventually("the update passes", func() bool { return len(x.editorGot(wire.MethodSessionUpdate)) == 1 })
}

// TestACP24Replay: what is told of a loaded session is history, and is not judged.
func TestACP24Replay(t *testing.T) {
	var x *proxied
	x = openProxy(t, plan{agent: map[string]answer{wire.MethodSessionLoad: func(context.Context, json.RawMessage) (any, *jsonrpc.Error) {
		x.update(ran)
		return struct{}{}, nil
	}}})
	x.must(x.editor, wire.MethodInitialize, `{"protocolVersion":1,"clientCapabilities":`+allCapabilities+`}`)
	x.must(x.editor, wire.MethodSessionLoad, `{"cwd":"/w","sessionId":"s1","mcpServers":[]}`)
	if got := x.editorGot(wire.MethodSessionUpdate); len(got) != 1 || x.countUnjudged() != 0 {
		t.Errorf("%q, %d records", got, x.countUnjudged())
	}
	if _, fault := x.ask(x.editor, wire.MethodSessionLoad, `{"cwd":"/w","sessionId":"s1","mcpServers":[]}`); fault == nil {
		t.Error("a session was loaded twice")
	}
}

// TestACP31UnknownSessions: sessions and terminals that this connection does not have are refused on
// both sides, and so is what acts outside of a turn.
func TestACP31UnknownSessions(t *testing.T) {
	x := openProxy(t, plan{})
	x.begin()
	for method, params := range map[string]string{
		wire.MethodSessionPrompt: `{"sessionId":"s2","prompt":[]}`, wire.MethodSessionSetMode: `{"sessionId":"s2","modeId":"m"}`, wire.MethodSessionClose: `{"sessionId":"s2"}`,
	} {
		if _, fault := x.ask(x.editor, method, params); code(fault) != "-32002 not_found" {
			t.Errorf("%s of the editor: %v", method, fault)
		}
	}
	for _, c := range []struct{ method, params, code string }{
		{wire.MethodReadTextFile, `{"sessionId":"s2","path":"/w/a"}`, "-32000 not_found"},
		{wire.MethodTerminalOutput, `{"sessionId":"s1","terminalId":"t9"}`, "-32000 not_found"},
		{wire.MethodTerminalKill, `{"sessionId":"s2","terminalId":"t1"}`, "-32000 not_found"},
		{wire.MethodWriteTextFile, `{"sessionId":"s1","path":"/w/a","content":""}`, "-32000 bad_request"},
		{wire.MethodTerminalCreate, `{"sessionId":"s1","command":"x"}`, "-32000 bad_request"},
		{wire.MethodRequestPermission, `{"sessionId":"s1","toolCall":{"toolCallId":"1"},"options":[{"optionId":"1","name":"n","kind":"allow_once"}]}`, "-32000 bad_request"},
		{wire.MethodReadTextFile, `{"sessionId":"s1","path":"a"}`, "-32602 bad_request"},
		{wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a","extra":1}`, "-32602 bad_request"},
	} {
		if _, fault := x.ask(x.agent, c.method, c.params); code(fault) != c.code {
			t.Errorf("%s %s: %v", c.method, c.params, code(fault))
		}
	}
	if got := x.got(&x.toEditor); len(got) != 0 {
		t.Errorf("the editor got %q", got)
	}
	x.must(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a"}`) // an agent reads before it is prompted
}

// TestTerminals: a terminal is used until it is released, and no other.
func TestTerminals(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
	x.begin()
	done := x.prompt()
	if got := x.must(x.agent, wire.MethodTerminalCreate, `{"sessionId":"s1","command":"x"}`); got != `{"terminalId":"t1"}` {
		t.Error(got)
	}
	for method, want := range map[string]string{
		wire.MethodTerminalOutput: `{"output":"o","truncated":false}`, wire.MethodTerminalWaitForExit: `{"exitCode":0}`, wire.MethodTerminalKill: `{}`,
	} {
		if got := x.must(x.agent, method, `{"sessionId":"s1","terminalId":"t1"}`); got != want {
			t.Errorf("%s: %s", method, got)
		}
	}
	x.update(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"x","kind":"execute","status":"completed","content":[{"type":"terminal","terminalId":"t1"},{"type":"content","content":{"type":"text","text":"x"}}]}`)
	x.update(`{"sessionUpdate":"tool_call","toolCallId":"c2","title":"x","content":[{"type":"terminal","terminalId":"foreign"}]}`)
	x.must(x.agent, wire.MethodTerminalRelease, `{"sessionId":"s1","terminalId":"t1"}`)
	if _, fault := x.ask(x.agent, wire.MethodTerminalRelease, `{"sessionId":"s1","terminalId":"t1"}`); code(fault) != "-32000 not_found" {
		t.Errorf("released twice: %v", fault)
	}
	w.answer <- ended
	if _, fault := done(); fault != nil {
		t.Errorf("%v", fault)
	}
	if got := strings.Join(x.editorGot(wire.MethodSessionUpdate), ""); !strings.Contains(got, `"terminalId":"t1"`) || strings.Contains(got, "foreign") {
		t.Errorf("%s", got)
	}
}

// TestACP72LeftTerminals: terminals that the agent leaves behind are ended in the editor: when it
// dies, and when its session is closed.
func TestACP72LeftTerminals(t *testing.T) {
	for name, end := range map[string]func(x *proxied){
		"dies":   func(x *proxied) { x.dieAgent() },
		"closed": func(x *proxied) { x.must(x.editor, wire.MethodSessionClose, `{"sessionId":"s1"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaits()
			x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt, wire.MethodSessionClose: says(`{}`)}})
			x.begin()
			done := x.prompt()
			x.must(x.agent, wire.MethodTerminalCreate, `{"sessionId":"s1","command":"x"}`)
			w.answer <- ended
			done()
			end(x)
			for _, method := range []string{wire.MethodTerminalKill, wire.MethodTerminalRelease} {
				x.eventually(method, func() bool { return len(x.editorGot(method)) == 1 })
			}
		})
	}
}

// TestPromptIsPlain: no _meta of the editor reaches the agent.
func TestPromptIsPlain(t *testing.T) {
	x := openProxy(t, plan{initialized: strings.Replace(agentInitialized, `"image":true`, `"embeddedContext":true`, 1)})
	x.begin()
	x.must(x.editor, wire.MethodSessionPrompt, `{"sessionId":"s1","_meta":{"a":1},"prompt":[{"type":"text","text":"hi","_meta":{"a":1},"annotations":{"_meta":{"a":1}}},`+
		`{"type":"resource","resource":{"uri":"file:///a","text":"t","_meta":{"a":1}}}]}`)
	if got := x.prompts(); len(got) != 1 || strings.Contains(got[0], "_meta") || !strings.Contains(got[0], `"text":"hi"`) {
		t.Errorf("%q", got)
	}
}

// TestAgentDies: what waits is answered, and the proxy says why it ends.
func TestAgentDies(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
	x.begin()
	done := x.prompt()
	x.dieAgent()
	if _, fault := done(); code(fault) != "-32603 tool_unavailable" {
		t.Errorf("the prompt: %v", fault)
	}
	if err := x.awaitEnd(); !errors.Is(err, acp.ErrAgentEnded) {
		t.Errorf("%v", err)
	}
}

// TestEditorLeaves: the agent is ended, and what it waits for too.
func TestEditorLeaves(t *testing.T) {
	w := newWaits()
	asked := make(chan struct{})
	x := openProxy(t, plan{
		agent: map[string]answer{wire.MethodSessionPrompt: w.prompt},
		editor: map[string]answer{wire.MethodWriteTextFile: func(ctx context.Context, _ json.RawMessage) (any, *jsonrpc.Error) {
			close(asked)
			<-ctx.Done()
			return nil, jsonrpc.NoAnswer
		}},
	})
	x.begin()
	if _, err := x.editor.Start(t.Context(), wire.MethodSessionPrompt, raw(`{"sessionId":"s1","prompt":[]}`)); err != nil {
		t.Fatal(err)
	}
	x.eventually("the agent gets the prompt", func() bool { return len(x.prompts()) == 1 })
	go func() {
		_, _ = x.agent.Call(t.Context(), wire.MethodWriteTextFile, json.RawMessage(`{"sessionId":"s1","path":"/w/a","content":"x"}`))
	}()
	<-asked
	x.leave()
	if err := x.awaitEnd(); err != nil {
		t.Errorf("%v", err)
	}
	<-x.killed
	if records := x.records(); len(records) != 2 || !strings.HasPrefix(records[1], "outcome acp.fs.write tool_call") {
		t.Errorf("records %q", records)
	}
}
