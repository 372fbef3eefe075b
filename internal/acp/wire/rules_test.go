package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/acp/wire"
)

// faulty is a value with the place of its fault; "-" is none.
type faulty struct{ text, pointer string }

// holds reads values of a method, and compares where each is refused.
func holds(t *testing.T, method side, name string, result bool, list []faulty) {
	t.Helper()
	read := reader(t, method, name, result)
	for _, c := range list {
		_, err := read([]byte(c.text))
		var fault *wire.Error
		switch {
		case err == nil && c.pointer == "-":
		case err == nil || c.pointer == "-":
			t.Errorf("%s: %v; expected a fault at %q", c.text, err, c.pointer)
		case !errors.As(err, &fault) || fault.Pointer != c.pointer || fault.Expected == "" || fault.Found == "":
			t.Errorf("%s: %v; expected a fault at %q", c.text, err, c.pointer)
		}
	}
}

func update(text string) string { return `{"sessionId":"s","update":{"sessionUpdate":` + text + `}}` }

// TestACP53DiffPaths: the path of a diff is absolute, and the old text may be absent or null.
func TestACP53DiffPaths(t *testing.T) {
	diff := func(members string) string {
		return update(`"tool_call_update","toolCallId":"t","content":[{"type":"diff",` + members + `}]`)
	}
	holds(t, wire.ClientMethod, wire.MethodSessionUpdate, false, []faulty{
		{diff(`"path":"/a","newText":""`), "-"}, {diff(`"path":"/a","oldText":null,"newText":"x"`), "-"}, {diff(`"path":"/a","oldText":"","newText":"x"`), "-"},
		{diff(`"path":"a","newText":""`), "/update/content/0/path"}, {diff(`"path":"","newText":""`), "/update/content/0/path"},
		{diff(`"path":"/a\u0000","newText":""`), "/update/content/0/path"}, {diff(`"path":"file:///a","newText":""`), "/update/content/0/path"},
		{diff(`"path":"/a"`), "/update/content/0"}, {diff(`"newText":""`), "/update/content/0"},
	})
}

// TestReportedPaths: a report may have relative paths that lead below the folder they start in, and no
// others. No other reader takes them.
func TestReportedPaths(t *testing.T) {
	for path, taken := range map[string]bool{
		"/a": true, "a": true, "a/b.md": true, "./a": true, "a..b": true,
		"": false, "..": false, "../a": false, "a/../b": false, "file:///a": false, `C:\\a`: false, `a\u0000`: false,
	} {
		for _, members := range []string{`"locations":[{"path":"` + path + `"}]`, `"content":[{"type":"diff","newText":"","path":"` + path + `"}]`} {
			report := []byte(update(`"tool_call_update","toolCallId":"t",` + members))
			if _, err := wire.ReadReport(report); (err == nil) != taken {
				t.Errorf("%s: %v", members, err)
			}
			if _, err := wire.Read[wire.SessionNotification](report); (err == nil) != (path == "/a") {
				t.Errorf("%s, strictly: %v", members, err)
			}
		}
	}
}

// TestACP54Locations: the path of a location is absolute, and lines begin at 1. Agents write 0
// for "no line", so that 0 is none.
func TestACP54Locations(t *testing.T) {
	at := func(members string) string {
		return update(`"tool_call","toolCallId":"t","title":"T","locations":[{` + members + `}]`)
	}
	holds(t, wire.ClientMethod, wire.MethodSessionUpdate, false, []faulty{
		{at(`"path":"/a","line":1`), "-"}, {at(`"path":"/a","line":null`), "-"}, {at(`"path":"/a","line":0`), "-"}, {at(`"path":"/a","line":4294967295`), "-"},
		{at(`"path":"./a"`), "/update/locations/0/path"}, {at(`"path":"/a","line":-1`), "/update/locations/0/line"},
		{at(`"path":"/a","line":4294967296`), "/update/locations/0/line"}, {at(`"path":"/a","line":1.0`), "/update/locations/0/line"}, {at(`"path":"/a","line":"1"`), "/update/locations/0/line"},
	})
	read, err := wire.Read[wire.SessionNotification]([]byte(at(`"path":"/a","line":0`)))
	if call, ok := read.Update.(wire.ToolCall); err != nil || !ok || call.Locations[0].Line != nil {
		t.Errorf("%+v, %v", read, err)
	}
	holds(t, wire.ClientMethod, wire.MethodReadTextFile, false, []faulty{
		{`{"sessionId":"s","path":"/a","line":0}`, "/line"}, {`{"sessionId":"s","path":"a"}`, "/path"}, {`{"sessionId":"s","path":"/a","limit":-1}`, "/limit"},
	})
}

// TestACP20Folders: the folders of a session are absolute (ACP-21 too).
func TestACP20Folders(t *testing.T) {
	holds(t, wire.AgentMethod, wire.MethodSessionNew, false, []faulty{
		{`{"cwd":"/w","mcpServers":[]}`, "-"}, {`{"cwd":"w","mcpServers":[]}`, "/cwd"}, {`{"cwd":"~/w","mcpServers":[]}`, "/cwd"},
		{`{"cwd":"/w","mcpServers":[],"additionalDirectories":["/a","b"]}`, "/additionalDirectories/1"}, {`{"cwd":"/w"}`, ""},
		{`{"cwd":"/w","mcpServers":[{"type":"acp","name":"n","id":"i"}]}`, "/mcpServers/0/type"},
		{`{"cwd":"/w","mcpServers":[{"name":"n","command":"c","args":[],"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}`, "/mcpServers/0/env/1"},
	})
	holds(t, wire.ClientMethod, wire.MethodTerminalCreate, false, []faulty{
		{`{"sessionId":"s","command":"c","cwd":null}`, "-"}, {`{"sessionId":"s","command":"c","cwd":"w"}`, "/cwd"},
		{`{"sessionId":"s","command":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"1"}]}`, "/env/1"}, {`{"sessionId":"s","command":"c","env":{"A":"1"}}`, "/env"},
	})
}

// TestACP11Members: in a request of an agent a member that the protocol does not have is refused;
// elsewhere it is dropped, and only _meta passes, up to a bound.
func TestACP11Members(t *testing.T) {
	for name, params := range map[string]string{
		wire.MethodReadTextFile: `"path":"/a"`, wire.MethodWriteTextFile: `"path":"/a","content":""`, wire.MethodTerminalCreate: `"command":"c"`,
		wire.MethodTerminalKill: `"terminalId":"t"`, wire.MethodRequestPermission: `"toolCall":{"toolCallId":"t"},"options":[{"optionId":"o","name":"n","kind":"allow_once"}]`,
	} {
		text := `{"sessionId":"s",` + params
		holds(t, wire.ClientMethod, name, false, []faulty{{text + `}`, "-"}, {text + `,"_meta":{"more":1}}`, "-"}, {text + `,"_meta":1}`, "/_meta"}, {text + `,"more":1}`, ""}})
	}
	long := `{"a":"` + strings.Repeat("x", wire.MaxMeta) + `"}`
	read, err := wire.Read[wire.PromptRequest]([]byte(`{"sessionId":"s","more":1,"prompt":[{"type":"text","text":"t","more":{},"_meta":` + long + `}],"_meta":{"b":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	if written, err := json.Marshal(read); err != nil || string(written) != `{"sessionId":"s","prompt":[{"type":"text","text":"t"}],"_meta":{"b":2}}` {
		t.Errorf("%s, %v", written, err)
	}
}

// TestACP05Capabilities: what is absent is not offered, and what the protocol does not have is
// not passed on.
func TestACP05Capabilities(t *testing.T) {
	for text, want := range map[string]string{
		`{"protocolVersion":1}`: `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false,"auth":{"terminal":false}}}`,
		`{"protocolVersion":2,"clientCapabilities":{"fs":{"readTextFile":true,"deleteFile":true},"session":{"notices":{}},"elicitation":{}}}`: `{"protocolVersion":2,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":false},"terminal":false,"session":{},"auth":{"terminal":false},"elicitation":{}}}`,
	} {
		read, err := wire.Read[wire.InitializeRequest]([]byte(text))
		if written, marshal := json.Marshal(read); err != nil || marshal != nil || string(written) != want {
			t.Errorf("%s: %s, %v; expected %s", text, written, err, want)
		}
	}
	holds(t, wire.AgentMethod, wire.MethodInitialize, false, []faulty{
		{`{}`, ""}, {`{"protocolVersion":65536}`, "/protocolVersion"}, {`{"protocolVersion":"1"}`, "/protocolVersion"},
		{`{"protocolVersion":1,"clientCapabilities":{"terminal":1}}`, "/clientCapabilities/terminal"},
	})
	read, err := wire.Read[wire.InitializeResponse]([]byte(`{"protocolVersion":1,"authMethods":[{"id":"a","name":"A"},{"type":"env_var","id":"b","name":"B","vars":[]},{"type":"agent","id":"c","name":"C"}]}`))
	if err != nil || len(read.AuthMethods) != 2 || read.AuthMethods[1].ID != "c" {
		t.Errorf("%+v, %v", read, err)
	}
}

// TestBounds: lists, and objects of any names, are bounded.
func TestBounds(t *testing.T) {
	list := "[" + strings.Repeat(`"x",`, wire.MaxItems) + `"x"]`
	variables := make([]string, wire.MaxItems+1)
	for i := range variables {
		variables[i] = fmt.Sprintf(`"v%d":""`, i)
	}
	method := func(member, value string) string {
		return `{"protocolVersion":1,"authMethods":[{"type":"terminal","id":"t","name":"T",` + member + value + `}]}`
	}
	holds(t, wire.AgentMethod, wire.MethodInitialize, true, []faulty{
		{method(`"args":`, list), "/authMethods/0/args"}, {method(`"args":`, strings.Replace(list, `"x",`, "", 1)), "-"},
		{method(`"env":{`, strings.Join(variables, ",")+"}"), "/authMethods/0/env"}, {method(`"env":{`, strings.Join(variables[1:], ",")+"}"), "-"},
	})
}

// TestACP46Options: a question has at least one option, and no id stands for two.
func TestACP46Options(t *testing.T) {
	options := func(list string) string {
		return `{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[` + list + `]}`
	}
	const one = `{"optionId":"o","name":"n","kind":"allow_once"}`
	holds(t, wire.ClientMethod, wire.MethodRequestPermission, false, []faulty{
		{options(one), "-"}, {options(""), "/options"}, {options(one + "," + strings.Replace(one, "allow", "reject", 1)), "/options/1"},
		{options(strings.Replace(one, "allow_once", "_custom", 1)), "/options/0/kind"}, {options(strings.Replace(one, `"o"`, `""`, 1)), "/options/0/optionId"},
	})
	holds(t, wire.ClientMethod, wire.MethodRequestPermission, true, []faulty{
		{`{"outcome":{"outcome":"selected"}}`, "/outcome"}, {`{"outcome":{"outcome":"approved","optionId":"o"}}`, "/outcome/outcome"}, {`{"outcome":"selected"}`, "/outcome"}, {`{}`, ""}, {`null`, ""},
	})
}

// TestStrictJSON: a value is strict JSON of the right kind, and errors quote none of it.
func TestStrictJSON(t *testing.T) {
	for _, text := range []string{
		`{"sessionId":"secret","sessionId":"b"}`, `{"sessionId":"secret"`, `{"sessionId":"\ud800secret"}`, "{\"sessionId\":\"secret\xff\"}", `{"sessionId":"s"} secret`, `["secret"]`, `"secret"`, `{"sessionId":["secret"]}`,
		`{"sessionId":"` + strings.Repeat("secret", 200) + `"}`, `{"a":{"b":1,"b":2},"sessionId":"secret"}`,
	} {
		_, err := wire.Read[wire.SessionRequest]([]byte(text))
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := wire.Read[wire.ListSessionsRequest](nil); err != nil {
		t.Errorf("no params: %v", err)
	}
}

// TestMethods: each side has its own methods, and unstable ones and extensions are none.
func TestMethods(t *testing.T) {
	for _, name := range []string{"", "mcp/message", "_zed/x", "session/fork", "initialize ", "Initialize", "session/update\n"} {
		_, agent := wire.AgentMethod(name)
		_, client := wire.ClientMethod(name)
		if agent || client {
			t.Errorf("%q is a method", name)
		}
	}
	for name, agents := range map[string]bool{wire.MethodSessionPrompt: true, wire.MethodSessionUpdate: false, wire.MethodReadTextFile: false, wire.MethodLogout: true} {
		_, agent := wire.AgentMethod(name)
		if _, client := wire.ClientMethod(name); agent != agents || client == agents {
			t.Errorf("%s: %t, %t", name, agent, client)
		}
	}
}

// TestWritersFail: a value of no type is not written.
func TestWritersFail(t *testing.T) {
	for _, v := range []any{wire.ContentBlock{}, wire.ToolContent{Type: "chart"}, wire.MCPServer{Transport: "acp"}, wire.SessionNotification{SessionID: "s"}} {
		if raw, err := json.Marshal(v); err == nil {
			t.Errorf("%T is written as %s", v, raw)
		}
	}
	for _, v := range []any{wire.Plan{}, wire.AvailableCommandsUpdate{}, wire.ConfigOptionUpdate{}, wire.ListSessionsResponse{}, wire.InitializeResponse{}, wire.NewSessionRequest{}, wire.MCPServer{Transport: wire.HTTP}} {
		if raw, err := json.Marshal(v); err != nil || strings.Contains(string(raw), "null") {
			t.Errorf("%s is written as %s, %v", fmt.Sprintf("%T", v), raw, err)
		}
	}
}
