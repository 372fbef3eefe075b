package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/mcp"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/telemetry"
	"github.com/callgate/callgate/tool"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	leaks.Main(m)
}

// ledger is a journal that a test reads.
type ledger struct {
	mu      sync.Mutex
	records []audit.Record
}

func (l *ledger) Append(_ context.Context, r audit.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	return nil
}

// lines are the records in short, in their order.
func (l *ledger) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, r := range l.records {
		out = append(out, strings.TrimRight(fmt.Sprintf("%s %s %s %s %s", r.Event, r.Mode, r.Verdict, r.Outcome, r.Code), " "))
	}
	return out
}

// toolFunc is an engine.
type toolFunc func(tool.Call) (tool.Result, error)

func (f toolFunc) Run(_ context.Context, t tool.Call) (tool.Result, error) { return f(t) }

// says is a tool that answers with JSON.
func says(body string) toolFunc {
	return func(tool.Call) (tool.Result, error) {
		return tool.Result{Body: []byte(body), JSON: true}, nil
	}
}

// echo is a tool that answers with its arguments, byte for byte.
func echo(task tool.Call) (tool.Result, error) {
	return tool.Result{Body: []byte(`{"did":` + string(task.Arguments) + `}`), JSON: true}, nil
}

// fixture is a face with all that stands behind it.
type fixture struct {
	*server.Server
	face   *mcp.Face
	kernel *calls.Executor
	ledger *ledger
	log    *logged
}

// plan is what a test changes of a fixture.
type plan struct {
	files   map[string]string // of the configuration, beside or instead of those of the vectors
	state   func(*gateway.Config, *calls.Deps)
	engine  toolFunc
	origins []string
	guarded *mcp.ProtectedResource // says where tokens are had
	dotted  bool                   // tools have the names of the registry
	time    time.Duration          // for answers; 0 is what it is by itself
}

// open builds a fixture by the configuration of the vectors, without limits.
func open(t testing.TB, p plan) *fixture {
	t.Helper()
	c, err := configs.Load(configured(t, p.files))
	if err != nil {
		t.Fatal(err)
	}
	state := &gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents,
		Limits: &ratelimit.Limits{Replicas: 1}, Defaults: gateway.Subject(c.Defaults), AgentRequired: c.AgentRequired, Digest: c.Digest,
		Approvals: c.Approvals.Rules, ApprovalWait: c.Approvals.Wait,
	}
	h := &fixture{ledger: &ledger{}, log: &logged{}}
	if p.engine == nil {
		p.engine = echo
	}
	kept := store.NewMemory(time.Now)
	parts := calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: h.ledger}, Store: kept, Approvals: kept, Engine: p.engine}
	if p.state != nil {
		p.state(state, &parts)
	}
	if h.kernel, err = calls.New(state, parts); err != nil {
		t.Fatal(err)
	}
	h.Server = server.New(server.Options{
		Metrics: telemetry.New(), Log: slog.New(slog.NewJSONHandler(h.log, nil)), Refuse: native.Refuse,
		Identify: h.kernel.Kernel.Identify, AllowedOrigins: server.AllowedOrigins{Origins: p.origins},
	})
	h.face = mcp.New(mcp.Options{Executor: h.kernel, Version: "1.2.3", AnswerTimeout: p.time, RegistryNames: p.dotted, ProtectedResource: p.guarded})
	h.face.Mount(h.Server)
	return h
}

// configured is the main file of a configuration.
func configured(t testing.TB, files map[string]string) string {
	t.Helper()
	if len(files) == 0 {
		return corpora.Testdata("vectors", "config", "callgate.yaml")
	}
	dir := t.TempDir()
	copyFolder(t, dir, corpora.Testdata("vectors", "config"))
	for name, text := range files {
		write(t, dir, name, text)
	}
	return dir + "/callgate.yaml"
}

// logged is a log for several goroutines: a request may write its line after its answer.
type logged struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

// reply is what was answered to a message.
type reply struct {
	status int
	header http.Header
	raw    string
	ID     any
	Result struct {
		Content []map[string]any
		// Structured is the output as it stood.
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool
		Type       string         `json:"resultType"`
		TTL        *int           `json:"ttlMs"`
		Scope      string         `json:"cacheScope"`
		Meta       map[string]any `json:"_meta"`
		Tools      []listed
		Cursor     string `json:"nextCursor"`
		Version    string `json:"protocolVersion"`
		// Capabilities and the rest are of server/discover and initialize.
		Capabilities map[string]any
		Server       map[string]any `json:"serverInfo"`
		// Requests and State are of a tool that asks.
		Requests json.RawMessage `json:"inputRequests"`
		State    string          `json:"requestState"`
	}
	Error struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

type listed struct {
	Name, Description         string
	InputSchema, OutputSchema json.RawMessage
	Annotations               map[string]bool
}

// code is Callgate's own, of a result or an error.
func (r reply) code() string {
	var in struct {
		Code  string
		Error struct{ Code string }
	}
	from := r.Error.Data
	if r.Result.IsError && len(r.Result.Content) == 1 {
		output, _ := r.Result.Content[0]["text"].(string)
		from = json.RawMessage(output)
	}
	_ = json.Unmarshal(from, &in)
	return in.Code + in.Error.Code
}

// post sends a body as it is.
func (h *fixture) post(t testing.TB, body string, headers ...string) reply {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	// As over a connection of this machine.
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080})))
	r.Host = "127.0.0.1:8080"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header[http.CanonicalHeaderKey(headers[i])] = append(r.Header[http.CanonicalHeaderKey(headers[i])], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	got := reply{status: w.Code, header: w.Header(), raw: w.Body.String()}
	if got.raw == "" {
		return got
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(w.Body.Bytes(), &object); err != nil {
		t.Fatalf("%s: %v", got.raw, err)
	}
	_, isResult := object["result"]
	_, isError := object["error"]
	if string(object["jsonrpc"]) != `"2.0"` || isResult == isError || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("no answer of JSON-RPC: %s", got.raw)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%s: %v", got.raw, err)
	}
	return got
}

const (
	meta26 = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	meta   = `{` + meta26 + `}`
)

// modern are the headers of a request of 2026-07-28.
func modern(method, name string) []string {
	headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		headers = append(headers, "Mcp-Name", name)
	}
	return headers
}

// ask sends a request of 2026-07-28. Its params are given without _meta.
func (h *fixture) ask(t testing.TB, method, params string, headers ...string) reply {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, strings.TrimPrefix(params+","+meta26, ","))
	return h.post(t, body, append(modern(method, ""), headers...)...)
}

// call has a tool called, by a request of 2026-07-28.
func (h *fixture) call(t testing.TB, name, arguments string, headers ...string) reply {
	t.Helper()
	quoted, _ := json.Marshal(name)
	params := fmt.Sprintf(`"name":%s`, quoted)
	if arguments != "" {
		params += `,"arguments":` + arguments
	}
	return h.ask(t, "tools/call", params, append([]string{"Mcp-Name", name}, headers...)...)
}

// old sends a request of 2025-11-25.
func (h *fixture) old(t testing.TB, method, params string) reply {
	t.Helper()
	return h.post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params), "Mcp-Protocol-Version", "2025-11-25")
}

// text is that of a result's one block.
func (r reply) text(t testing.TB) string {
	t.Helper()
	if len(r.Result.Content) != 1 || r.Result.Content[0]["type"] != "text" {
		t.Fatalf("no one text: %s", r.raw)
	}
	return r.Result.Content[0]["text"].(string)
}
