package messages_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/messages"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

func TestMain(m *testing.M) { facetest.Main(m) }

// script answers the n-th request to the model.
type script func(turn int, w http.ResponseWriter, r *http.Request)

// model is a scripted provider.
type model struct {
	*httptest.Server
	mu       sync.Mutex
	requests [][]byte
	heads    []*http.Request
}

func newModel(t testing.TB, s script) *model {
	t.Helper()
	m := &model{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m.mu.Lock()
		turn := len(m.requests)
		m.requests, m.heads = append(m.requests, body), append(m.heads, r)
		m.mu.Unlock()
		s(turn, w, r)
	}))
	t.Cleanup(m.Close)
	return m
}

// times is how often the model was asked.
func (m *model) times() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// body is what it was asked, the n-th time.
func (m *model) body(t testing.TB, n int) string {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if n >= len(m.requests) {
		t.Fatalf("the model was asked %d times", len(m.requests))
	}
	return string(m.requests[n])
}

// fixture is a face with all that stands behind it.
type fixture struct {
	*facetest.Fixture
	model *model
	log   *bytes.Buffer
	ran   *[]string // the arguments of the calls that were executed
}

// plan is what a test changes of a fixture.
type plan struct {
	rules      func(*upstream.Rules)
	definition func(*upstream.Definition)
	state      func(*gateway.Config, *calls.Deps)
	beat       time.Duration
	budgets    *budget.Ledger
}

// open builds a fixture around a scripted model. The configuration is that of the vectors, without
// limits; the only model is m.
func open(t testing.TB, s script, p plan) *fixture {
	t.Helper()
	return openWith(t, facetest.Vectors(t), s, p)
}

func openWith(t testing.TB, c *configs.Config, s script, p plan) *fixture {
	t.Helper()
	var (
		mu  sync.Mutex
		ran []string
	)
	h := &fixture{model: newModel(t, s), log: &bytes.Buffer{}, ran: &ran}
	h.Fixture = facetest.New(t, facetest.Options{Config: c, Change: p.state, Log: h.log, Engine: facetest.ToolFunc(func(task tool.Call) (tool.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, string(task.Arguments))
		return tool.Result{Body: []byte(`{"did":` + string(task.Arguments) + `}`), JSON: true}, nil
	})})
	client := upstream.NewClient(upstream.Options{ReadSecret: facetest.Secret})
	t.Cleanup(client.Close)
	d := upstream.Defaults()
	d.Name, d.BaseURL, d.Retries = "sample", h.model.URL+"/v1", 0
	d.Credential = tool.Bearer("env:upstream-own-key")
	d.Models = []upstream.Model{{ID: "m", UpstreamModel: "claude-x"}, {ID: "c", UpstreamModel: "gpt-x", Rules: &upstream.Rules{}}}
	d.Rules.Speaks = []upstream.Wire{upstream.MessagesWire}
	if p.rules != nil {
		p.rules(&d.Rules)
	}
	*d.Models[1].Rules = d.Rules
	d.Models[1].Rules.Speaks = []upstream.Wire{upstream.ChatWire}
	if p.definition != nil {
		p.definition(&d)
	}
	models, err := upstream.New([]upstream.Definition{d})
	if err != nil {
		t.Fatal(err)
	}
	messages.New(turns.Options{Executor: h.Executor, Upstreams: func() *upstream.Set { return models }, Client: client, Runs: runs.New(runs.Options{}), Heartbeat: p.beat, Budgets: p.budgets}).Mount(h.Server)
	return h
}

// post sends a request to a path.
func (h *fixture) post(path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// create asks for a message.
func (h *fixture) create(body string, headers ...string) *httptest.ResponseRecorder {
	return h.post("/v1/messages", body, headers...)
}

// settled are the records, once all of them are written.
func (h *fixture) settled(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := h.Executor.Kernel.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	return strings.Join(h.Journal.Lines(), "\n")
}

// asks is a request with some more members.
func asks(more ...string) string {
	return `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hi"}]` + strings.Join(append([]string{""}, more...), ",") + `}`
}

// tools are the tools of a request, by their names alone.
func tools(names ...string) string {
	var list []string
	for _, n := range names {
		list = append(list, fmt.Sprintf(`{"name":%q,"input_schema":{"type":"object"}}`, n))
	}
	return `"tools":[` + strings.Join(list, ",") + `]`
}

const streamed = `"stream":true`

// The rules that tests run under.
func orchestrate(r *upstream.Rules) { r.Modes = []upstream.Mode{upstream.Orchestrate} }
func noRepairs(r *upstream.Rules)   { r.MaxRepairs = 0 }
