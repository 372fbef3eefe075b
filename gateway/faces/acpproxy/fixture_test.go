package acpproxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/gateway/faces/acpproxy"
	"github.com/callgate/callgate/gateway/workers"
	"github.com/callgate/callgate/internal/acp/delegate"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

func TestMain(m *testing.M) { facetest.Main(m) }

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// files is a configuration in which the agent may do everything below /w, but read /w/secret.
// The user is asked before it runs rm.
func files() map[string]string {
	const paths = "{type: string, x-boundary: path}"
	tools := "tools:\n" +
		"  - {name: acp.fs.read, effect: read, input_schema: {type: object, required: [path], properties: {path: " + paths + ", line: {type: integer}, limit: {type: integer}}}, run: {type: demo}}\n" +
		"  - {name: acp.fs.write, effect: once, input_schema: {type: object, required: [path, content], properties: {path: " + paths + ", content: {type: string}}}, run: {type: demo}}\n" +
		"  - {name: acp.terminal.create, effect: once, input_schema: {type: object, required: [command], properties: {command: {type: string}, args: {type: array, items: {type: string}}, " +
		"env: {type: object, additionalProperties: {type: string}}, cwd: " + paths + ", outputByteLimit: {type: integer}}}, run: {type: demo}}\n" +
		"  - {name: deploy, effect: once, input_schema: {type: object, required: [to], properties: {to: {type: string, enum: [staging]}}}, run: {type: client}}\n"
	for _, kind := range []string{"read", "edit", "execute", "fetch"} {
		tools += "  - {name: acp.permission." + kind + ", effect: once, input_schema: {type: object, required: [title, paths], properties: {title: {type: string}, " +
			"paths: {type: array, items: " + paths + "}, input: {}}}, run: {type: client}}\n"
	}
	return map[string]string{
		"callgate.yaml":   "registry: {files: [tools.yaml]}\nworkspaces: workspaces.yaml\npolicy: policy.csv\napprovals: approvals.yaml\ndefaults: {agent: Analyst, workspace: acme, project: alpha}\n",
		"tools.yaml":      tools,
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [/w]}}}}\n",
		"approvals.yaml":  "rules: {mine: {by: caller, remember: {same: 1h}}}\nwait: 0s\n",
		"policy.csv": "p, Analyst, *, *, , allow\n" +
			"p, Analyst, *, acp.fs.read, \"args.path == '/w/secret'\", deny\n" +
			"p, Analyst, *, acp.permission.fetch, , deny\n" +
			"p, Analyst, *, acp.terminal.create, \"args.command == 'rm'\", ask:mine\n" +
			"p, Analyst, *, acp.permission.execute, \"args.title == 'rm'\", ask:mine\n",
	}
}

// plan is what a test chooses.
type plan struct {
	files   map[string]string
	options func(*acp.ProxyOptions)
	deps    func(*gateway.Config, *calls.Deps)
	engine  workers.Engine // nil: the client of the session runs the tools
	// editor and agent answer requests; nil answers as their defaults do.
	editor      map[string]answer
	agent       map[string]answer
	initialized string // the agent's answer; empty: agentInitialized
}

// answer answers a request: with a result, or an error.
type answer func(ctx context.Context, params json.RawMessage) (any, *jsonrpc.Error)

// says answers with a result.
func says(result string) answer {
	return func(context.Context, json.RawMessage) (any, *jsonrpc.Error) { return json.RawMessage(result), nil }
}

const (
	allCapabilities  = `{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"auth":{"terminal":true},"elicitation":{"form":{}},"_meta":{"terminal_output":true}}`
	agentInitialized = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true},"mcpCapabilities":{"http":true},` +
		`"sessionCapabilities":{"list":{},"close":{},"resume":{},"delete":{},"fork":{}}},"authMethods":[{"id":"key","name":"Key"},{"id":"t","name":"T","type":"terminal"}],"agentInfo":{"name":"scripted","version":"1"}}`
)

// proxied is a proxy between a scripted editor and a scripted agent.
type proxied struct {
	t             *testing.T
	h             *facetest.Fixture
	editor, agent *jsonrpc.Conn
	log           *lockedBuffer
	recorded      [2]*acptest.Recorder // of the editor's side, and of the agent's
	killed        chan struct{}
	ended         chan struct{}
	err           error // of Run, once ended

	mu        sync.Mutex
	toEditor  []string // notifications and requests that the editor got: method and params
	toAgent   []string
	closeEnds func()
	dieAgent  func()
	raw       io.Writer // the agent's output
	rawEditor io.Writer // the editor's output
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// clientEngine runs tools by the client of the session.
type clientEngine struct{}

func (clientEngine) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	client := delegate.ClientOf(ctx)
	if client == nil {
		return tool.Result{}, refusal.New(refusal.ToolUnavailable, "no client")
	}
	var err error
	switch c.Tool {
	case "acp.fs.read":
		var r wire.ReadTextFileRequest
		if err = json.Unmarshal(c.Arguments, &r); err == nil {
			var read wire.ReadTextFileResponse
			if read, err = client.ReadTextFile(ctx, r); err == nil {
				body, err := json.Marshal(map[string]string{"content": read.Content})
				return tool.Result{Body: body, JSON: true}, err
			}
		}
	case "acp.fs.write":
		var r wire.WriteTextFileRequest
		if err = json.Unmarshal(c.Arguments, &r); err == nil {
			err = client.WriteTextFile(ctx, r)
		}
	case "acp.terminal.create":
		var r struct {
			Command string
			Args    []string
			Env     map[string]string
			Cwd     string
		}
		if err = json.Unmarshal(c.Arguments, &r); err == nil {
			request := wire.CreateTerminalRequest{Command: r.Command, Args: r.Args, Cwd: r.Cwd}
			for name, value := range r.Env {
				request.Env = append(request.Env, wire.EnvVariable{Name: name, Value: value})
			}
			_, err = client.RunCommand(ctx, request)
		}
	}
	if err != nil {
		return tool.Result{}, refusal.New(refusal.ToolFailed, "The client failed.").WithCause(err)
	}
	return tool.Result{Body: []byte(`{}`), JSON: true}, nil
}

// open starts a proxy. Its editor has not sent anything.
func openProxy(t *testing.T, p plan) *proxied {
	t.Helper()
	f := files()
	maps.Copy(f, p.files)
	x := &proxied{t: t, log: &lockedBuffer{}, killed: make(chan struct{}), ended: make(chan struct{})}
	engine := p.engine
	if engine == nil {
		engine = clientEngine{}
	}
	x.h = facetest.New(t, facetest.Options{Config: facetest.Config(t, f), Engine: engine, Change: p.deps})
	editorOut, editorIn := pipes(t)
	agentOut, agentIn := pipes(t)
	o := acp.ProxyOptions{
		Executor: x.h.Executor, Log: slog.New(slog.NewTextHandler(x.log, nil)), ProxySettings: acp.ProxySettings{Unjudged: acp.Cancel},
		MCPServer: wire.MCPServer{Transport: wire.Stdio, Name: "callgate", Command: "/bin/callgate", Args: []string{"mcp"}},
	}
	if p.options != nil {
		p.options(&o)
	}
	x.recorded = [2]*acptest.Recorder{acptest.NewRecorder(t, acptest.Agent), acptest.NewRecorder(t, acptest.Client)}
	var kill sync.Once
	agent := acp.Agent{
		Out: x.recorded[1].Reader(acptest.Agent, agentOut.r), In: x.recorded[1].Writer(acptest.Client, agentIn.w),
		Kill: func() { kill.Do(func() { close(x.killed); agentOut.w.Close(); agentIn.r.Close() }) },
	}
	go func() {
		x.err = acpproxy.Run(t.Context(), o, agent, x.recorded[0].Reader(acptest.Client, editorIn.r), x.recorded[0].Writer(acptest.Agent, editorOut.w))
		close(x.ended)
		editorOut.w.Close()
	}()
	initialized := p.initialized
	if initialized == "" {
		initialized = agentInitialized
	}
	agentSays := map[string]answer{
		wire.MethodInitialize: says(initialized), wire.MethodSessionNew: says(`{"sessionId":"s1"}`), wire.MethodSessionPrompt: says(`{"stopReason":"end_turn"}`),
	}
	maps.Copy(agentSays, p.agent)
	editorSays := map[string]answer{
		wire.MethodReadTextFile: says(`{"content":"text"}`), wire.MethodWriteTextFile: says(`{}`), wire.MethodTerminalCreate: says(`{"terminalId":"t1"}`),
		wire.MethodTerminalOutput: says(`{"output":"o","truncated":false}`), wire.MethodTerminalWaitForExit: says(`{"exitCode":0}`),
		wire.MethodTerminalKill: says(`{}`), wire.MethodTerminalRelease: says(`{}`),
	}
	maps.Copy(editorSays, p.editor)
	x.raw, x.rawEditor = agentOut.w, editorIn.w
	x.editor = x.peer(editorOut.r, editorIn.w, editorSays, &x.toEditor)
	x.agent = x.peer(agentIn.r, agentOut.w, agentSays, &x.toAgent)
	x.closeEnds = func() { editorIn.w.Close() }
	x.dieAgent = func() { agentOut.w.Close(); agentIn.r.Close() }
	t.Cleanup(func() {
		x.leave()
		x.awaitEnd()
		agentOut.w.Close()
		agentIn.r.Close()
	})
	return x
}

// pipe is one direction.
type pipe struct {
	r *io.PipeReader
	w *io.PipeWriter
}

// pipes returns the two directions between the proxy and a peer: from the peer, or to it, as they
// are used.
func pipes(*testing.T) (a, b pipe) {
	a.r, a.w = io.Pipe()
	b.r, b.w = io.Pipe()
	return a, b
}

// peer is one side of a test, which answers requests and keeps what it gets.
func (x *proxied) peer(in io.Reader, out io.Writer, answers map[string]answer, got *[]string) *jsonrpc.Conn {
	keep := func(m *jsonrpc.Message) {
		x.mu.Lock()
		defer x.mu.Unlock()
		*got = append(*got, m.Method+" "+string(m.Params))
	}
	var c *jsonrpc.Conn
	c = jsonrpc.New(jsonrpc.Options{
		In: in, Out: out,
		Receive: func(_ context.Context, m *jsonrpc.Message) *jsonrpc.Error { keep(m); return nil },
		Handle: func(ctx context.Context, m *jsonrpc.Message) (any, *jsonrpc.Error) {
			if a := answers[m.Method]; a != nil {
				return a(ctx, m.Params)
			}
			return nil, jsonrpc.Errorf(jsonrpc.CodeMethod, "no such method")
		},
		Notify: func(_ context.Context, m *jsonrpc.Message) {
			keep(m)
			if m.Method == wire.MethodCancelRequest {
				if r, err := wire.Read[wire.CancelRequestNotification](m.Params); err == nil {
					if id, ok := jsonrpc.ParseID(r.RequestID); ok {
						c.Cancel(id)
					}
				}
			}
		},
	})
	go func() { _ = c.Run(context.WithoutCancel(x.t.Context())) }() // it ends with its pipe
	return c
}

// leave ends the editor's output.
func (x *proxied) leave() { x.closeEnds() }

// awaitEnd waits for the end of the proxy, and returns its error.
func (x *proxied) awaitEnd() error {
	x.t.Helper()
	select {
	case <-x.ended:
		return x.err
	case <-time.After(patience):
		x.t.Fatal("the proxy did not end")
		return nil
	}
}

// got are the methods and params that a side has got.
func (x *proxied) got(list *[]string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]string(nil), *list...)
}

// eventually waits until something holds.
func (x *proxied) eventually(what string, holds func() bool) {
	x.t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatalf("never: %s\neditor got %q\nagent got %q\nlog %s", what, x.got(&x.toEditor), x.got(&x.toAgent), x.log)
		}
	}
}

// ask sends a request, and returns its result, or the code and code of the gateway of its error.
func (x *proxied) ask(c *jsonrpc.Conn, method, params string) (result string, fault *jsonrpc.Error) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.t.Context()), patience)
	defer cancel()
	raw, err := c.Call(ctx, method, json.RawMessage(params))
	if err != nil && !errors.As(err, &fault) {
		x.t.Fatalf("%s: %v\nlog %s", method, err, x.log)
	}
	return string(raw), fault
}

// must is ask for a request that is not refused.
func (x *proxied) must(c *jsonrpc.Conn, method, params string) string {
	x.t.Helper()
	result, fault := x.ask(c, method, params)
	if fault != nil {
		x.t.Fatalf("%s: %d %s %v", method, fault.Code, fault.Message, fault.Data)
	}
	return result
}

// code is the code of the gateway in an error.
func code(fault *jsonrpc.Error) string {
	if fault == nil {
		return ""
	}
	var data struct{ Callgate struct{ Code string } }
	raw, _ := fault.Data.(json.RawMessage)
	_ = json.Unmarshal(raw, &data)
	return fmt.Sprintf("%d %s", fault.Code, data.Callgate.Code)
}

// begin initializes the connection and opens the session s1.
func (x *proxied) begin(capabilities ...string) {
	x.t.Helper()
	c := strings.Join(capabilities, "")
	if c == "" {
		c = allCapabilities
	}
	x.must(x.editor, wire.MethodInitialize, `{"protocolVersion":1,"clientCapabilities":`+c+`}`)
	x.must(x.editor, wire.MethodSessionNew, `{"cwd":"/w","mcpServers":[]}`)
}
