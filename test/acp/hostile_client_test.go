package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/testkit/acptest"
)

// front is a face with a hostile editor before it.
type front struct {
	editor *side
	end    func()
	// passed is how many requests behind a session/new have reached an agent.
	passed func() int
}

// fronts open both faces, or the reporter alone where the program was built without the proxy.
var fronts = func() map[string]func(t *testing.T) front {
	all := map[string]func(t *testing.T) front{"reporter": reporterFront}
	if app.Has(configs.ACPProxy) {
		all["proxy"] = proxyFront
	}
	return all
}()

func proxyFront(t *testing.T) front {
	x := openRig(t, nil)
	return front{editor: x.editor, end: x.end, passed: func() (n int) {
		for _, line := range x.agent.got() {
			if m, _ := jsonrpc.Read([]byte(line)); m.IsRequest() && m.Method != wire.MethodInitialize && m.Method != wire.MethodSessionNew {
				n++
			}
		}
		return n
	}}
}

func reporterFront(t *testing.T) front {
	r := openReporter(t, editorTools(t), nil)
	s, fromEditor, toEditor := newSide(t, "editor")
	done := make(chan error, 1)
	var listening sync.WaitGroup
	listening.Go(func() { s.listen(func(*jsonrpc.Message, string) string { return "" }) })
	go func() {
		done <- r.face.Serve(context.WithoutCancel(t.Context()), gateway.Request{Subject: subject}, fromEditor, toEditor)
		fromEditor.Close()
		toEditor.Close()
	}()
	var once sync.Once
	end := func() {
		once.Do(func() {
			s.out.Close()
			select {
			case <-done:
			case <-time.After(acptest.Patience):
				t.Error("the face does not end")
			}
			listening.Wait()
		})
	}
	t.Cleanup(end)
	return front{editor: s, end: end, passed: func() int { return 0 }}
}

// open initializes a connection, opens a session, and returns its id.
func (f front) open(t *testing.T) string {
	t.Helper()
	f.editor.send(requestLine(`"init"`, wire.MethodInitialize, initialize))
	f.editor.await(`"id":"init"`, `"result"`)
	f.editor.send(requestLine(`"new"`, wire.MethodSessionNew, newSession))
	var got struct{ Result struct{ SessionID string } }
	if err := json.Unmarshal([]byte(f.editor.await(`"id":"new"`, `"result"`)), &got); err != nil || got.Result.SessionID == "" {
		t.Fatalf("%v, %+v", err, got)
	}
	return got.Result.SessionID
}

// clientShape is a hostile line of a client, in an open session, $session, and a text in the line that it
// gets; without one it gets nothing.
type clientShape struct{ name, line, gets string }

func clientShapes() []clientShape {
	prompt := func(session, blocks string) string {
		return requestLine(`"x"`, wire.MethodSessionPrompt, `{"sessionId":`+session+`,"prompt":`+blocks+`}`)
	}
	const (
		refused = `"id":"x","error":{`
		unknown = `"id":"x","error":{"code":-32601`
	)
	session := func(members string) string { return requestLine(`"x"`, wire.MethodSessionNew, `{`+members+`}`) }
	shapes := []clientShape{
		{"no JSON", `{"jsonrpc":`, unparsed},
		{"no UTF-8", prompt("\"\xff\"", `[]`), unparsed},
		{"a name twice", prompt(`"$session","sessionId":"$session"`, `[]`), unparsed},
		{"a name twice, escaped", prompt(`"$session","s\u0065ssionId":"$session"`, `[]`), unparsed},
		{"a batch", `[` + prompt(`"$session"`, `[]`) + `]`, badID},
		{"a frame too long", prompt(`"$session"`, `[{"type":"text","text":"`+strings.Repeat("x", 17<<20)+`"}]`), refused},
		{"an id of null", strings.Replace(prompt(`"$session"`, `[]`), `"id":"x"`, `"id":null`, 1), badID},
		{"an id that is a fraction", strings.Replace(prompt(`"$session"`, `[]`), `"id":"x"`, `"id":0.5`, 1), badID},
		{"another version of JSON-RPC", strings.Replace(prompt(`"$session"`, `[]`), `"2.0"`, `"2.1"`, 1), refused},
		{"an unknown member", strings.Replace(prompt(`"$session"`, `[]`), `"id":"x"`, `"id":"x","auth":"y"`, 1), refused},
		{"params that are a list", requestLine(`"x"`, wire.MethodSessionPrompt, `[]`), refused},
		{"nested deeply", requestLine(`"x"`, wire.MethodSessionPrompt, strings.Repeat(`{"a":`, 9000)+`1`+strings.Repeat(`}`, 9000)), unparsed},
		{"initialize again", requestLine(`"x"`, wire.MethodInitialize, initialize), refused},
		{"a session that there is not", prompt(`"other"`, `[{"type":"text","text":"x"}]`), refused},
		{"a session that is a number", prompt(`7`, `[{"type":"text","text":"x"}]`), refused},
		{"a session that is a path", prompt(`"../../etc/passwd"`, `[{"type":"text","text":"x"}]`), refused},
		{"no prompt", requestLine(`"x"`, wire.MethodSessionPrompt, `{"sessionId":"$session"}`), refused},
		{"a prompt that is a text", prompt(`"$session"`, `"x"`), refused},
		{"a prompt of a type that there is not", prompt(`"$session"`, `[{"type":"telepathy"}]`), refused},
		{"a sound that nobody offered to take", prompt(`"$session"`, `[{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]`), refused},
		{"a relative folder", session(`"cwd":"w","mcpServers":[]`), refused},
		{"a folder with NUL", session(`"cwd":"/w\u0000","mcpServers":[]`), refused},
		{"a folder that is a list", session(`"cwd":["/w"],"mcpServers":[]`), refused},
		{"servers that are an object", session(`"cwd":"/w","mcpServers":{}`), refused},
		{"a server of a transport that there is not", session(`"cwd":"/w","mcpServers":[{"type":"carrier-pigeon","name":"x","url":"http://x"}]`), refused},
		{"a mode that asks nobody", requestLine(`"x"`, wire.MethodSessionSetMode, `{"sessionId":"$session","modeId":"bypassPermissions"}`), refused},
		{"a mode that there is not", requestLine(`"x"`, wire.MethodSessionSetMode, `{"sessionId":"$session","modeId":"other"}`), refused},
		{"an option that there is not", requestLine(`"x"`, wire.MethodSessionSetConfigOption, `{"sessionId":"$session","configId":"x","value":"yolo"}`), refused},
		{"a way to log in that there is not", requestLine(`"x"`, wire.MethodAuthenticate, `{"methodId":"other"}`), refused},
		{"an end of what is not open", requestLine(`"x"`, wire.MethodSessionClose, `{"sessionId":"other"}`), refused},
		{"an answer to nothing", `{"jsonrpc":"2.0","id":77,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, ""},
		{"an error without an id", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, ""},
		{"an answer that is a request, too", `{"jsonrpc":"2.0","id":"x","method":"session/new","params":{},"result":{}}`, ""},
		{"a cancellation of what there is not", noticeLine(wire.MethodSessionCancel, `{"sessionId":"other"}`), ""},
		{"a cancellation of no session", noticeLine(wire.MethodSessionCancel, `{}`), ""},
		{"a cancellation of no request", noticeLine(wire.MethodCancelRequest, `{"requestId":["x"]}`), ""},
		{"a prompt as a notification", noticeLine(wire.MethodSessionPrompt, promptS1), ""},
		{"an update of a client", noticeLine(wire.MethodSessionUpdate, `{"sessionId":"$session","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"x","status":"completed"}}`), ""},
	}
	for _, method := range []string{
		"_callgate/approve", "mcp/message", "mcp/connect", "session/fork", "session/set_model", "nes/start", "document/didOpen", "providers/list", "session/steer",
		wire.MethodReadTextFile, wire.MethodTerminalCreate, wire.MethodRequestPermission, "elicitation/create", "Session/new", "session/new ", "",
	} {
		gets := unknown
		if method == "" {
			gets = refused
		}
		shapes = append(shapes, clientShape{"the method " + method, requestLine(`"x"`, method, `{"sessionId":"$session"}`), gets})
	}
	return shapes
}

// TestHostileClients: whatever a client sends in an open session, it is told so, the agent gets none of
// it, and the connection continues, until the client leaves.
func TestHostileClients(t *testing.T) {
	shapes := clientShapes()
	for name, open := range fronts {
		f := open(t)
		session := f.open(t)
		for i, s := range shapes {
			// Each shape has an id of its own.
			own := func(text string) string {
				return strings.ReplaceAll(strings.ReplaceAll(text, `"x"`, fmt.Sprintf(`"x%d"`, i)), "$session", session)
			}
			before := len(f.editor.got())
			f.editor.send(own(s.line))
			alive := fmt.Sprintf(`"alive%d"`, i)
			f.editor.send(requestLine(alive, "_alive", `{}`))
			f.editor.await(`"id":` + alive)
			if s.gets == "" {
				if n := len(f.editor.got()) - before; n != 1 {
					t.Errorf("%s, %s: %d answers", name, s.name, n-1)
				}
				continue
			}
			if gets := own(s.gets); strings.Contains(gets, `"id":null`) {
				if !strings.Contains(strings.Join(f.editor.got()[before:], "\n"), gets) {
					t.Errorf("%s, %s: %.300q", name, s.name, f.editor.got()[before:])
				}
			} else if f.editor.await(gets) == "" {
				t.Errorf("%s, %s: %.300q", name, s.name, f.editor.got()[before:])
			}
		}
		if n := f.passed(); n != 0 {
			t.Errorf("%s: %d requests have passed", name, n)
		}
		f.end()
	}
	if len(shapes) < 50 {
		t.Errorf("%d shapes", len(shapes))
	}
}

// TestClientsBeforeInitialize: no other request is answered before initialize.
func TestClientsBeforeInitialize(t *testing.T) {
	for name, open := range fronts {
		f := open(t)
		for i, line := range []string{
			requestLine(`"%d"`, wire.MethodSessionNew, newSession), requestLine(`"%d"`, wire.MethodSessionPrompt, promptS1), requestLine(`"%d"`, wire.MethodSessionList, `{}`),
			requestLine(`"%d"`, wire.MethodSessionLoad, `{"sessionId":"s1","cwd":"/w","mcpServers":[]}`), requestLine(`"%d"`, wire.MethodAuthenticate, `{"methodId":"x"}`),
		} {
			f.editor.send(fmt.Sprintf(line, i))
			if got := f.editor.await(fmt.Sprintf(`"id":"%d"`, i)); !strings.Contains(got, `"error":{"code":-32600`) {
				t.Errorf("%s, %s: %s", name, line, got)
			}
		}
		if n := f.passed(); n != 0 {
			t.Errorf("%s: %d requests have passed", name, n)
		}
		f.open(t)
		f.end()
	}
}

// TestHostileVersions: the version is ours whatever number the client says, and nothing else than a
// number is one.
func TestHostileVersions(t *testing.T) {
	for says, valid := range map[string]bool{
		`1`: true, `0`: true, `2`: true, `65535`: true, `"1"`: false, `1.5`: false, `-1`: false, `65536`: false, `null`: false, `[1]`: false, `true`: false, `1e1`: false,
	} {
		for name, open := range fronts {
			f := open(t)
			f.editor.send(requestLine(`"init"`, wire.MethodInitialize, `{"protocolVersion":`+says+`}`))
			if got := f.editor.await(`"id":"init"`); strings.Contains(got, `"protocolVersion":1`) != valid || !valid && !strings.Contains(got, `"code":-32602`) {
				t.Errorf("%s, %s: %s", name, says, got)
			}
			f.end()
		}
	}
}

// TestManySessions: 10,000 sessions are bounded, and each request is answered.
func TestManySessions(t *testing.T) {
	const many = 10_000
	for name, open := range fronts {
		f := open(t)
		f.open(t)
		for i := range many {
			f.editor.send(requestLine(fmt.Sprint(i), wire.MethodSessionNew, newSession))
		}
		opened, refused := 0, 0
		for end := time.Now().Add(acptest.Patience); opened+refused < many; time.Sleep(10 * time.Millisecond) {
			opened, refused = -1, 0 // one was opened before
			for _, line := range f.editor.got() {
				switch {
				case strings.Contains(line, `"sessionId":`):
					opened++
				case strings.Contains(line, `"error":`):
					refused++
				}
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %d opened, %d refused", name, opened, refused)
			}
		}
		if opened == 0 || refused == 0 {
			t.Errorf("%s: %d opened, %d refused", name, opened, refused)
		}
		f.end()
	}
}

// TestManyPrompts: of 10,000 prompts in one session one runs, and the client leaves in the middle of it.
func TestManyPrompts(t *testing.T) {
	x := openRig(t, nil)
	x.onAgent[wire.MethodSessionPrompt] = silent
	x.begin()
	const many = 10_000
	for i := range many {
		x.editor.send(requestLine(fmt.Sprint(i), wire.MethodSessionPrompt, promptS1))
	}
	x.editor.await(fmt.Sprintf(`"id":%d,"error":{"code":-32600`, many-1))
	if n := x.count(x.agent, wire.MethodSessionPrompt); n != 1 {
		t.Errorf("the agent got %d prompts", n)
	}
	x.end()
}

// TestEditorsMeta: neither servers nor a _meta of the editor reach the agent.
func TestEditorsMeta(t *testing.T) {
	x := openRig(t, nil)
	const meta = `,"_meta":{"claudeCode":{"options":{"permissionMode":"bypassPermissions","CANARY":true}}}`
	x.editor.send(requestLine(`"init"`, wire.MethodInitialize, strings.TrimSuffix(initialize, "}")+meta+"}"))
	x.editor.await(`"id":"init"`, `"result"`)
	x.editor.send(requestLine(`"new"`, wire.MethodSessionNew, `{"cwd":"/w","mcpServers":[{"name":"CANARY","command":"/bin/CANARY","args":[],"env":[]}]`+meta+`}`))
	x.editor.await(`"id":"new"`, `"result"`)
	x.editor.send(requestLine(`"turn"`, wire.MethodSessionPrompt, strings.TrimSuffix(promptS1, "}")+meta+"}"))
	x.editor.await(`"id":"turn"`, `"result"`)
	x.editor.send(requestLine(`"load"`, wire.MethodSessionLoad, `{"sessionId":"s7","cwd":"/w","mcpServers":[{"type":"http","name":"CANARY","url":"http://CANARY","headers":[]}]`+meta+`}`))
	x.editor.await(`"id":"load"`, `"result"`)
	for _, line := range x.agent.got() {
		if strings.Contains(line, "CANARY") || strings.Contains(line, "bypass") {
			t.Errorf("the agent got %s", line)
		}
		if strings.Contains(line, `"session/new"`) && !strings.Contains(line, `"mcpServers":[]`) { // it may use no tool over MCP
			t.Errorf("the agent got %s", line)
		}
	}
	x.end()
}

// TestHostileAnswers: an answer of an editor to a question or a request counts only if it is one of
// the protocol.
func TestHostileAnswers(t *testing.T) {
	const read, run = wire.MethodReadTextFile, `"command":"ls"`
	ask := runRequest(`"command":"rm"`) // the user is asked before
	for _, c := range []struct {
		method, says string
		line         string
		gets         string // by the agent
	}{
		{read, `{"content":7}`, readRequest(`"/w/a"`), refusedA},
		{read, `{}`, readRequest(`"/w/a"`), refusedA},
		{read, `null`, readRequest(`"/w/a"`), refusedA},
		{read, `["text"]`, readRequest(`"/w/a"`), refusedA},
		{read, `{"content":"` + strings.Repeat("x", 9<<20) + `"}`, readRequest(`"/w/a"`), refusedA},
		{wire.MethodWriteTextFile, `7`, writeRequest(`"/w/a"`), refusedA},
		{wire.MethodTerminalCreate, `{}`, runRequest(run), refusedA},
		{wire.MethodTerminalCreate, `{"terminalId":""}`, runRequest(run), refusedA},
		{wire.MethodTerminalCreate, `{"terminalId":7}`, runRequest(run), refusedA},
		{wire.MethodTerminalCreate, `{"terminalId":"` + strings.Repeat("t", 1<<20) + `"}`, runRequest(run), refusedA},
		{wire.MethodRequestPermission, `null`, ask, refusedA},
		{wire.MethodRequestPermission, `{}`, ask, refusedA},
		{wire.MethodRequestPermission, `[]`, ask, refusedA},
		{wire.MethodRequestPermission, `true`, ask, refusedA},
		{wire.MethodRequestPermission, `{"outcome":null}`, ask, refusedA},
		{wire.MethodRequestPermission, `{"outcome":"selected"}`, ask, refusedA},
		{wire.MethodRequestPermission, `{"outcome":{"outcome":"cancelled"}}`, ask, refusedA},
		{wire.MethodRequestPermission, `{"outcome":{"outcome":"approved"}}`, ask, refusedA},
		{wire.MethodRequestPermission, `{"outcome":{"outcome":"selected"}}`, ask, refusedA},
		{wire.MethodRequestPermission, `{"outcome":{"outcome":"selected","optionId":null}}`, ask, refusedA},
		{wire.MethodRequestPermission, `{"outcome":{"outcome":"selected","optionId":""}}`, ask, refusedA},
		{wire.MethodRequestPermission, `{"outcome":{"outcome":"selected","optionId":7}}`, ask, refusedA},
		{wire.MethodRequestPermission, `{"outcome":{"outcome":"selected","optionId":"nothing that was offered"}}`, ask, refusedA},
		{wire.MethodRequestPermission, `{"outcome":{"outcome":"selected","optionId":"ALLOW_ONCE"}}`, ask, refusedA},
		{wire.MethodRequestPermission, `{"outcome":{"outcome":"selected","optionId":"` + strings.Repeat("o", 1<<20) + `"}}`, ask, refusedA},
		{wire.MethodRequestPermission, `{"outcome":{"outcome":"selected","optionId":"$REJECT"}}`, ask, refusedA},
		{wire.MethodRequestPermission, `{"outcome":{"outcome":"selected","optionId":"$ALLOW"}}`, ask, `"id":"a","result"`},
	} {
		x := openRig(t, nil)
		x.onEditor[c.method] = func(m *jsonrpc.Message) string {
			var p struct{ Options []acptest.Option }
			_ = json.Unmarshal(m.Params, &p)
			says := strings.ReplaceAll(c.says, "$ALLOW", acptest.OfKind("allow_once")(p.Options))
			return result(m, strings.ReplaceAll(says, "$REJECT", acptest.OfKind("reject_once")(p.Options)))
		}
		x.hostileTurn([]string{c.line}, [][]string{{c.gets}}, `{"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn"}}`)
		asked, ran := x.count(x.editor, wire.MethodRequestPermission), x.count(x.editor, wire.MethodTerminalCreate)
		if c.line == ask && (asked != 1 || ran == 1 != strings.Contains(c.gets, "result")) {
			t.Errorf("%.80s: asked %d times, and ran %d times", c.says, asked, ran)
		}
		x.end()
	}
}

// TestClientsThatStopReading: a client that sends and does not read ends the connection in time.
func TestClientsThatStopReading(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the time that a client has to read a line")
	}
	x := openRig(t, func(o *acp.ProxyOptions) { o.Unjudged = acp.Note })
	x.begin()
	x.editor.mu.Lock() // its reader waits for ever from now on
	go func() {
		for {
			if _, err := x.editor.out.Write([]byte("{\n")); err != nil {
				return
			}
		}
	}()
	select {
	case <-x.ended:
	case <-time.After(2 * acptest.Patience):
		t.Error("the proxy does not end")
	}
	x.editor.mu.Unlock()
	x.end()
}
