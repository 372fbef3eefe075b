package acp_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/facetest"
)

// hostileFiles is a configuration in which an agent may do everything below /w, but read
// /w/secret, fetch, and run rm unasked.
func hostileFiles() map[string]string {
	const path = "{type: string, x-boundary: path}"
	tools := "tools:\n" +
		"  - {name: acp.fs.read, effect: read, input_schema: {type: object, required: [path], properties: {path: " + path + ", line: {type: integer}, limit: {type: integer}}}, run: {type: acp, tool: fs/read_text_file}}\n" +
		"  - {name: acp.fs.write, effect: once, input_schema: {type: object, required: [path, content], properties: {path: " + path + ", content: {type: string}}}, run: {type: acp, tool: fs/write_text_file}}\n" +
		"  - {name: acp.terminal.create, effect: once, input_schema: {type: object, required: [command], properties: {command: {type: string, minLength: 1}, args: {type: array, items: {type: string}}, " +
		"env: {type: object, additionalProperties: {type: string}}, cwd: " + path + ", outputByteLimit: {type: integer}}}, run: {type: acp, tool: terminal/create}}\n"
	for _, kind := range []string{"read", "edit", "execute", "fetch"} {
		tools += "  - {name: acp.permission." + kind + ", effect: once, input_schema: {type: object, required: [title, paths], properties: {title: {type: string}, " +
			"paths: {type: array, items: " + path + "}, input: {}}}, run: {type: client}}\n"
	}
	return map[string]string{
		"callgate.yaml":   "registry: {files: [tools.yaml]}\nworkspaces: workspaces.yaml\npolicy: policy.csv\napprovals: approvals.yaml\ndefaults: {agent: Analyst, workspace: acme, project: alpha}\n",
		"tools.yaml":      tools,
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [/w]}}}}\n",
		"approvals.yaml":  "rules: {mine: {by: caller, remember: {same: 1h}}}\nwait: 0s\n",
		"policy.csv": "p, Analyst, *, *, , allow\n" +
			"p, Analyst, *, acp.fs.read, \"args.path == '/w/secret'\", deny\n" +
			"p, Analyst, *, acp.permission.fetch, , deny\n" +
			"p, Analyst, *, acp.terminal.create, \"args.command == 'rm'\", ask:mine\n",
	}
}

// side is one end of a proxy, which writes whatever it is told to.
type side struct {
	t    *testing.T
	name string
	out  *io.PipeWriter // to the proxy
	in   *io.PipeReader // from it

	mu    sync.Mutex
	came  *sync.Cond
	lines []string
	over  bool
}

func newSide(t *testing.T, name string) (s *side, fromSide *io.PipeReader, toSide *io.PipeWriter) {
	s = &side{t: t, name: name}
	s.came = sync.NewCond(&s.mu)
	fromSide, s.out = io.Pipe()
	s.in, toSide = io.Pipe()
	return s, fromSide, toSide
}

// listen reads the lines of the proxy, and answers each request by a function; an answer of "" is none.
func (s *side) listen(answer func(m *jsonrpc.Message, line string) string) {
	lines := jsonrpc.NewLines(s.in, 64<<20)
	for {
		line, err := lines.Next()
		s.mu.Lock()
		if err != nil {
			s.over = true
			s.came.Broadcast()
			s.mu.Unlock()
			return
		}
		s.lines = append(s.lines, string(line))
		s.came.Broadcast()
		s.mu.Unlock()
		m, fault := jsonrpc.Read(line)
		if fault != nil && !strings.HasPrefix(string(line), `{"jsonrpc":"2.0","id":null,"error":{`) {
			s.t.Errorf("the %s got what is no message: %.300q: %s", s.name, line, fault.Message)
			continue
		}
		if reply := answer(m, string(line)); reply != "" {
			go s.send(reply) // or two sides that write to each other would wait for ever
		}
	}
}

// send writes lines; that nobody reads them any more is no fault.
func (s *side) send(lines ...string) {
	for _, line := range lines {
		_, _ = io.WriteString(s.out, line+"\n")
	}
}

// got are the lines so far.
func (s *side) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

// await waits for a line that holds each of some texts, and returns it.
func (s *side) await(texts ...string) string {
	s.t.Helper()
	late := time.AfterFunc(acptest.Patience, s.came.Broadcast)
	defer late.Stop()
	end := time.Now().Add(acptest.Patience)
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for _, line := range s.lines {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
				return line
			}
		}
		if s.over || !time.Now().Before(end) {
			s.t.Errorf("the %s never got %q", s.name, texts)
			return ""
		}
		s.came.Wait()
	}
}

// rig is a proxy between an editor and an agent that are both scripted by their lines.
type rig struct {
	t             *testing.T
	f             *facetest.Fixture
	editor, agent *side
	err           error         // of the proxy, once it has ended
	ended         chan struct{} // closed then
	mu            sync.Mutex
	onEditor      map[string]func(m *jsonrpc.Message) string // answers to the proxy, by method
	onAgent       map[string]func(m *jsonrpc.Message) string
	terminals     int
	killed        bool
}

// result is an answer to a request.
func result(m *jsonrpc.Message, value string) string {
	return `{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":` + value + `}`
}

// always answers with a result.
func always(value string) func(*jsonrpc.Message) string {
	return func(m *jsonrpc.Message) string { return result(m, value) }
}

// silent does not answer.
func silent(*jsonrpc.Message) string { return "" }

// openRig starts a proxy; nobody has sent anything.
func openRig(t *testing.T, change func(*acp.ProxyOptions)) *rig {
	t.Helper()
	needsProxy(t)
	x := &rig{t: t, ended: make(chan struct{})}
	x.f = facetest.New(t, facetest.Options{Config: facetest.Config(t, hostileFiles()), Engine: engine.New(engine.Options{})})
	var fromEditor, fromAgent *io.PipeReader
	var toEditor, toAgent *io.PipeWriter
	x.editor, fromEditor, toEditor = newSide(t, "editor")
	x.agent, fromAgent, toAgent = newSide(t, "agent")
	x.onEditor = map[string]func(*jsonrpc.Message) string{
		wire.MethodReadTextFile: always(`{"content":"text"}`), wire.MethodWriteTextFile: always(`{}`),
		wire.MethodTerminalCreate: func(m *jsonrpc.Message) string {
			x.terminals++
			return result(m, fmt.Sprintf(`{"terminalId":"t%d"}`, x.terminals))
		},
		wire.MethodTerminalOutput: always(`{"output":"o","truncated":false}`), wire.MethodTerminalWaitForExit: always(`{"exitCode":0}`),
		wire.MethodTerminalKill: always(`{}`), wire.MethodTerminalRelease: always(`{}`),
	}
	sessions := 0
	x.onAgent = map[string]func(*jsonrpc.Message) string{
		wire.MethodInitialize: always(`{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"close":{},"list":{}}}}`),
		wire.MethodSessionNew: func(m *jsonrpc.Message) string {
			sessions++
			return result(m, fmt.Sprintf(`{"sessionId":"s%d","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"bypassPermissions","name":"Fast"}]}}`, sessions))
		},
		wire.MethodSessionPrompt: always(`{"stopReason":"end_turn"}`), wire.MethodSessionClose: always(`{}`), wire.MethodSessionLoad: always(`{}`), wire.MethodSessionSetMode: always(`{}`),
	}
	o := acp.ProxyOptions{
		Executor: x.f.Executor, Log: slog.New(slog.DiscardHandler), ProxySettings: acp.ProxySettings{Unjudged: acp.Cancel},
		MCPServer: wire.MCPServer{Transport: wire.Stdio, Name: "callgate", Command: "/bin/callgate", Args: []string{"mcp"}},
	}
	if change != nil {
		change(&o)
	}
	var kill sync.Once
	var listening sync.WaitGroup
	listening.Go(func() { x.editor.listen(x.answers(x.onEditor)) })
	listening.Go(func() { x.agent.listen(x.answers(x.onAgent)) })
	dead := func() { fromAgent.Close(); toAgent.Close() }
	go func() {
		x.err = app.RelayACP(t.Context(), o, acp.Agent{Out: fromAgent, In: toAgent, Kill: func() {
			kill.Do(dead)
			x.mu.Lock()
			x.killed = true
			x.mu.Unlock()
		}}, fromEditor, toEditor)
		fromEditor.Close()
		toEditor.Close()
		close(x.ended)
	}()
	t.Cleanup(func() {
		x.end()
		listening.Wait()
	})
	return x
}

// answers answers requests by their methods; a method without an answer gets an error.
func (x *rig) answers(by map[string]func(*jsonrpc.Message) string) func(*jsonrpc.Message, string) string {
	return func(m *jsonrpc.Message, _ string) string {
		if !m.IsRequest() {
			return ""
		}
		x.mu.Lock()
		answer := by[m.Method]
		x.mu.Unlock()
		if answer != nil {
			return answer(m)
		}
		return `{"jsonrpc":"2.0","id":` + m.ID.String() + `,"error":{"code":-32601,"message":"no such method"}}`
	}
}

// end has the editor leave, and waits for the end of the proxy, which has ended the agent then. It
// checks that nothing has passed unjudged.
func (x *rig) end() {
	x.t.Helper()
	x.editor.out.Close()
	select {
	case <-x.ended:
	case <-time.After(acptest.Patience):
		x.t.Fatal("the proxy does not end")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.killed {
		x.t.Error("the agent was not ended")
	}
	x.checkJudged()
}

// judgedBy names the tool by which a request to the editor must have been judged.
var judgedBy = map[string]string{wire.MethodReadTextFile: "acp.fs.read", wire.MethodWriteTextFile: "acp.fs.write", wire.MethodTerminalCreate: "acp.terminal.create"}

// checkJudged compares the requests to the editor with the audit log: each request has the decision that
// allowed it.
func (x *rig) checkJudged() {
	x.t.Helper()
	allowed := map[string]int{}
	for _, r := range x.f.Journal.Records() {
		if r.Event == audit.Decision && r.Verdict == audit.ToolCall {
			allowed[r.Tool]++
		}
	}
	for _, line := range x.editor.got() {
		m, _ := jsonrpc.Read([]byte(line))
		if name := judgedBy[m.Method]; name != "" {
			if allowed[name]--; allowed[name] < 0 {
				x.t.Errorf("the editor got %s, which nobody has allowed", line)
			}
		}
	}
}

// unjudged reports whether the audit log has a tool call that ran unjudged.
func (x *rig) unjudged() bool {
	return slices.ContainsFunc(x.f.Journal.Records(), func(r audit.Record) bool { return r.Tool == acp.UnjudgedTool && r.Verdict == audit.Refused })
}

// requestLine is a line with a request.
func requestLine(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":` + quoted(method) + `,"params":` + params + `}`
}

// noticeLine is a line with a notification.
func noticeLine(method, params string) string {
	return `{"jsonrpc":"2.0","method":` + quoted(method) + `,"params":` + params + `}`
}

// updateLine is a line with an update of the session s1.
func updateLine(u string) string {
	return noticeLine(wire.MethodSessionUpdate, `{"sessionId":"s1","update":`+u+`}`)
}

const (
	initialize = `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}}`
	newSession = `{"cwd":"/w","mcpServers":[]}`
	promptS1   = `{"sessionId":"s1","prompt":[{"type":"text","text":"go"}]}`
)

// begin opens the connection and a session.
func (x *rig) begin() {
	x.t.Helper()
	x.editor.send(requestLine(`"init"`, wire.MethodInitialize, initialize))
	x.editor.await(`"id":"init"`, `"result"`)
	x.editor.send(requestLine(`"new"`, wire.MethodSessionNew, newSession))
	x.editor.await(`"id":"new"`, `"result"`)
}

// hostileTurn opens a session, whose agent sends lines in a prompt, waits for its answer to
// each, and answers the prompt by a result. It returns the answer that the editor gets.
func (x *rig) hostileTurn(lines []string, gets [][]string, answer string) string {
	x.t.Helper()
	x.begin()
	id := make(chan string, 1)
	x.mu.Lock()
	x.onAgent[wire.MethodSessionPrompt] = func(m *jsonrpc.Message) string { id <- m.ID.String(); return "" }
	x.mu.Unlock()
	x.editor.send(requestLine(`"turn"`, wire.MethodSessionPrompt, promptS1))
	prompt := <-id
	x.agent.send(lines...)
	for _, texts := range gets {
		x.agent.await(texts...)
	}
	// The lines before have been read once this is answered.
	x.agent.send(requestLine(`"sync"`, "_sync", `{}`))
	x.agent.await(`"id":"sync"`)
	x.agent.send(strings.ReplaceAll(answer, "$id", prompt))
	return x.editor.await(`"id":"turn"`)
}

// count is how many of the editor's lines are of a method.
func (x *rig) count(s *side, method string) (n int) {
	for _, line := range s.got() {
		if bytes.Contains([]byte(line), []byte(`"method":`+quoted(method))) {
			n++
		}
	}
	return n
}
