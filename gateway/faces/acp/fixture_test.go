package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolimport"
	engineacp "github.com/callgate/callgate/engine/acp"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/gateway/faces/chat"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

func TestMain(m *testing.M) { facetest.Main(m) }

// says answers a request for a stream with a text.
func says(text string) http.HandlerFunc {
	return streams(fmt.Sprintf(`{"choices":[{"index":0,"delta":{"role":"assistant","content":%s}}]}`, quote(text)), "stop")
}

// asks answers with calls, and a text before them if it is not empty. A call is NAME and its arguments.
func asks(text string, names ...string) http.HandlerFunc {
	var all []string
	for i := 0; i < len(names); i += 2 {
		all = append(all, fmt.Sprintf(`{"index":%d,"id":"call_%d_%s","type":"function","function":{"name":%s,"arguments":%s}}`, i/2, i/2, strings.ReplaceAll(names[i], "_", ""), quote(names[i]), quote(names[i+1])))
	}
	delta := ""
	if text != "" {
		delta = `"content":` + quote(text) + `,`
	}
	return streams(fmt.Sprintf(`{"choices":[{"index":0,"delta":{"role":"assistant",%s"tool_calls":[%s]}}]}`, delta, strings.Join(all, ",")), "tool_calls")
}

func streams(chunk, finish string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		const head = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m",`
		_, _ = fmt.Fprintf(w, "data: %s%s\n\ndata: %s%s\n\ndata: [DONE]\n\n", head, chunk[1:], head, fmt.Sprintf(`"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, finish))
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// project is a configuration whose agent may use every tool below /w: those of ACP, deploy, and pay,
// of which the card is secret. Its user is asked before it runs rm, and before it pays; approvers
// before it deploys. It may not read /w/secret.
func project(t *testing.T, wait string) *configs.Config {
	t.Helper()
	return facetest.Config(t, map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml, acp.yaml]}\nworkspaces: workspaces.yaml\npolicy: policy.csv\napprovals: approvals.yaml\n" +
			"defaults: {agent: Analyst, workspace: acme, project: alpha}\n",
		"acp.yaml": strings.TrimSuffix(string(toolimport.ACP()), "# end\n"),
		"tools.yaml": "tools:\n" +
			"  - {name: deploy, effect: once, input_schema: {type: object, required: [to], properties: {to: {type: string}}}, run: {type: demo}}\n" +
			"  - {name: pay, effect: once, input_schema: {type: object, required: [card], properties: {card: {type: string, x-secret: true}, to: {type: string}}}, run: {type: demo}}\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst, Second], roots: [/w]}}}}\n",
		"approvals.yaml":  "rules: {mine: {by: caller, remember: {same: 1h}}, theirs: {}}\nwait: " + wait + "\n",
		"policy.csv": "p, Analyst, *, *, , allow\n" +
			"p, Analyst, *, acp.fs.read, \"args.path == '/w/secret'\", deny\n" +
			"p, Analyst, *, acp.terminal.create, \"args.command == 'rm'\", ask:mine\n" +
			"p, Analyst, *, pay, , ask:mine\n" +
			"p, Analyst, *, deploy, , ask:theirs\n",
	})
}

// plan is what a test changes.
type plan struct {
	config *configs.Config
	state  func(*gateway.Config, *calls.Deps)
	rules  func(*upstream.Rules)
	engine func(context.Context, tool.Call) (tool.Result, error)
	images bool
	tokens uint64 // that the context of the model holds
	folder string // where sessions are kept
	agent  string // empty: Analyst
	// accepted is the command of a server that was accepted.
	accepted string
	loose    bool // the client does not keep to the protocol
}

// fixture is an editor before a face, with a scripted model behind it.
type fixture struct {
	*acptest.Editor
	*facetest.Fixture
	recorder *acptest.Recorder
	leave    func() // ends the input of the face, once
	served   chan error

	mu     sync.Mutex
	bodies []string
	folder string
}

// engine runs tools.
type engine func(context.Context, tool.Call) (tool.Result, error)

func (e engine) Run(ctx context.Context, c tool.Call) (tool.Result, error) { return e(ctx, c) }

// open connects an editor with a face whose model answers by a script, and with its last from then
// on.
func open(t *testing.T, p plan, script ...http.HandlerFunc) *fixture {
	t.Helper()
	h := &fixture{served: make(chan error, 1), folder: p.folder}
	if h.folder == "" {
		h.folder = t.TempDir()
	}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		n := len(h.bodies)
		h.bodies = append(h.bodies, string(body))
		h.mu.Unlock()
		script[min(n, len(script)-1)](w, r)
	}))
	t.Cleanup(provider.Close)
	if p.config == nil {
		p.config = facetest.Vectors(t)
	}
	if p.engine == nil {
		p.engine = func(ctx context.Context, c tool.Call) (tool.Result, error) {
			if c.Run.Type == "acp" {
				return (&engineacp.Client{}).Run(ctx, c)
			}
			return tool.Result{Body: []byte(`{"did":` + string(c.Arguments) + `}`), JSON: true}, nil
		}
	}
	h.Fixture = facetest.New(t, facetest.Options{Config: p.config, Change: func(c *gateway.Config, d *calls.Deps) {
		d.Engine = engine(p.engine)
		if p.state != nil {
			p.state(c, d)
		}
	}})
	client := upstream.NewClient(upstream.Options{})
	t.Cleanup(client.Close)
	d := upstream.Defaults()
	d.Name, d.BaseURL, d.Retries, d.Models = "sample", provider.URL+"/v1", 0, []upstream.Model{{ID: "m"}}
	if p.rules != nil {
		p.rules(&d.Rules)
	}
	set, err := upstream.New([]upstream.Definition{d})
	if err != nil {
		t.Fatal(err)
	}
	face := acp.New(acp.Options{
		Turns: turns.Options{Executor: h.Executor, Upstreams: func() *upstream.Set { return set }, Client: client}, Wire: chat.Wire,
		Model: "m", Images: p.images, ContextTokens: p.tokens, Folder: h.folder, Version: "1", Logger: slog.New(slog.DiscardHandler),
		Accepted: func(s wire.MCPServer) bool { return p.accepted != "" && s.Command == p.accepted },
	})
	sides := []acptest.Side{acptest.Agent, acptest.Client}
	if p.loose {
		sides = sides[:1]
	}
	h.recorder = acptest.NewRecorder(t, sides...)
	fromClient, toAgent := io.Pipe()
	fromAgent, toClient := io.Pipe()
	subject := h.subject(p.config)
	if p.agent != "" {
		subject.Agent = p.agent
	}
	go func() {
		h.served <- face.Serve(context.Background(), gateway.Request{Subject: subject}, fromClient, h.recorder.Writer(acptest.Agent, toClient))
		_ = toClient.Close()
	}()
	h.Editor = acptest.NewEditor(t, fromAgent, h.recorder.Writer(acptest.Client, toAgent))
	h.leave = sync.OnceFunc(func() { _ = toAgent.Close() })
	t.Cleanup(func() {
		h.leave()
		if err := <-h.served; err != nil {
			t.Errorf("the face ended with %v", err)
		}
		h.Done()
		if !p.loose {
			h.recorder.Ended()
		}
		h.recorder.Check(t)
	})
	return h
}

// subject is the one that calls are made for.
func (h *fixture) subject(c *configs.Config) gateway.Subject { return gateway.Subject(c.Defaults) }

// asked is the n-th request to the model.
func (h *fixture) asked(t *testing.T, n int) string {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if n >= len(h.bodies) {
		t.Fatalf("the model was asked %d times", len(h.bodies))
	}
	return h.bodies[n]
}

// outcomes are the outcomes that the log has of a tool, once all are written.
func (h *fixture) outcomes(t *testing.T, name string) (all []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := h.Executor.Kernel.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for _, r := range h.Journal.Records() {
		if r.Outcome != "" && r.Tool == name {
			all = append(all, string(r.Outcome)+" "+string(r.Code))
		}
	}
	return all
}

// root is a root of the project.
func (h *fixture) root(t *testing.T) string {
	t.Helper()
	s := h.subject(facetest.Vectors(t))
	return facetest.Vectors(t).Workspaces[s.Workspace].Projects[s.Project].Roots[0]
}
