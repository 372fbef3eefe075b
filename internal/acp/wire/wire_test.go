package wire_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// side is who implements a method.
type side func(string) (wire.Method, bool)

// whole are params and results with every member that the protocol has, each written as it is
// read: what is read and written must be the same value.
var whole = []struct {
	definition string
	method     side
	name       string
	result     bool
	text       string
}{
	{"InitializeRequest", wire.AgentMethod, "initialize", false, `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"session":{"configOptions":{"boolean":{}}},"auth":{"terminal":true},"elicitation":{"form":{},"url":{}},"_meta":{"a":1}},"clientInfo":{"name":"n","title":"t","version":"1","_meta":{}},"_meta":{"b":[2]}}`},
	{"InitializeResponse", wire.AgentMethod, "initialize", true, `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":true},"sessionCapabilities":{"list":{},"delete":{},"additionalDirectories":{},"resume":{},"close":{}},"auth":{"logout":{}},"_meta":{}},"authMethods":[{"id":"a","name":"A","description":"d","_meta":{}},{"type":"terminal","id":"t","name":"T","args":["x"],"env":{"A":"1"}}],"agentInfo":{"name":"n","version":""}}`},
	{"AuthenticateRequest", wire.AgentMethod, "authenticate", false, `{"methodId":"m","_meta":{}}`},
	{"AuthenticateResponse", wire.AgentMethod, "authenticate", true, `{"_meta":{}}`},
	{"LogoutRequest", wire.AgentMethod, "logout", false, `{"_meta":{}}`},
	{"LogoutResponse", wire.AgentMethod, "logout", true, `{}`},
	{"NewSessionRequest", wire.AgentMethod, "session/new", false, `{"cwd":"/w","additionalDirectories":["/x"],"mcpServers":[{"name":"n","command":"/c","args":["a"],"env":[{"name":"A","value":"b","_meta":{}}],"_meta":{}},{"type":"http","name":"h","url":"http://x","headers":[{"name":"A","value":"b","_meta":{}}]},{"type":"sse","name":"s","url":"","headers":[]}],"_meta":{}}`},
	{"NewSessionResponse", wire.AgentMethod, "session/new", true, `{"sessionId":"s","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A","description":"d","_meta":{}}],"_meta":{}},"configOptions":[{"id":"i","name":"n","description":"d","category":"mode","type":"select","currentValue":"v","options":[{"value":"v","name":"n","description":"d","_meta":{}}],"_meta":{}},{"id":"g","name":"","type":"select","currentValue":"v","options":[{"group":"g","name":"G","options":[{"value":"v","name":"n"}],"_meta":{}}]},{"id":"b","name":"n","type":"boolean","currentValue":true}],"_meta":{}}`},
	{"LoadSessionRequest", wire.AgentMethod, "session/load", false, `{"sessionId":"s","cwd":"/w","additionalDirectories":[],"mcpServers":[],"_meta":{}}`},
	{"LoadSessionResponse", wire.AgentMethod, "session/load", true, `{"modes":{"currentModeId":"a","availableModes":[]},"configOptions":[]}`},
	{"ResumeSessionRequest", wire.AgentMethod, "session/resume", false, `{"sessionId":"s","cwd":"/w","mcpServers":[]}`},
	{"ResumeSessionResponse", wire.AgentMethod, "session/resume", true, `{}`},
	{"ListSessionsRequest", wire.AgentMethod, "session/list", false, `{"cwd":"/w","cursor":"c","_meta":{}}`},
	{"ListSessionsResponse", wire.AgentMethod, "session/list", true, `{"sessions":[{"sessionId":"s","cwd":"/w","additionalDirectories":["/x"],"title":"t","updatedAt":"2026-01-01T00:00:00Z","_meta":{}}],"nextCursor":"n","_meta":{}}`},
	{"DeleteSessionRequest", wire.AgentMethod, "session/delete", false, `{"sessionId":"s"}`},
	{"DeleteSessionResponse", wire.AgentMethod, "session/delete", true, `{}`},
	{"CloseSessionRequest", wire.AgentMethod, "session/close", false, `{"sessionId":"s","_meta":{}}`},
	{"CloseSessionResponse", wire.AgentMethod, "session/close", true, `{"_meta":{}}`},
	{"PromptRequest", wire.AgentMethod, "session/prompt", false, `{"sessionId":"s","prompt":[{"type":"text","text":"","annotations":{"audience":["user","assistant"],"lastModified":"l","priority":0.50,"_meta":{}},"_meta":{}},{"type":"image","data":"eA==","mimeType":"image/png","uri":"u"},{"type":"audio","data":"eA==","mimeType":"audio/wav"},{"type":"resource_link","uri":"file:///a","name":"a","title":"t","description":"d","mimeType":"m","size":7},{"type":"resource","resource":{"uri":"u","mimeType":"m","text":"","_meta":{}}},{"type":"resource","resource":{"uri":"u","blob":"eA=="}}],"_meta":{}}`},
	{"PromptResponse", wire.AgentMethod, "session/prompt", true, `{"stopReason":"max_turn_requests","_meta":{}}`},
	{"CancelNotification", wire.AgentMethod, "session/cancel", false, `{"sessionId":"s","_meta":{}}`},
	{"SetSessionModeRequest", wire.AgentMethod, "session/set_mode", false, `{"sessionId":"s","modeId":"m"}`},
	{"SetSessionModeResponse", wire.AgentMethod, "session/set_mode", true, `{}`},
	{"SetSessionConfigOptionRequest", wire.AgentMethod, "session/set_config_option", false, `{"sessionId":"s","configId":"c","type":"boolean","value":false,"_meta":{}}`},
	{"SetSessionConfigOptionRequest", wire.AgentMethod, "session/set_config_option", false, `{"sessionId":"s","configId":"c","value":"v"}`},
	{"SetSessionConfigOptionResponse", wire.AgentMethod, "session/set_config_option", true, `{"configOptions":[],"_meta":{}}`},
	{"CancelRequestNotification", wire.AgentMethod, "$/cancel_request", false, `{"requestId":7,"_meta":{}}`},
	{"CancelRequestNotification", wire.ClientMethod, "$/cancel_request", false, `{"requestId":"r"}`},
	{"SessionNotification", wire.ClientMethod, "session/update", false, `{"sessionId":"s","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"t"},"messageId":"m","_meta":{}},"_meta":{}}`},
	{"SessionNotification", wire.ClientMethod, "session/update", false, `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"<&>"}}}`},
	{"SessionNotification", wire.ClientMethod, "session/update", false, `{"sessionId":"s","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"t"}}}`},
	{"SessionNotification", wire.ClientMethod, "session/update", false, `{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"","name":"web.search","kind":"switch_mode","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"t"},"_meta":{}},{"type":"diff","path":"/a","oldText":"","newText":"","_meta":{}},{"type":"terminal","terminalId":"t","_meta":{}}],"locations":[{"path":"/a","line":1,"_meta":{}}],"rawInput":{"a":1.50},"rawOutput":[null],"_meta":{}}}`},
	{"SessionNotification", wire.ClientMethod, "session/update", false, `{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t"}}`},
	{"SessionNotification", wire.ClientMethod, "session/update", false, `{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"","status":"failed","content":[],"locations":[],"rawInput":1}}`},
	{"SessionNotification", wire.ClientMethod, "session/update", false, `{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[{"content":"c","priority":"low","status":"completed","_meta":{}}],"_meta":{}}}`},
	{"SessionNotification", wire.ClientMethod, "session/update", false, `{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"n","description":"d","input":{"hint":"h","_meta":{}},"_meta":{}}],"_meta":{}}}`},
	{"SessionNotification", wire.ClientMethod, "session/update", false, `{"sessionId":"s","update":{"sessionUpdate":"current_mode_update","currentModeId":"m","_meta":{}}}`},
	{"SessionNotification", wire.ClientMethod, "session/update", false, `{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[],"_meta":{}}}`},
	{"SessionNotification", wire.ClientMethod, "session/update", false, `{"sessionId":"s","update":{"sessionUpdate":"session_info_update","title":null,"updatedAt":"u","_meta":{}}}`},
	{"SessionNotification", wire.ClientMethod, "session/update", false, `{"sessionId":"s","update":{"sessionUpdate":"session_info_update"}}`},
	{"SessionNotification", wire.ClientMethod, "session/update", false, `{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":18446744073709551615,"size":0,"cost":{"amount":1.10,"currency":"EUR","_meta":{}},"_meta":{}}}`},
	{"RequestPermissionRequest", wire.ClientMethod, "session/request_permission", false, `{"sessionId":"s","toolCall":{"toolCallId":"t","title":"T","kind":"edit","rawInput":{}},"options":[{"optionId":"o","name":"n","kind":"reject_always","_meta":{}}],"_meta":{}}`},
	{"RequestPermissionResponse", wire.ClientMethod, "session/request_permission", true, `{"outcome":{"outcome":"cancelled"},"_meta":{}}`},
	{"RequestPermissionResponse", wire.ClientMethod, "session/request_permission", true, `{"outcome":{"outcome":"selected","optionId":"o","_meta":{}}}`},
	{"ReadTextFileRequest", wire.ClientMethod, "fs/read_text_file", false, `{"sessionId":"s","path":"/a","line":1,"limit":0,"_meta":{}}`},
	{"ReadTextFileResponse", wire.ClientMethod, "fs/read_text_file", true, `{"content":"","_meta":{}}`},
	{"WriteTextFileRequest", wire.ClientMethod, "fs/write_text_file", false, `{"sessionId":"s","path":"/a","content":"","_meta":{}}`},
	{"WriteTextFileResponse", wire.ClientMethod, "fs/write_text_file", true, `{}`},
	{"CreateTerminalRequest", wire.ClientMethod, "terminal/create", false, `{"sessionId":"s","command":"","args":["a",""],"env":[{"name":"A","value":""}],"cwd":"/w","outputByteLimit":0,"_meta":{}}`},
	{"CreateTerminalResponse", wire.ClientMethod, "terminal/create", true, `{"terminalId":"t","_meta":{}}`},
	{"TerminalOutputRequest", wire.ClientMethod, "terminal/output", false, `{"sessionId":"s","terminalId":"t","_meta":{}}`},
	{"TerminalOutputResponse", wire.ClientMethod, "terminal/output", true, `{"output":"","truncated":false,"exitStatus":{"exitCode":0,"signal":"","_meta":{}},"_meta":{}}`},
	{"WaitForTerminalExitRequest", wire.ClientMethod, "terminal/wait_for_exit", false, `{"sessionId":"s","terminalId":"t"}`},
	{"WaitForTerminalExitResponse", wire.ClientMethod, "terminal/wait_for_exit", true, `{"exitCode":4294967295,"signal":"KILL"}`},
	{"KillTerminalRequest", wire.ClientMethod, "terminal/kill", false, `{"sessionId":"s","terminalId":"t"}`},
	{"KillTerminalResponse", wire.ClientMethod, "terminal/kill", true, `{}`},
	{"ReleaseTerminalRequest", wire.ClientMethod, "terminal/release", false, `{"sessionId":"s","terminalId":"t"}`},
	{"ReleaseTerminalResponse", wire.ClientMethod, "terminal/release", true, `{}`},
}

func reader(t testing.TB, method side, name string, result bool) func(json.RawMessage) (any, error) {
	t.Helper()
	m, ok := method(name)
	if !ok || m.Name != name {
		t.Fatalf("there is no method %s", name)
	}
	if result {
		return m.ReadResult
	}
	return m.ReadParams
}

func schema(t testing.TB) *corpora.Components {
	return corpora.Definitions(t, "acp", "v1.schema.json")
}

func value(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// TestWholeValues: every member of the protocol is read and written, by the schema.
func TestWholeValues(t *testing.T) {
	schemas := schema(t)
	seen := map[string]bool{}
	for _, c := range whole {
		seen[c.name] = true
		if err := schemas.Check(c.definition, []byte(c.text)); err != nil {
			t.Errorf("the sample of %s: %v", c.definition, err)
		}
		read, err := reader(t, c.method, c.name, c.result)([]byte(" " + c.text + "\n"))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		written, err := json.Marshal(read)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if err := schemas.Check(c.definition, written); err != nil {
			t.Errorf("%s: %v", written, err)
		}
		if !reflect.DeepEqual(value(t, string(written)), value(t, c.text)) {
			t.Errorf("%s is written as\n%s", c.text, written)
		}
	}
	for _, name := range methodNames(t) {
		if !seen[name] && !strings.HasPrefix(name, "elicitation/") { // which is not offered
			t.Errorf("no sample of %s", name)
		}
	}
}

// methodNames are those of the schema.
func methodNames(t testing.TB) []string {
	var names []string
	for definition, members := range value(t, string(schemaText(t))).(map[string]any)["$defs"].(map[string]any) {
		if name, ok := members.(map[string]any)["x-method"].(string); ok {
			names = append(names, name)
		} else if strings.HasSuffix(definition, "Request") && !strings.HasPrefix(definition, "Ext") && definition != "AgentRequest" && definition != "ClientRequest" {
			t.Errorf("%s has no method", definition)
		}
	}
	if len(names) < 40 {
		t.Errorf("the schema has %d methods", len(names))
	}
	return names
}
