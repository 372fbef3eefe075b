package acp_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/facetest"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func update(s string) acptest.Step { return acptest.Step{Update: raw(s)} }

func ask(method, params string) acptest.Step {
	return acptest.Step{Ask: method, Params: raw(`{"sessionId":"$session"` + params + `}`)}
}

// asking asks for a permission to make a tool call, and reports what becomes of it.
func asking(id, details string) acptest.Step {
	s := ask("session/request_permission", `,"toolCall":{"toolCallId":"`+id+`",`+details+`},"options":[{"optionId":"1","name":"Always","kind":"allow_always"},`+
		`{"optionId":"2","name":"Yes","kind":"allow_once"},{"optionId":"3","name":"Never","kind":"reject_always"},{"optionId":"4","name":"No","kind":"reject_once"}]`)
	s.Allowed = []acptest.Step{update(`{"sessionUpdate":"tool_call_update","toolCallId":"` + id + `","status":"completed"}`)}
	s.Denied = []acptest.Step{update(`{"sessionUpdate":"tool_call_update","toolCallId":"` + id + `","status":"failed"}`)}
	return s
}

// wholeAgent does everything that an agent may do, and some that it may not.
var wholeAgent = acptest.Script{
	Results: map[string]json.RawMessage{
		"initialize": raw(`{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"embeddedContext":true},"mcpCapabilities":{"http":true},` +
			`"sessionCapabilities":{"list":{},"delete":{},"additionalDirectories":{},"resume":{},"close":{}},"auth":{"logout":{}}},"authMethods":[{"id":"key","name":"Key"}],"agentInfo":{"name":"whole","version":"1"}}`),
		"session/new": raw(`{"sessionId":"$session","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"plan","name":"Plan"},{"id":"bypassPermissions","name":"Bypass"}]},` +
			`"configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]}`),
		"session/list":              raw(`{"sessions":[{"sessionId":"session-1","cwd":"/w"}]}`),
		"session/set_config_option": raw(`{"configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"b","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]}`),
	},
	Prompts: [][]acptest.Step{
		{
			update(`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"test","description":"Tests.","input":{"hint":"which"}}]}`),
			update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Hm."}}`),
			update(`{"sessionUpdate":"plan","entries":[{"content":"Read","priority":"high","status":"in_progress"}]}`),
			update(`{"sessionUpdate":"session_info_update","title":"Work"}`),
			update(`{"sessionUpdate":"usage_update","used":10,"size":1000}`),
			update(`{"sessionUpdate":"current_mode_update","currentModeId":"plan"}`),
			update(`{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]}]}`),
			update(`{"sessionUpdate":"tool_call","toolCallId":"read","title":"Read a","kind":"read","status":"in_progress","locations":[{"path":"/w/a","line":1}],"rawInput":{"path":"/w/a"}}`),
			ask("fs/read_text_file", `,"path":"/w/a"`),
			update(`{"sessionUpdate":"tool_call_update","toolCallId":"read","status":"completed","content":[{"type":"content","content":{"type":"text","text":"read"}}]}`),
			update(`{"sessionUpdate":"tool_call","toolCallId":"write","title":"Write b","kind":"edit","content":[{"type":"diff","path":"/w/b","oldText":null,"newText":"b"}]}`),
			ask("fs/write_text_file", `,"path":"/w/b","content":"b"`),
			update(`{"sessionUpdate":"tool_call_update","toolCallId":"write","status":"completed"}`),
			update(`{"sessionUpdate":"tool_call","toolCallId":"run","title":"make","kind":"execute"}`),
			ask("terminal/create", `,"command":"make"`),
			update(`{"sessionUpdate":"tool_call_update","toolCallId":"run","status":"in_progress","content":[{"type":"terminal","terminalId":"$terminalId"}]}`),
			ask("terminal/wait_for_exit", `,"terminalId":"$terminalId"`),
			ask("terminal/output", `,"terminalId":"$terminalId"`),
			ask("terminal/kill", `,"terminalId":"$terminalId"`),
			ask("terminal/release", `,"terminalId":"$terminalId"`),
			update(`{"sessionUpdate":"tool_call_update","toolCallId":"run","status":"completed"}`),
			ask("fs/read_text_file", `,"path":"/etc/passwd"`), // refused
			ask("terminal/output", `,"terminalId":"another"`), // refused
			ask("_own/method", ``), // refused
			ask("mcp/message", ``), // refused
			ask("elicitation/create", `,"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}`),
			update(`{"sessionUpdate":"tool_call","toolCallId":"edit","title":"Edit a","kind":"edit","locations":[{"path":"/w/a"}]}`),
			asking("edit", `"title":"Edit a","kind":"edit","locations":[{"path":"/w/a"}]`), // allowed
			update(`{"sessionUpdate":"tool_call","toolCallId":"fetch","title":"Fetch","kind":"fetch"}`),
			asking("fetch", `"title":"Fetch","kind":"fetch"`), // denied
			update(`{"sessionUpdate":"tool_call","toolCallId":"delete","title":"Delete a","kind":"delete","locations":[{"path":"/w/a"}]}`),
			asking("delete", `"title":"Delete a","kind":"delete","locations":[{"path":"/w/a"}]`), // asked
			update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"All done."}}`),
		},
		{ask("terminal/create", `,"command":"rm"`), {Await: "cancel"}},
		{
			update(`{"sessionUpdate":"tool_call","toolCallId":"unasked","title":"Run","kind":"execute","status":"in_progress"}`),
			update(`{"sessionUpdate":"tool_call_update","toolCallId":"unasked","status":"completed"}`),
			{Await: "cancel"},
		},
	},
}

// TestProxyTranscript: a session with every kind of message that the proxy passes or sends is
// valid on both of its lines, and what had to be refused was.
func TestProxyTranscript(t *testing.T) {
	f := newFixture(t, facetest.Options{Config: facetest.Config(t, editorTools(t)), Engine: editorsEngine{}})
	b := openBridge(t, f, wholeAgent, subject, "/w", nil)
	b.Call("authenticate", map[string]string{"methodId": "key"}, nil)
	b.Call("session/set_mode", map[string]string{"sessionId": b.session, "modeId": "plan"}, nil)
	b.Call("session/set_config_option", map[string]string{"sessionId": b.session, "configId": "model", "value": "b"}, nil)
	if _, err := b.Ask("session/set_mode", map[string]string{"sessionId": b.session, "modeId": "bypassPermissions"}); !strings.Contains(err.Error(), "permission_denied") {
		t.Errorf("a mode that asks nobody: %v", err)
	}
	b.Put("/w/a", "text\n")
	if stop := b.Prompt(b.session, "Work."); stop != "end_turn" || !strings.HasSuffix(b.Text(b.session), "All done.") {
		t.Errorf("%s: %s", stop, b.Text(b.session))
	}
	b.Choose(b.Ponder)
	turn := b.Begin("session/prompt", acptest.TextPrompt(b.session, "Remove it."))
	if _, ok := b.Await(func(m acptest.Message) bool {
		return m.Method == "session/request_permission" && strings.Contains(string(m.Params), "rm")
	}); !ok {
		t.Error("the user was not asked")
	}
	b.Cancel(b.session)
	if result, err := b.End(turn); err != nil || string(result) != `{"stopReason":"cancelled"}` {
		t.Errorf("%s %v", result, err)
	}
	if _, err := b.Ask("session/prompt", acptest.TextPrompt(b.session, "Run.")); err != nil && !strings.Contains(err.Error(), "permission_denied") {
		t.Errorf("an unjudged call: %v", err)
	}
	b.Call("session/list", raw(`{}`), nil)
	b.Call("session/load", raw(`{"sessionId":"loaded","cwd":"/w","mcpServers":[]}`), nil)
	b.Call("session/resume", raw(`{"sessionId":"resumed","cwd":"/w"}`), nil)
	b.Call("session/close", raw(`{"sessionId":"resumed"}`), nil)
	b.Call("session/delete", raw(`{"sessionId":"loaded"}`), nil)
	b.Call("logout", raw(`{}`), nil)
	if err := b.end(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	b.front.Ended()

	if c, _ := b.File("/w/b"); c != "b" || !slices.Equal(b.Commands(), []string{"make"}) {
		t.Errorf("%q %q", c, b.Commands())
	}
	statuses := map[string]string{}
	for _, c := range b.Calls(b.session) {
		id, _, _ := strings.Cut(c.ToolCallID, "-") // of the gateway's own ids the rest is random
		statuses[id] = c.Status()
	}
	if want := map[string]string{"callgate": "failed", "read": "completed", "write": "completed", "run": "completed", "edit": "completed", "fetch": "failed", "delete": "completed", "unasked": "completed"}; !maps.Equal(statuses, want) {
		t.Errorf("%v, want %v", statuses, want)
	}
	for _, what := range []string{"_own/method -32601", "mcp/message -32601", "elicitation/create -32601", "terminal/output -32", "fs/read_text_file -32000"} {
		if !strings.Contains(b.Text(b.session), what) {
			t.Errorf("the agent is not told %q: %s", what, b.Text(b.session))
		}
	}
	unjudged := 0
	for _, r := range f.Journal.Records() {
		if r.Event == audit.Decision && r.Tool == acp.UnjudgedTool {
			unjudged++
		}
	}
	if unjudged != 1 {
		t.Errorf("%d calls are recorded as unjudged", unjudged)
	}
	seenAll(t, b.front, acptest.Client, acptest.Agent)
	seenAll(t, b.back, acptest.Client)
	for _, e := range b.back.Lines() {
		if e.Method == "session/new" && e.From == acptest.Client && !strings.Contains(e.Line, `"mcpServers":[{"args":["mcp"]`) && !strings.Contains(e.Line, `"command":"/bin/callgate"`) {
			t.Errorf("the agent's servers: %s", e.Line)
		}
		if strings.Contains(e.Line, "bypassPermissions") && e.From == acptest.Client {
			t.Errorf("the agent is told of a mode that asks nobody: %s", e.Line)
		}
	}
}

// seenAll holds that a transcript has each kind of message that the proxy sends from its sides.
func seenAll(t *testing.T, r *acptest.Recorder, ours ...acptest.Side) {
	t.Helper()
	kinds := map[acptest.Side][]string{
		acptest.Client: {
			"request initialize", "request authenticate", "request logout", "request session/new", "request session/load", "request session/resume", "request session/list", "request session/delete",
			"request session/close", "request session/prompt", "request session/set_mode", "request session/set_config_option", "notification session/cancel",
			"result fs/read_text_file", "result fs/write_text_file", "result terminal/create", "result terminal/output", "result terminal/wait_for_exit", "result terminal/kill", "result terminal/release", "result session/request_permission",
		},
		acptest.Agent: {
			"result initialize", "result authenticate", "result logout", "result session/new", "result session/load", "result session/resume", "result session/list", "result session/delete",
			"result session/close", "result session/prompt end_turn", "result session/prompt cancelled", "result session/set_mode", "result session/set_config_option", "error session/set_mode",
			"request fs/read_text_file", "request fs/write_text_file", "request terminal/create", "request terminal/output", "request terminal/wait_for_exit", "request terminal/kill", "request terminal/release", "request session/request_permission",
			"notification session/update agent_message_chunk", "notification session/update agent_thought_chunk", "notification session/update tool_call", "notification session/update tool_call_update completed",
			"notification session/update plan", "notification session/update available_commands_update", "notification session/update current_mode_update", "notification session/update config_option_update",
			"notification session/update session_info_update", "notification session/update usage_update",
		},
	}
	seen := r.Seen()
	for _, side := range ours {
		for _, kind := range kinds[side] {
			if kind = side.String() + " " + kind; seen[kind] == 0 {
				t.Errorf("no %s was recorded: %v", kind, slices.Sorted(maps.Keys(seen)))
			}
		}
	}
}
