package chat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/chat"
	"github.com/callgate/callgate/gateway/faces/models"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

func TestMain(m *testing.M) { facetest.Main(m) }

// model is a scripted provider.
type model struct {
	*httptest.Server
	mu       sync.Mutex
	requests [][]byte
	heads    []http.Header
	script   func(turn int, w http.ResponseWriter, r *http.Request)
}

// inTurn answers each request by the next of some functions, and by the last from
// then on.
func inTurn(script ...func(http.ResponseWriter, *http.Request)) func(int, http.ResponseWriter, *http.Request) {
	return func(turn int, w http.ResponseWriter, r *http.Request) { script[min(turn, len(script)-1)](w, r) }
}

func newModel(t testing.TB, script func(int, http.ResponseWriter, *http.Request)) *model {
	t.Helper()
	m := &model{script: script}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m.mu.Lock()
		turn := len(m.requests)
		m.requests = append(m.requests, body)
		m.heads = append(m.heads, r.Header.Clone())
		m.mu.Unlock()
		m.script(turn, w, r)
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
func (m *model) body(t testing.TB, n int) []byte {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if n >= len(m.requests) {
		t.Fatalf("the model was asked %d times", len(m.requests))
	}
	return m.requests[n]
}

// fixture is a face with all that stands behind it.
type fixture struct {
	*facetest.Fixture
	model *model
	log   *bytes.Buffer
	runs  *runs.Log
}

// plan is what a test changes of a fixture.
type plan struct {
	state  func(*gateway.Config, *calls.Deps)
	rules  func(*upstream.Rules)
	engine facetest.ToolFunc
	// definition is the upstream, as a whole.
	definition func(*upstream.Definition)
	beat       time.Duration
	budgets    *budget.Ledger
}

// open builds a fixture around a scripted model. The configuration is that of the
// vectors, without limits; the only model is m, natively, unless it is changed.
func open(t testing.TB, script func(int, http.ResponseWriter, *http.Request), p plan) *fixture {
	t.Helper()
	return openWith(t, facetest.Vectors(t), script, p)
}

func openWith(t testing.TB, c *configs.Config, script func(int, http.ResponseWriter, *http.Request), p plan) *fixture {
	t.Helper()
	h := &fixture{model: newModel(t, script), log: &bytes.Buffer{}, runs: runs.New(runs.Options{})}
	if p.engine == nil {
		p.engine = func(task tool.Call) (tool.Result, error) {
			return tool.Result{Body: []byte(`{"did":` + string(task.Arguments) + `}`), JSON: true}, nil
		}
	}
	h.Fixture = facetest.New(t, facetest.Options{Config: c, Engine: p.engine, Change: p.state, Log: h.log})
	client := upstream.NewClient(upstream.Options{ReadSecret: facetest.Secret})
	t.Cleanup(client.Close)
	d := upstream.Defaults()
	d.Name, d.BaseURL, d.Retries = "sample", h.model.URL+"/v1", 0
	d.Credential = tool.Bearer("env:upstream-own-key")
	d.Models = []upstream.Model{{ID: "m", UpstreamModel: "model-1"}, {ID: "x-*"}}
	if p.rules != nil {
		p.rules(&d.Rules)
	}
	if p.definition != nil {
		p.definition(&d)
	}
	set, err := upstream.New([]upstream.Definition{d})
	if err != nil {
		t.Fatal(err)
	}
	chat.New(turns.Options{Executor: h.Executor, Upstreams: func() *upstream.Set { return set }, Client: client, Runs: h.runs, Heartbeat: p.beat, Budgets: p.budgets}).Mount(h.Server)
	models.New(models.Options{Executor: h.Executor, Upstreams: func() *upstream.Set { return set }, Refuse: chat.Refuse}).Mount(h.Server)
	return h
}

// post asks for a completion.
func (h *fixture) post(body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// settled are the records, once all of them are written.
func (h *fixture) settled(t testing.TB) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := h.Executor.Kernel.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	return h.Journal.Lines()
}

// shownChoice is one choice of an answer, as far as tests look at it.
type shownChoice struct {
	Index   int
	Message struct {
		Role, Content, Refusal string
		ToolCalls              []call `json:"tool_calls"`
		Reasoning              string `json:"reasoning_content"`
	}
	FinishReason string `json:"finish_reason"`
}

type call struct {
	ID, Type string
	Function struct{ Name, Arguments string }
}

// completion is an answer, or an error, whole or put together from a stream.
type completion struct {
	ID, Object, Model string
	Choices           []shownChoice
	Usage             map[string]any
	Error             struct {
		Message, Type, Param, Code string
		Callgate                   json.RawMessage
	}
	done     bool     // of a stream: [DONE] came
	comments []string // of a stream
	chunks   int
}

// call is the first call of the first choice.
func (c completion) call() string {
	if len(c.Choices) == 0 || len(c.Choices[0].Message.ToolCalls) == 0 {
		return ""
	}
	first := c.Choices[0].Message.ToolCalls[0]
	return first.Function.Name + first.Function.Arguments
}

func (c completion) text() string {
	if len(c.Choices) == 0 {
		return ""
	}
	return c.Choices[0].Message.Content
}

// reads takes an answer apart, whole or a stream.
func reads(t testing.TB, w *httptest.ResponseRecorder) completion {
	t.Helper()
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		return readsStream(t, w.Body.String())
	}
	var c completion
	if err := json.Unmarshal(w.Body.Bytes(), &c); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return c
}

func readsStream(t testing.TB, body string) completion {
	t.Helper()
	var c completion
	for event := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		if note, ok := strings.CutPrefix(event, ": "); ok {
			c.comments = append(c.comments, note)
			continue
		}
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || c.done || c.Error.Code != "" {
			t.Fatalf("found %q in %q", event, body)
		}
		if data == "[DONE]" {
			c.done = true
			continue
		}
		c.add(t, data)
	}
	return c
}

// add puts a chunk behind what came before.
func (c *completion) add(t testing.TB, data string) {
	t.Helper()
	var chunk struct {
		completion
		Choices []struct {
			Index int
			Delta struct {
				Role, Content, Refusal string
				Reasoning              string `json:"reasoning_content"`
				ToolCalls              []struct {
					Index int
					call
				} `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal([]byte(data), &chunk); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	c.chunks++
	if chunk.Error.Code != "" {
		c.Error = chunk.Error
		return
	}
	if c.ID != "" && c.ID != chunk.ID || chunk.Object != "chat.completion.chunk" {
		t.Fatalf("a chunk of another completion: %q", data)
	}
	c.ID, c.Object, c.Model = chunk.ID, chunk.Object, chunk.Model
	if chunk.Usage != nil {
		c.Usage = chunk.Usage
	}
	for _, d := range chunk.Choices {
		i := slices.IndexFunc(c.Choices, func(have shownChoice) bool { return have.Index == d.Index })
		if i < 0 {
			i = len(c.Choices)
			c.Choices = append(c.Choices, shownChoice{Index: d.Index})
		}
		have := &c.Choices[i]
		if have.FinishReason != "" {
			t.Fatalf("more of a choice that has ended: %q", data)
		}
		have.Message.Role += d.Delta.Role
		have.Message.Content += d.Delta.Content
		have.Message.Refusal += d.Delta.Refusal
		have.Message.Reasoning += d.Delta.Reasoning
		for _, piece := range d.Delta.ToolCalls {
			if piece.Index != len(have.Message.ToolCalls) {
				t.Fatalf("a call out of order: %q", data)
			}
			have.Message.ToolCalls = append(have.Message.ToolCalls, piece.call)
		}
		have.FinishReason = d.FinishReason
	}
}

// content is a message of a text.
func content(s string) string { return `{"role":"assistant","content":` + quoted(s) + `}` }

// toolCalls is a message of calls: id, name and arguments of each.
func toolCalls(parts ...string) string {
	var list []string
	for i := 0; i < len(parts); i += 3 {
		list = append(list, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, parts[i], parts[i+1], quoted(parts[i+2])))
	}
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(list, ",") + `]}`
}

// asks is a request with some more members.
func asks(more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"model":"m","messages":[{"role":"user","content":"hi"}]` + more + `}`
}

// tools are the tools of a request, by their names alone.
func tools(names ...string) string {
	var list []string
	for _, n := range names {
		list = append(list, fmt.Sprintf(`{"type":"function","function":{"name":%q}}`, n))
	}
	return `"tools":[` + strings.Join(list, ",") + `]`
}

// The rules that tests run under.
func textProtocol(r *upstream.Rules) { r.Protocol = upstream.Text }
func noRepairs(r *upstream.Rules)    { r.MaxRepairs = 0 }
func orchestrate(r *upstream.Rules)  { r.Modes = []upstream.Mode{upstream.Orchestrate} }

func all(changes ...func(*upstream.Rules)) func(*upstream.Rules) {
	return func(r *upstream.Rules) {
		for _, change := range changes {
			change(r)
		}
	}
}

// configWith is a configuration with a file of tools, all of which the agent may
// use.
func configWith(t testing.TB, name, toolFile string) *configs.Config {
	t.Helper()
	return facetest.Config(t, map[string]string{"callgate.yaml": "registry: {files: [" + name + "]}\n", name: toolFile})
}
