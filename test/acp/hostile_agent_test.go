package acp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
)

// Requests of an agent in the session s1.
func readRequest(path string) string {
	return requestLine(`"a"`, wire.MethodReadTextFile, `{"sessionId":"s1","path":`+path+`}`)
}
func writeRequest(path string) string {
	return requestLine(`"a"`, wire.MethodWriteTextFile, `{"sessionId":"s1","path":`+path+`,"content":"x"}`)
}
func runRequest(members string) string {
	return requestLine(`"a"`, wire.MethodTerminalCreate, `{"sessionId":"s1",`+members+`}`)
}
func askRequest(call, options string) string {
	return requestLine(`"a"`, wire.MethodRequestPermission, `{"sessionId":"s1","toolCall":{"toolCallId":"c",`+call+`},"options":`+options+`}`)
}

// bothOptions let a person say yes or no once.
const bothOptions = `[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]`

// agentShape is a hostile thing that an agent does within a prompt.
type agentShape struct {
	name  string
	lines []string
	// gets are texts that stand in one line which the agent gets.
	gets []string
	// editor is the method of the requests that the editor gets, and how many; empty: nothing but
	// updates.
	editor string
	count  int
	// answer is the agent's answer to the prompt, if not the usual one, and told a text in the
	// line that the editor gets for it; empty: the turn has ended as usual.
	answer, reported string
	// unjudged says that the audit log must have a tool call that ran unjudged.
	unjudged bool
}

const (
	badID     = `"id":null,"error":{"code":-326`
	unparsed  = `"id":null,"error":{"code":-32700`
	refusedA  = `"id":"a","error":{`
	unknownA  = `"id":"a","error":{"code":-32601`
	cancelled = `"id":"a","result":{"outcome":{"outcome":"cancelled"}`
	rejectedA = `"id":"a","result":{"outcome":{"outcome":"selected","optionId":"no"}`
)

// frames are lines that are no message, and messages that seem to be others.
func frames() []agentShape {
	long := strings.Repeat("x", 9<<20)
	return []agentShape{
		{name: "no JSON", lines: []string{`{`}, gets: []string{unparsed}},
		{name: "no UTF-8", lines: []string{writeRequest("\"/w/\xff\"")}, gets: []string{unparsed}},
		{name: "half a surrogate pair", lines: []string{writeRequest(`"/w/\ud800"`)}, gets: []string{unparsed}},
		{name: "a name twice", lines: []string{writeRequest(`"/w/a","path":"/etc/passwd"`)}, gets: []string{unparsed}},
		{name: "a name twice, escaped", lines: []string{writeRequest(`"/w/a","p\u0061th":"/etc/passwd"`)}, gets: []string{unparsed}},
		{name: "the method twice", lines: []string{`{"jsonrpc":"2.0","id":"a","method":"fs/read_text_file","method":"fs/write_text_file","params":{"sessionId":"s1","path":"/w/a","content":"x"}}`}, gets: []string{unparsed}},
		{name: "a batch", lines: []string{`[` + writeRequest(`"/w/a"`) + `]`}, gets: []string{badID}},
		{name: "two messages on a line", lines: []string{writeRequest(`"/w/a"`) + writeRequest(`"/w/b"`)}, gets: []string{unparsed}},
		{name: "a frame too long", lines: []string{writeRequest(`"/w/` + long + `"`)}, gets: []string{refusedA}},
		{name: "a frame too long without an id", lines: []string{`{"params":{"x":"` + long + `"},"method":"fs/write_text_file","id":"a"}`}, gets: []string{badID}},
		{name: "nested deeply", lines: []string{requestLine(`"a"`, "session/request_permission", `{"x":`+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000)+`}`)}, gets: []string{unparsed}},
		{name: "an id of null", lines: []string{strings.Replace(writeRequest(`"/w/a"`), `"id":"a"`, `"id":null`, 1)}, gets: []string{badID}},
		{name: "an id that is a fraction", lines: []string{strings.Replace(writeRequest(`"/w/a"`), `"id":"a"`, `"id":1.5`, 1)}, gets: []string{badID}},
		{name: "an id that is an object", lines: []string{strings.Replace(writeRequest(`"/w/a"`), `"id":"a"`, `"id":{}`, 1)}, gets: []string{badID}},
		{name: "an id without an end", lines: []string{strings.Replace(writeRequest(`"/w/a"`), `"id":"a"`, `"id":"`+strings.Repeat("i", 100_000)+`"`, 1)}, gets: []string{badID}},
		{name: "another version", lines: []string{strings.Replace(writeRequest(`"/w/a"`), `"2.0"`, `"1.0"`, 1)}, gets: []string{refusedA}},
		{name: "no version", lines: []string{strings.Replace(writeRequest(`"/w/a"`), `"jsonrpc":"2.0",`, ``, 1)}, gets: []string{refusedA}},
		{name: "an unknown member of the message", lines: []string{strings.Replace(writeRequest(`"/w/a"`), `"id":"a"`, `"id":"a","trusted":true`, 1)}, gets: []string{refusedA}},
		{name: "params that are a list", lines: []string{requestLine(`"a"`, wire.MethodWriteTextFile, `["s1","/w/a","x"]`)}, gets: []string{refusedA}},
		{name: "a request as a notification", lines: []string{noticeLine(wire.MethodWriteTextFile, `{"sessionId":"s1","path":"/w/a","content":"x"}`)}},
		{name: "an update as a request", lines: []string{requestLine(`"a"`, wire.MethodSessionUpdate, `{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}`)}, gets: []string{unknownA}},
		{name: "a method of agents", lines: []string{requestLine(`"a"`, wire.MethodSessionPrompt, promptS1)}, gets: []string{unknownA}},
		{name: "a method of its own", lines: []string{requestLine(`"a"`, "_callgate/allow", `{}`)}, gets: []string{unknownA}},
		{name: "a method that is unstable", lines: []string{requestLine(`"a"`, "mcp/connect", `{"serverId":"x"}`)}, gets: []string{unknownA}},
		{name: "elicitation that was not offered", lines: []string{requestLine(`"a"`, "elicitation/create", `{"sessionId":"s1","mode":"form","message":"Your password?","requestedSchema":{"type":"object","properties":{}}}`)}, gets: []string{`"id":"a","error":{`}},
		{name: "a method with an escape", lines: []string{`{"jsonrpc":"2.0","id":"a","method":"fs/write_text_file\u0000","params":{}}`}, gets: []string{unknownA}},
	}
}

// requests are hostile requests for files, terminals and permissions.
func requests() []agentShape {
	return []agentShape{
		{name: "a path with NUL", lines: []string{writeRequest(`"/w/a\u0000b"`)}, gets: []string{refusedA}},
		{name: "a path with ..", lines: []string{writeRequest(`"/w/../etc/passwd"`)}, gets: []string{refusedA}},
		{name: "a path with . and ..", lines: []string{readRequest(`"/w/./x/../../etc/passwd"`)}, gets: []string{refusedA}},
		{name: "a relative path", lines: []string{writeRequest(`"w/a"`)}, gets: []string{refusedA}},
		{name: "an empty path", lines: []string{readRequest(`""`)}, gets: []string{refusedA}},
		{name: "a path beyond the roots", lines: []string{readRequest(`"/etc/passwd"`)}, gets: []string{refusedA}},
		{name: "a path beside the root", lines: []string{readRequest(`"/work"`)}, gets: []string{refusedA}},
		{name: "a path of Windows", lines: []string{readRequest(`"C:\\Windows\\win.ini"`)}, gets: []string{refusedA}},
		{name: "a path with a backslash", lines: []string{readRequest(`"/w/..\\..\\etc"`)}, gets: []string{refusedA}},
		{name: "a URL", lines: []string{readRequest(`"file:///etc/passwd"`)}, gets: []string{refusedA}},
		{name: "a home folder", lines: []string{readRequest(`"~/x"`)}, gets: []string{refusedA}},
		{name: "a path that the policy denies", lines: []string{readRequest(`"/w/secret"`)}, gets: []string{refusedA}},
		{name: "a path that the policy denies, in another spelling", lines: []string{readRequest(`"/w//secret"`)}, gets: []string{refusedA}},
		{name: "a path that the policy denies, by way of .", lines: []string{readRequest(`"/w/./secret"`)}, gets: []string{refusedA}},
		{name: "a path that the policy denies, by way of ..", lines: []string{readRequest(`"/w/x/../secret"`)}, gets: []string{refusedA}},
		{name: "a file with a slash behind it", lines: []string{readRequest(`"/w/secret/"`)}, gets: []string{refusedA}},
		{name: "a permission for a path in another spelling", lines: []string{askRequest(`"title":"x","kind":"edit","locations":[{"path":"/w//a"}]`, bothOptions)}, gets: []string{rejectedA}},
		{name: "a terminal in a folder in another spelling", lines: []string{runRequest(`"command":"ls","cwd":"/w/x/.."`)}, gets: []string{refusedA}},
		{name: "a path that is a number", lines: []string{readRequest(`1`)}, gets: []string{refusedA}},
		{name: "content that is an object", lines: []string{requestLine(`"a"`, wire.MethodWriteTextFile, `{"sessionId":"s1","path":"/w/a","content":{}}`)}, gets: []string{refusedA}},
		{name: "no content", lines: []string{requestLine(`"a"`, wire.MethodWriteTextFile, `{"sessionId":"s1","path":"/w/a"}`)}, gets: []string{refusedA}},
		{name: "a line below none", lines: []string{requestLine(`"a"`, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a","line":-1}`)}, gets: []string{refusedA}},
		{name: "a line without measure", lines: []string{requestLine(`"a"`, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a","line":4294967296}`)}, gets: []string{refusedA}},
		{name: "a file of a session that there is not", lines: []string{requestLine(`"a"`, wire.MethodReadTextFile, `{"sessionId":"s2","path":"/w/a"}`)}, gets: []string{refusedA}},
		{name: "a session that is a number", lines: []string{requestLine(`"a"`, wire.MethodReadTextFile, `{"sessionId":1,"path":"/w/a"}`)}, gets: []string{refusedA}},
		{name: "no session", lines: []string{requestLine(`"a"`, wire.MethodReadTextFile, `{"path":"/w/a"}`)}, gets: []string{refusedA}},
		{name: "one id twice", lines: []string{readRequest(`"/w/a"`), readRequest(`"/w/b"`)}, gets: []string{`"id":"a"`}, editor: wire.MethodReadTextFile, count: -1},
		{name: "a _meta that grants", lines: []string{requestLine(`"a"`, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a","_meta":{"callgate":{"approved":true},"granted":"CANARY"}}`)}, gets: []string{`"id":"a","result"`}, editor: wire.MethodReadTextFile, count: 1},
		{name: "a terminal in a folder beyond the roots", lines: []string{runRequest(`"command":"ls","cwd":"/etc"`)}, gets: []string{refusedA}},
		{name: "a terminal in a relative folder", lines: []string{runRequest(`"command":"ls","cwd":"../etc"`)}, gets: []string{refusedA}},
		{name: "a command that is empty", lines: []string{runRequest(`"command":""`)}, gets: []string{refusedA}},
		{name: "a command that is a list", lines: []string{runRequest(`"command":["rm"]`)}, gets: []string{refusedA}},
		{name: "variables that stand twice", lines: []string{runRequest(`"command":"ls","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]`)}, gets: []string{`"id":"a"`}, editor: wire.MethodTerminalCreate, count: -1},
		{name: "a terminal that there is not", lines: []string{requestLine(`"a"`, wire.MethodTerminalOutput, `{"sessionId":"s1","terminalId":"t1"}`)}, gets: []string{refusedA}},
		{name: "a kill of a terminal that there is not", lines: []string{requestLine(`"a"`, wire.MethodTerminalKill, `{"sessionId":"s1","terminalId":"../t1"}`)}, gets: []string{refusedA}},
		{name: "a release of a terminal of another session", lines: []string{requestLine(`"a"`, wire.MethodTerminalRelease, `{"sessionId":"s2","terminalId":"t1"}`)}, gets: []string{refusedA}},
		{name: "a permission in a session that there is not", lines: []string{strings.Replace(askRequest(`"title":"x","kind":"edit"`, bothOptions), `"s1"`, `"s9"`, 1)}, gets: []string{refusedA}},
		{name: "a permission of a kind that nobody registered", lines: []string{askRequest(`"title":"x","kind":"delete"`, bothOptions)}, gets: []string{rejectedA}},
		{name: "a permission of a kind that there is not", lines: []string{askRequest(`"title":"x","kind":"bless"`, bothOptions)}, gets: []string{`"id":"a"`}},
		{name: "a permission that the policy denies", lines: []string{askRequest(`"title":"x","kind":"fetch"`, bothOptions)}, gets: []string{rejectedA}},
		{name: "a permission for a path beyond the roots", lines: []string{askRequest(`"title":"x","kind":"edit","locations":[{"path":"/etc/passwd"}]`, bothOptions)}, gets: []string{rejectedA}},
		{name: "a permission for a relative path", lines: []string{askRequest(`"title":"x","kind":"edit","locations":[{"path":"../x"}]`, bothOptions)}, gets: []string{`"id":"a"`}},
		{name: "a permission by the name of a tool of the gateway", lines: []string{askRequest(`"title":"x","kind":"fetch","name":"acp.fs.write","rawInput":{"path":"/w/a","content":"x"}`, bothOptions)}, gets: []string{rejectedA}},
		{name: "a permission without options", lines: []string{askRequest(`"title":"x","kind":"edit"`, `[]`)}, gets: []string{`"id":"a"`}},
		{name: "a permission that can only be granted for ever", lines: []string{askRequest(`"title":"x","kind":"edit"`, `[{"optionId":"all","name":"Always","kind":"allow_always"}]`)}, gets: []string{cancelled}},
		{name: "a denial that can only be a yes", lines: []string{askRequest(`"title":"x","kind":"fetch"`, `[{"optionId":"yes","name":"Yes","kind":"allow_once"}]`)}, gets: []string{cancelled}},
		{name: "an option of a kind that there is not", lines: []string{askRequest(`"title":"x","kind":"fetch"`, `[{"optionId":"no","name":"No","kind":"allow_forever"}]`)}, gets: []string{`"id":"a"`}},
		{name: "a permission whose input is huge", lines: []string{askRequest(`"title":"x","kind":"edit","rawInput":{"x":"`+strings.Repeat("x", 1<<20)+`"}`, bothOptions)}, gets: []string{rejectedA}},
		{name: "a permission with 10,000 paths", lines: []string{askRequest(`"title":"x","kind":"edit","locations":[`+strings.TrimSuffix(strings.Repeat(`{"path":"/w/a"},`, 10_000), ",")+`]`, bothOptions)}, gets: []string{`"id":"a"`}},
		{name: "a cancellation of what there is not", lines: []string{noticeLine(wire.MethodCancelRequest, `{"requestId":"nothing"}`), noticeLine(wire.MethodCancelRequest, `{"requestId":{"a":1}}`), noticeLine(wire.MethodCancelRequest, `{}`)}},
	}
}

// reports are updates by which an agent shows or hides its tool calls.
func reports() []agentShape {
	const unjudged = `"permission_denied"`
	call := func(members string) string {
		return updateLine(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"x",` + members + `}`)
	}
	later := func(members string) string {
		return updateLine(`{"sessionUpdate":"tool_call_update","toolCallId":"c",` + members + `}`)
	}
	allowed := askRequest(`"title":"x","kind":"edit","locations":[{"path":"/w/a"}]`, bothOptions)
	return []agentShape{
		{name: "a call that has ended, unasked", lines: []string{call(`"kind":"edit","status":"completed"`)}, unjudged: true, reported: unjudged},
		{name: "an update of a call that never began", lines: []string{later(`"kind":"execute","status":"completed"`)}, unjudged: true, reported: unjudged},
		{name: "a call that runs and is never heard of again", lines: []string{call(`"kind":"execute","status":"in_progress"`)}, unjudged: true, reported: unjudged},
		{name: "a call without a kind", lines: []string{call(`"status":"completed"`)}, unjudged: true, reported: unjudged},
		{name: "a call that says that it thinks", lines: []string{call(`"kind":"think","status":"completed"`)}, unjudged: true, reported: unjudged},
		{name: "a call that failed after it ran", lines: []string{call(`"kind":"execute","status":"in_progress"`), later(`"status":"failed","rawOutput":{"exit_code":1}`)}, unjudged: true, reported: unjudged},
		{name: "a call that changed its kind", lines: []string{call(`"kind":"read","status":"pending"`), askRequest(`"title":"x","kind":"read","locations":[{"path":"/w/a"}]`, bothOptions), later(`"kind":"execute","status":"completed"`)}, unjudged: true, reported: unjudged},
		{name: "a call that shows a file of another", lines: []string{call(`"kind":"edit","status":"completed","content":[{"type":"diff","path":"/etc/passwd","newText":"x"}]`)}, unjudged: true, reported: unjudged},
		{name: "a call that shows a terminal of nobody", lines: []string{call(`"kind":"execute","status":"completed","content":[{"type":"terminal","terminalId":"t7"}]`)}, unjudged: true, reported: unjudged},
		{name: "a call that cannot be read", lines: []string{call(`"kind":7,"status":"completed"`)}, unjudged: true, reported: unjudged},
		{name: "a call with a title that is an object", lines: []string{updateLine(`{"sessionUpdate":"tool_call","toolCallId":"c","title":{},"status":"completed"}`)}, unjudged: true, reported: unjudged},
		{name: "a call of another session", lines: []string{noticeLine(wire.MethodSessionUpdate, `{"sessionId":"s7","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"x","status":"completed"}}`)}},
		{name: "a mode that asks nobody", lines: []string{updateLine(`{"sessionUpdate":"current_mode_update","currentModeId":"bypassPermissions"}`)}, unjudged: true, reported: unjudged},
		{name: "a mode that was never offered", lines: []string{updateLine(`{"sessionUpdate":"current_mode_update","currentModeId":"other"}`)}, unjudged: true, reported: unjudged},
		{name: "an update of a kind that there is not", lines: []string{updateLine(`{"sessionUpdate":"tool_call_v9","toolCallId":"c","status":"completed"}`)}},
		{name: "an update without a kind", lines: []string{updateLine(`{}`), noticeLine(wire.MethodSessionUpdate, `{}`), noticeLine(wire.MethodSessionUpdate, `{"sessionId":"s1","update":[]}`)}},
		{name: "an update with a name twice", lines: []string{updateLine(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"x","status":"pending","status":"completed"}`)}, gets: nil},
		{name: "a call that was allowed once and ends twice", lines: []string{call(`"kind":"edit","status":"pending"`), allowed, later(`"status":"completed"`), call(`"kind":"edit","status":"completed"`)}, unjudged: true, reported: unjudged},
		{name: "an answer that is an error and a result", answer: `{"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn"},"error":{"code":1,"message":"x"}}`, reported: `"error"`},
		{name: "an answer of a list", answer: `{"jsonrpc":"2.0","id":$id,"result":[]}`, reported: `"error"`},
		{name: "an answer of null", answer: `{"jsonrpc":"2.0","id":$id,"result":null}`, reported: `"error"`},
		{name: "a stop reason that there is not", answer: `{"jsonrpc":"2.0","id":$id,"result":{"stopReason":"triumph"}}`, reported: `"error"`},
		{name: "an answer that is too long", answer: `{"jsonrpc":"2.0","id":$id,"result":{"x":"` + strings.Repeat("x", 9<<20) + `"}}`, reported: `"error"`},
		{name: "an error with secrets in its data", answer: `{"jsonrpc":"2.0","id":$id,"error":{"code":-32603,"message":"m","data":{"x":"CANARY"}}}`, reported: `"error"`},
		{name: "an error whose text is huge", answer: `{"jsonrpc":"2.0","id":$id,"error":{"code":-32603,"message":"` + strings.Repeat("m", 1<<20) + `"}}`, reported: `"error"`},
		{name: "answers to nothing", lines: []string{`{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","id":"turn","result":{"stopReason":"refusal"}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`}},
		{name: "an answer twice", answer: `{"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn"}}` + "\n" + `{"jsonrpc":"2.0","id":$id,"result":{"stopReason":"refusal"}}`, reported: `"end_turn"`},
	}
}

// TestHostileAgents: whatever an agent sends, the editor gets nothing that was not judged, the turn
// ends, and both sides do.
func TestHostileAgents(t *testing.T) {
	all := append(append(frames(), requests()...), reports()...)
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			x := openRig(t, nil)
			answer, reported := s.answer, s.reported
			if answer == "" {
				answer = `{"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn"}}`
			}
			if reported == "" {
				reported = `"stopReason":"end_turn"`
			}
			var gets [][]string
			if len(s.gets) > 0 {
				gets = [][]string{s.gets}
			}
			got := x.hostileTurn(s.lines, gets, answer)
			if !strings.Contains(got, reported) {
				t.Errorf("the editor was told %.300s, expected %s", got, reported)
			}
			x.end()
			if x.unjudged() != s.unjudged {
				t.Errorf("found unjudged: %t", x.unjudged())
			}
			answers := 0
			for _, line := range x.editor.got() {
				m, _ := jsonrpc.Read([]byte(line))
				switch {
				case strings.Contains(line, "CANARY"):
					t.Errorf("the editor got %.300s", line)
				case m.IsResponse() && m.ID == jsonrpc.StringID("turn"):
					answers++
				case m.IsRequest() && m.Method != s.editor:
					t.Errorf("the editor got %.300s", line)
				}
			}
			if n := x.count(x.editor, s.editor); answers != 1 || s.count >= 0 && s.editor != "" && n != s.count {
				t.Errorf("%d answers, %d requests", answers, n)
			}
			if len(got) > 64<<10 {
				t.Errorf("the editor got an answer of %d bytes", len(got))
			}
		})
	}
	if len(all) < 60 {
		t.Errorf("%d shapes", len(all))
	}
}

// TestHostileHandshakes: an agent of another version, or that says nothing that can be read, opens
// no session.
func TestHostileHandshakes(t *testing.T) {
	for _, says := range []string{
		`{"protocolVersion":2}`, `{"protocolVersion":0}`, `{"protocolVersion":65535}`, `{"protocolVersion":"1"}`, `{"protocolVersion":1.0}`, `{"protocolVersion":65536}`,
		`{"protocolVersion":-1}`, `{}`, `null`, `[]`, `"1"`, `{"protocolVersion":1,"agentCapabilities":[]}`, `{"protocolVersion":1,"authMethods":{}}`,
		`{"protocolVersion":1,"agentCapabilities":{"loadSession":"yes"}}`,
	} {
		x := openRig(t, nil)
		x.onAgent[wire.MethodInitialize] = always(says)
		x.editor.send(requestLine(`"init"`, wire.MethodInitialize, initialize))
		first := x.editor.await(`"id":"init"`)
		x.editor.send(requestLine(`"new"`, wire.MethodSessionNew, newSession))
		second := x.editor.await(`"id":"new"`)
		accepted := strings.Contains(first, `"result"`)
		if accepted != strings.Contains(second, `"result"`) || accepted && !strings.Contains(says, `"protocolVersion":1,`) {
			t.Errorf("%s: %s, %s", says, first, second)
		}
		x.end()
	}
}

// TestHostileSessions: an answer of an agent to session/new opens a session only if it can be one.
func TestHostileSessions(t *testing.T) {
	for says, opens := range map[string]bool{
		`{"sessionId":""}`: false, `{"sessionId":7}`: false, `{}`: false, `null`: false, `[]`: false,
		`{"sessionId":"` + strings.Repeat("s", 2<<20) + `"}`:                                                                        false,
		`{"sessionId":"s1","modes":{"currentModeId":"bypassPermissions","availableModes":[{"id":"bypassPermissions","name":"x"}]}}`: false,
		`{"sessionId":"s1","modes":{"currentModeId":"x","availableModes":7}}`:                                                       false,
		`{"sessionId":"s1"}`: true,
	} {
		x := openRig(t, nil)
		x.onAgent[wire.MethodSessionNew] = always(says)
		x.editor.send(requestLine(`"init"`, wire.MethodInitialize, initialize))
		x.editor.await(`"id":"init"`)
		x.editor.send(requestLine(`"new"`, wire.MethodSessionNew, newSession))
		if got := x.editor.await(`"id":"new"`); strings.Contains(got, `"result"`) != opens || len(got) > 64<<10 {
			t.Errorf("%.100s: %.300s", says, got)
		}
		// The same session is not opened twice.
		x.editor.send(requestLine(`"again"`, wire.MethodSessionNew, newSession))
		if got := x.editor.await(`"id":"again"`); strings.Contains(got, `"result"`) {
			t.Errorf("%.100s: %.300s", says, got)
		}
		x.end()
	}
}

// TestManyRequestsOfAnAgent: 10,000 requests that the editor never answers are bounded, and those
// beyond are refused at once.
func TestManyRequestsOfAnAgent(t *testing.T) {
	x := openRig(t, nil)
	x.onEditor[wire.MethodReadTextFile] = silent
	const many = 10_000
	lines := make([]string, many)
	for i := range lines {
		lines[i] = requestLine(fmt.Sprint(i), wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a"}`)
	}
	got := x.hostileTurn(lines, [][]string{{fmt.Sprintf(`"id":%d,"error":{"code":-32603`, many-1)}}, `{"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn"}}`)
	if !strings.Contains(got, "end_turn") {
		t.Error(got)
	}
	if n := x.count(x.editor, wire.MethodReadTextFile); n == 0 || n > 64 {
		t.Errorf("the editor got %d requests", n)
	}
	x.end()
}

// TestManyUpdates: 10,000 updates pass in their order, before the answer to the prompt.
func TestManyUpdates(t *testing.T) {
	x := openRig(t, nil)
	const many = 10_000
	lines := make([]string, many)
	for i := range lines {
		lines[i] = updateLine(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%05d"}}`, i))
	}
	x.hostileTurn(lines, nil, `{"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn"}}`)
	next, answered := 0, false
	for _, line := range x.editor.got() {
		switch {
		case strings.Contains(line, `"id":"turn"`):
			answered = true
		case strings.Contains(line, "agent_message_chunk"):
			if !strings.Contains(line, fmt.Sprintf(`"%05d"`, next)) || answered {
				t.Fatalf("update %d is %s", next, line)
			}
			next++
		}
	}
	if next != many {
		t.Errorf("%d updates", next)
	}
	x.end()
}

// TestAgentIgnoresCancel: an agent that continues after a tool call ran unjudged is ended, and the
// prompt is answered.
func TestAgentIgnoresCancel(t *testing.T) {
	for _, reaction := range []acp.Reaction{acp.Cancel, acp.Kill} {
		x := openRig(t, func(o *acp.ProxyOptions) { o.Unjudged, o.StopWithin = reaction, 1 })
		x.onAgent[wire.MethodSessionPrompt] = silent
		x.begin()
		x.editor.send(requestLine(`"turn"`, wire.MethodSessionPrompt, promptS1))
		x.agent.await(wire.MethodSessionPrompt)
		x.agent.send(updateLine(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"x","kind":"edit","status":"completed"}`))
		if got := x.editor.await(`"id":"turn"`); !strings.Contains(got, `"error"`) {
			t.Errorf("%s: %s", reaction, got)
		}
		<-x.ended
		if x.err == nil || !x.unjudged() {
			t.Errorf("%s: %v", reaction, x.err)
		}
		x.end()
	}
}

// TestAgentDies: an agent that leaves at any point of a turn fails the requests that wait for it.
func TestAgentDies(t *testing.T) {
	for name, last := range map[string]string{
		"at once": "", "in the middle of a line": `{"jsonrpc":"2.0","id":`, "within a request": readRequest(`"/w/a"`) + "\n",
	} {
		x := openRig(t, nil)
		x.onEditor[wire.MethodReadTextFile] = silent
		x.onAgent[wire.MethodSessionPrompt] = silent
		x.begin()
		x.editor.send(requestLine(`"turn"`, wire.MethodSessionPrompt, promptS1))
		x.agent.await(wire.MethodSessionPrompt)
		_, _ = x.agent.out.Write([]byte(last))
		x.agent.out.Close()
		if got := x.editor.await(`"id":"turn"`); !strings.Contains(got, `"error"`) {
			t.Errorf("%s: %s", name, got)
		}
		<-x.ended
		if x.err == nil {
			t.Errorf("%s: no error", name)
		}
		x.end()
	}
}
