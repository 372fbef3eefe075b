package acptest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
)

// samples are a valid value for each definition of parameters and of a result.
var samples = map[string]string{
	"InitializeRequest":               `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"c","version":"1"}}`,
	"InitializeResponse":              `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true},"sessionCapabilities":{"list":{},"delete":{},"additionalDirectories":{},"resume":{},"close":{}},"auth":{"logout":{}}},"authMethods":[]}`,
	"AuthenticateRequest":             `{"methodId":"m"}`,
	"AuthenticateResponse":            `{}`,
	"LogoutRequest":                   `{}`,
	"LogoutResponse":                  `{}`,
	"NewSessionRequest":               `{"cwd":"/w","mcpServers":[{"name":"n","command":"/c","args":[],"env":[{"name":"A","value":"b"}]}],"additionalDirectories":["/x"]}`,
	"NewSessionResponse":              `{"sessionId":"s","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"}]}}`,
	"LoadSessionRequest":              `{"sessionId":"l","cwd":"/w","mcpServers":[]}`,
	"LoadSessionResponse":             `{}`,
	"ResumeSessionRequest":            `{"sessionId":"r","cwd":"/w"}`,
	"ResumeSessionResponse":           `{}`,
	"CloseSessionRequest":             `{"sessionId":"r"}`,
	"CloseSessionResponse":            `{}`,
	"ListSessionsRequest":             `{}`,
	"ListSessionsResponse":            `{"sessions":[{"sessionId":"s","cwd":"/w"}]}`,
	"DeleteSessionRequest":            `{"sessionId":"l"}`,
	"DeleteSessionResponse":           `{}`,
	"SetSessionModeRequest":           `{"sessionId":"s","modeId":"ask"}`,
	"SetSessionModeResponse":          `{}`,
	"SetSessionConfigOptionRequest":   `{"sessionId":"s","configId":"c","value":"v"}`,
	"SetSessionConfigOptionResponse":  `{"configOptions":[{"id":"c","name":"C","type":"select","currentValue":"v","options":[{"value":"v","name":"V"}]}]}`,
	"PromptRequest":                   `{"sessionId":"s","prompt":[{"type":"text","text":"hello"},{"type":"resource_link","uri":"file:///w/a","name":"a"}]}`,
	"PromptResponse":                  `{"stopReason":"end_turn"}`,
	"CancelNotification":              `{"sessionId":"s"}`,
	"CancelRequestNotification":       `{"requestId":7}`,
	"SessionNotification":             `{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"Read a","kind":"read","status":"pending","name":"fs.read","locations":[{"path":"/w/a","line":1}],"rawInput":{"path":"/w/a"}}}`,
	"CompleteElicitationNotification": `{"elicitationId":"e"}`,
	"RequestPermissionRequest":        `{"sessionId":"s","toolCall":{"toolCallId":"t","title":"Read a"},"options":[{"optionId":"o","name":"Allow","kind":"allow_once"}]}`,
	"RequestPermissionResponse":       `{"outcome":{"outcome":"selected","optionId":"o"}}`,
	"ReadTextFileRequest":             `{"sessionId":"s","path":"/w/a","line":1,"limit":2}`,
	"ReadTextFileResponse":            `{"content":"a"}`,
	"WriteTextFileRequest":            `{"sessionId":"s","path":"/w/a","content":"b"}`,
	"WriteTextFileResponse":           `{}`,
	"CreateTerminalRequest":           `{"sessionId":"s","command":"make","args":["-s"],"env":[],"cwd":"/w","outputByteLimit":9}`,
	"CreateTerminalResponse":          `{"terminalId":"x"}`,
	"TerminalOutputRequest":           `{"sessionId":"s","terminalId":"x"}`,
	"TerminalOutputResponse":          `{"output":"o","truncated":false,"exitStatus":{"exitCode":0,"signal":null}}`,
	"WaitForTerminalExitRequest":      `{"sessionId":"s","terminalId":"x"}`,
	"WaitForTerminalExitResponse":     `{"exitCode":0}`,
	"KillTerminalRequest":             `{"sessionId":"s","terminalId":"x"}`,
	"KillTerminalResponse":            `{}`,
	"ReleaseTerminalRequest":          `{"sessionId":"s","terminalId":"x"}`,
	"ReleaseTerminalResponse":         `{}`,
	"CreateElicitationRequest":        `{"sessionId":"s","mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`,
	"CreateElicitationResponse":       `{"action":"accept","content":{"a":"b"}}`,
}

// required are the members that a definition asks for at its root.
func required(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(corpora.Testdata("schemas", "acp", schemaFile))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Defs map[string]struct{ Required []string } `json:"$defs"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	of := map[string][]string{}
	for name, d := range document.Defs {
		of[name] = d.Required
	}
	return of
}

// TestEveryMethod: the schema gives each method of meta.json to one side, and there is a
// sample of every message.
func TestEveryMethod(t *testing.T) {
	data, err := os.ReadFile(corpora.Testdata("schemas", "acp", "v1.meta.json"))
	if err != nil {
		t.Fatal(err)
	}
	var meta struct {
		AgentMethods, ClientMethods, ProtocolMethods map[string]string
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		t.Fatal(err)
	}
	s := readSchemas(t)
	for sender, methods := range map[Side]map[string]string{Client: meta.AgentMethods, Agent: meta.ClientMethods} {
		maps.Copy(methods, meta.ProtocolMethods)
		ours := slices.Concat(slices.Collect(maps.Keys(s.requests[sender])), slices.Collect(maps.Keys(s.notifications[sender])))
		if theirs := slices.Sorted(maps.Values(methods)); !slices.Equal(slices.Sorted(slices.Values(ours)), theirs) {
			t.Errorf("from the %s: %v, want %v", sender, ours, theirs)
		}
		for method, definition := range s.requests[sender] {
			if samples[definition] == "" || samples[s.results[method]] == "" {
				t.Errorf("%s has no sample", method)
			}
		}
		for method, definition := range s.notifications[sender] {
			if samples[definition] == "" {
				t.Errorf("%s has no sample", method)
			}
		}
	}
}

// TestBrokenSamples: every sample is valid, and no longer with a member that is required
// left out, with a member of another type, or, of a side of ours, with one that nobody
// declared, in it or in any object below.
func TestBrokenSamples(t *testing.T) {
	s := readSchemas(t)
	needs := required(t)
	for definition, sample := range samples {
		for _, ours := range []bool{true, false} {
			if err := s.check(ours, definition, []byte(sample)); err != nil {
				t.Errorf("%s: %v", definition, err)
			}
		}
		var object map[string]any
		if err := json.Unmarshal([]byte(sample), &object); err != nil {
			t.Fatalf("%s: %v", definition, err)
		}
		for _, name := range needs[definition] {
			for what, broken := range map[string]any{"absent": nil, "a number": 0.5} {
				changed := maps.Clone(object)
				changed[name] = broken
				if broken == nil {
					delete(changed, name)
				}
				if s.check(false, definition, marshalled(t, changed)) == nil {
					t.Errorf("%s: %q may be %s", definition, name, what)
				}
			}
		}
		for _, place := range extended(object) {
			if s.check(true, definition, place) == nil {
				t.Errorf("%s: taken with an undeclared member: %s", definition, place)
			}
		}
	}
}

// extended are copies of a value, each with an undeclared member in one of its objects.
func extended(v any) (all [][]byte) {
	var walk func(v any)
	root := v
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if free := v["path"] != nil && len(v) == 1 || v["a"] != nil; !free { // a tool's input, an answer, properties
				v["undeclared"] = 1
				b, _ := json.Marshal(root)
				all = append(all, b)
				delete(v, "undeclared")
			}
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	walk(root)
	return all
}

func marshalled(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// message is a line, with its sender before it: "> " of the client, "< " of the agent.
func play(r *Recorder, lines ...string) {
	for _, line := range lines {
		from := Client
		if line[0] == '<' {
			from = Agent
		}
		r.Record(from, []byte(line[2:]))
	}
}

func request(id int, method, definition string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, samples[definition])
}

func answer(id int, definition string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, samples[definition])
}

// opening initializes a connection and opens the session "s", and a prompt in it, which has
// the id 3.
func opening() []string {
	return []string{
		"> " + request(1, "initialize", "InitializeRequest"), "< " + answer(1, "InitializeResponse"),
		"> " + request(2, "session/new", "NewSessionRequest"), "< " + answer(2, "NewSessionResponse"),
		"> " + request(3, "session/prompt", "PromptRequest"),
	}
}

// TestWholeConversation: a conversation with every method in both directions has no fault.
func TestWholeConversation(t *testing.T) {
	r := NewRecorder(t, Client, Agent)
	s := r.schemas
	play(r, opening()...)
	play(r, "< "+strings.Replace(request(0, "session/update", "SessionNotification"), `"id":0,`, "", 1))
	id := 10
	ordered := []string{"session/request_permission", "fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release", "elicitation/create"}
	for _, method := range ordered {
		play(r, "< "+request(id, method, s.requests[Agent][method]), "> "+answer(id, s.results[method]))
		id++
	}
	play(r, `< {"jsonrpc":"2.0","method":"elicitation/complete","params":{"elicitationId":"e"}}`,
		`< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}}}`,
		`> {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":99}}`,
		"< "+answer(3, "PromptResponse"))
	for _, method := range []string{"authenticate", "session/load", "session/resume", "session/list", "session/set_mode", "session/set_config_option", "session/close", "session/delete", "logout"} {
		play(r, "> "+request(id, method, s.requests[Client][method]), "< "+answer(id, s.results[method]))
		id++
	}
	play(r, `> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`)
	r.Ended()
	r.Check(t)
	if seen := r.Seen(); seen["agent result session/prompt end_turn"] != 1 || seen["agent notification session/update tool_call pending"] != 1 {
		t.Errorf("seen: %v", seen)
	}
}
