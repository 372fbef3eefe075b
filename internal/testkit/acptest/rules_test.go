package acptest

import (
	"strings"
	"testing"
)

func updated(update string) string {
	return `< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":` + update + `}}}`
}

const called = `"tool_call","toolCallId":"t","title":"T"`

// faults are conversations after opening whose last line is wrong, with a part of the fault.
var faults = []struct{ name, fault, line string }{
	{"no JSON", "JSON that ends too early", `< {"jsonrpc":"2.0"`},
	{"two values", "no strict JSON, after byte 61", `< {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}} {}`},
	{"a name twice", "twice", `< {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","stopReason":"refusal"}}`},
	{"no UTF-8", "UTF-8", "< {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"stopReason\":\"\xff\"}}"},
	{"a carriage return", "a line ends", "< {\"jsonrpc\":\"2.0\",\r\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}"},
	{"a further member", "no member", `< {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"},"more":1}`},
	{"no version", "jsonrpc", `< {"id":3,"result":{"stopReason":"end_turn"}}`},
	{"neither", "no request, no notification", `< {"jsonrpc":"2.0","id":3}`},
	{"both", "no request, no notification", `< {"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":"m"}}`},
	{"a method and a result", "no answer", `< {"jsonrpc":"2.0","id":3,"method":"session/update","result":{}}`},
	{"a method of another type", "method", `< {"jsonrpc":"2.0","method":5}`},
	{"an id of another type", "the id is", `> {"jsonrpc":"2.0","id":1.5,"method":"session/list"}`},
	{"an id of null", "the id is", `> {"jsonrpc":"2.0","id":null,"method":"session/list"}`},
	{"an id that is open", "open request", `> {"jsonrpc":"2.0","id":3,"method":"session/list"}`},
	{"an answer to nothing", "no request waits", `< {"jsonrpc":"2.0","id":77,"result":{}}`},
	{"an answer by the asker", "no request waits", `> {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`},
	{"a method of the other side", "no request of that method", `< {"jsonrpc":"2.0","id":8,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`},
	{"an unknown method", "no request of that method", `< {"jsonrpc":"2.0","id":8,"method":"mcp/message","params":{}}`},
	{"a notification as a request", "no request of that method", `< {"jsonrpc":"2.0","id":8,"method":"session/update","params":{}}`},
	{"a request as a notification", "no notification of that method", `< {"jsonrpc":"2.0","method":"fs/read_text_file","params":{"sessionId":"s","path":"/a"}}`},
	{"wrong parameters", "missing property", `< {"jsonrpc":"2.0","id":8,"method":"fs/read_text_file","params":{"sessionId":"s"}}`},
	{"a wrong result", "stopReason", `< {"jsonrpc":"2.0","id":3,"result":{"stopReason":"finished"}}`},
	{"a wrong error", "code", `< {"jsonrpc":"2.0","id":3,"error":{"code":"E","message":"m"}}`},
	{"a wrong update", "sessionUpdate", updated(`"tool_call_chunk","toolCallId":"t"`)},
	{"a kind that is none", "kind", updated(called + `,"kind":"write"`)},
	{"a status that is none", "status", updated(called + `,"status":"cancelled"`)},
	{"an undeclared member below", "/more': false schema", updated(called + `,"content":[{"type":"content","content":{"type":"text","text":"t","more":1}}]`)},
	{"another session", "no session", strings.Replace(updated(called), `"s"`, `"z"`, 1)},
	{"an update of an unknown call", "is known: false", updated(`"tool_call_update","toolCallId":"t"`)},
	{"an empty title", "empty title", updated(`"tool_call","toolCallId":"t","title":""`)},
	{"a relative location", "not absolute", updated(called + `,"locations":[{"path":"a"}]`)},
	{"line 0", "the line is 0", updated(called + `,"locations":[{"path":"/a","line":0}]`)},
	{"a relative diff", "not absolute", updated(called + `,"content":[{"type":"diff","path":"a","newText":"b"}]`)},
	{"a relative path", "not absolute", `< {"jsonrpc":"2.0","id":8,"method":"fs/read_text_file","params":{"sessionId":"s","path":"a"}}`},
	{"a relative cwd", "not absolute", `> {"jsonrpc":"2.0","id":8,"method":"session/new","params":{"cwd":"w","mcpServers":[]}}`},
	{"no options", "no option", `< {"jsonrpc":"2.0","id":8,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[]}}`},
	{"an option twice", "twice", `< {"jsonrpc":"2.0","id":8,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"o","name":"A","kind":"allow_once"},{"optionId":"o","name":"B","kind":"reject_once"}]}}`},
	{"no such terminal", "no terminal", `< {"jsonrpc":"2.0","id":8,"method":"terminal/kill","params":{"sessionId":"s","terminalId":"y"}}`},
	{"a session that is there", "not new", "> " + request(8, "session/new", "NewSessionRequest") + "\n< " + answer(8, "NewSessionResponse")},
	{"a call twice", "is known: true", updated(called) + "\n" + updated(called)},
	{"back from in_progress", "from in_progress to pending", updated(called+`,"status":"in_progress"`) + "\n" + updated(`"tool_call_update","toolCallId":"t","status":"pending"`)},
	{"after the end", "from failed to completed", updated(called+`,"status":"failed"`) + "\n" + updated(`"tool_call_update","toolCallId":"t","status":"completed"`)},
	{"an end with an open call", "is pending", updated(called) + "\n< " + answer(3, "PromptResponse")},
	{"text after the end", "no prompt is open", "< " + answer(3, "PromptResponse") + "\n" + updated(`"agent_message_chunk","content":{"type":"text","text":"t"}`)},
	{"a permission after the end", "no prompt is open", "< " + answer(3, "PromptResponse") + "\n< " + request(8, "session/request_permission", "RequestPermissionRequest")},
	{"two ends", "no request waits", "< " + answer(3, "PromptResponse") + "\n< " + answer(3, "PromptResponse")},
	{"a cancelled prompt with an error", "with an error", `> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}` + "\n" + `< {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"m"}}`},
	{"an option that was not offered", "not offered", "< " + request(8, "session/request_permission", "RequestPermissionRequest") + "\n" + `> {"jsonrpc":"2.0","id":8,"result":{"outcome":{"outcome":"selected","optionId":"p"}}}`},
	{"a permission in a cancelled turn", "the turn is cancelled", "< " + request(8, "session/request_permission", "RequestPermissionRequest") + "\n" + `> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}` + "\n> " + answer(8, "RequestPermissionResponse")},
	{"a released terminal", "no terminal", "< " + request(8, "terminal/create", "CreateTerminalRequest") + "\n> " + answer(8, "CreateTerminalResponse") + "\n< " + request(9, "terminal/release", "ReleaseTerminalRequest") + "\n> " + answer(9, "ReleaseTerminalResponse") + "\n< " + request(10, "terminal/output", "TerminalOutputRequest")},
	{"an unknown session's prompt with a result", "unknown session", `> {"jsonrpc":"2.0","id":8,"method":"session/prompt","params":{"sessionId":"z","prompt":[]}}` + "\n< " + answer(8, "PromptResponse")},
}

// TestFaults: each kind of invalid message is found, and is the fault of its sender.
func TestFaults(t *testing.T) {
	s := readSchemas(t)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			r := newRecorder(s, Client, Agent)
			lines := append(opening(), strings.Split(f.line, "\n")...)
			play(r, lines[:len(lines)-1]...)
			if before := append(r.Faults(Client), r.Faults(Agent)...); len(before) > 0 {
				t.Fatalf("before the last line: %v", before)
			}
			last := lines[len(lines)-1]
			play(r, last)
			found := map[byte][]error{'>': r.Faults(Client), '<': r.Faults(Agent)}[last[0]]
			if len(found) != 1 || !strings.Contains(found[0].Error(), f.fault) || len(r.Faults(Client))+len(r.Faults(Agent)) != 1 {
				t.Errorf("found %v, want %q", found, f.fault)
			}
			broken := &failing{TB: t}
			if r.Check(broken); broken.errors != 1 {
				t.Errorf("the test fails %d times", broken.errors)
			}
		})
	}
}

// failing is a test that counts its errors.
type failing struct {
	testing.TB
	errors int
}

func (f *failing) Helper()             {}
func (f *failing) Logf(string, ...any) {}
func (f *failing) Error(...any)        { f.errors++ }

// TestOffers: whatever a side does not offer, the other one must not use.
func TestOffers(t *testing.T) {
	s := readSchemas(t)
	quiet := []string{
		`> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
		`< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`,
		`> {"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`,
		"< " + answer(2, "NewSessionResponse"),
	}
	for side, methods := range map[Side][]string{
		Client: {"session/load", "session/list", "session/delete", "session/resume", "session/close", "logout"},
		Agent:  {"fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release", "elicitation/create"},
	} {
		for _, method := range methods {
			r := newRecorder(s, Client, Agent)
			play(r, quiet...)
			r.Record(side, []byte(request(5, method, s.requests[side][method])))
			if found := r.Faults(side); len(found) != 1 || !strings.Contains(found[0].Error(), "does not offer") {
				t.Errorf("%s: %v", method, found)
			}
		}
	}
	for name, params := range map[string]string{
		"session/new":    `{"cwd":"/w","mcpServers":[],"additionalDirectories":["/x"]}`,
		"session/prompt": `{"sessionId":"s","prompt":[{"type":"image","data":"","mimeType":"image/png"}]}`,
		"session/new ":   `{"cwd":"/w","mcpServers":[{"type":"http","name":"n","url":"http://h","headers":[]}]}`,
	} {
		r := newRecorder(s, Client, Agent)
		play(r, quiet...)
		play(r, `> {"jsonrpc":"2.0","id":5,"method":"`+strings.TrimSpace(name)+`","params":`+params+`}`)
		if len(r.Faults(Client)) != 1 {
			t.Errorf("%s%s: %v", name, params, r.Faults(Client))
		}
	}
}

// TestFirst: nothing comes before the connection is initialized, and version 1 alone is
// served.
func TestFirst(t *testing.T) {
	for _, line := range []string{"> " + request(1, "session/new", "NewSessionRequest"), updated(called)} {
		r := NewRecorder(t, Client, Agent)
		play(r, line)
		if found := append(r.Faults(Client), r.Faults(Agent)...); len(found) != 1 {
			t.Errorf("%s: %v", line, found)
		}
	}
	for _, result := range []string{`{"protocolVersion":2}`, `{"protocolVersion":1,"authMethods":[{"type":"terminal","id":"t","name":"T"}]}`} {
		r := NewRecorder(t, Client, Agent)
		play(r, `> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`, `< {"jsonrpc":"2.0","id":1,"result":`+result+`}`)
		if len(r.Faults(Agent)) != 1 {
			t.Errorf("%s: %v", result, r.Faults(Agent))
		}
	}
}

// TestEnded: requests without an answer and terminals that nobody released are faults at
// the end.
func TestEnded(t *testing.T) {
	r := NewRecorder(t, Client, Agent)
	play(r, opening()...)
	play(r, "< "+request(8, "terminal/create", "CreateTerminalRequest"), "> "+answer(8, "CreateTerminalResponse"),
		"< "+request(9, "fs/read_text_file", "ReadTextFileRequest"))
	r.Ended()
	if agents, clients := r.Faults(Agent), r.Faults(Client); len(agents) != 2 || len(clients) != 1 {
		t.Errorf("%v %v", agents, clients)
	}
}

// TestForeign: a foreign side may use members that our copy of the schema does not know,
// and its faults fail no test of ours.
func TestForeign(t *testing.T) {
	r := NewRecorder(t, Client)
	play(r, opening()...)
	play(r, updated(called+`,"more":1`), updated(called), `< {"jsonrpc":"2.0","method":"_own","params":{}}`)
	r.Check(t)
	if found := r.Faults(Agent); len(found) != 1 || !strings.Contains(found[0].Error(), "_own") {
		t.Errorf("%v", found)
	}
}

// TestTaps: lines are recorded whole, however they are cut, before they pass.
func TestTaps(t *testing.T) {
	r := NewRecorder(t, Client, Agent)
	var out strings.Builder
	w := r.Writer(Client, &out)
	line := request(1, "initialize", "InitializeRequest") + "\n"
	for i := range len(line) {
		if _, err := w.Write([]byte{line[i]}); err != nil {
			t.Fatal(err)
		}
	}
	in := r.Reader(Agent, strings.NewReader(answer(1, "InitializeResponse")+"\n"))
	for b := make([]byte, 3); ; {
		if _, err := in.Read(b); err != nil {
			break
		}
	}
	r.Ended()
	r.Check(t)
	if out.String() != line || len(r.Lines()) != 2 {
		t.Errorf("%d lines: %v", len(r.Lines()), r.Lines())
	}
}
