package responses_test

import (
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/callgate/callgate/gateway/faces/responses"
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
	paths    []string
}

// answer is one reply of the model.
type answer func(w http.ResponseWriter, streamed bool)

// replies answers each request by the next answer, and by the last from then on.
func newModel(t testing.TB, script ...answer) *model {
	t.Helper()
	m := &model{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m.mu.Lock()
		turn := len(m.requests)
		m.requests, m.paths = append(m.requests, body), append(m.paths, r.URL.Path)
		m.mu.Unlock()
		script[min(turn, len(script)-1)](w, strings.Contains(r.Header.Get("Accept"), "event-stream"))
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

// asked is what it was asked, the n-th time.
func (m *model) asked(t testing.TB, n int) map[string]json.RawMessage {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if n >= len(m.requests) {
		t.Fatalf("the model was asked %d times", len(m.requests))
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(m.requests[n], &members); err != nil {
		t.Fatal(err)
	}
	return members
}

// Items of replies.
func message(text string) string {
	return fmt.Sprintf(`{"id":"msg_%d","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":%s}]}`, len(text), quoted(text))
}

func refusing(text string) string {
	return fmt.Sprintf(`{"id":"msg_r","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":%s}]}`, quoted(text))
}

func function(id, name, arguments string) string {
	return fmt.Sprintf(`{"id":"fc_%s","type":"function_call","status":"completed","call_id":%s,"name":%s,"arguments":%s}`, id, quoted(id), quoted(name), quoted(arguments))
}

const reasoning = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"}`

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// whole is a response object.
func whole(id, status string, items ...string) string {
	return fmt.Sprintf(`{"id":%q,"object":"response","created_at":7,"status":%q,"error":null,"incomplete_details":null,"instructions":"other","model":"model-1","output":[%s],"tools":[{"type":"function","name":"x"}],"tool_choice":"none","parallel_tool_calls":false,"temperature":1.0,"store":true,"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":1},"output_tokens":4,"total_tokens":7}}`,
		id, status, strings.Join(items, ","))
}

// says answers with items, whole or as a stream of events.
func says(items ...string) answer {
	return func(w http.ResponseWriter, streamed bool) {
		w.Header().Set("X-Request-Id", "req_1")
		if !streamed {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, whole("resp_1", "completed", items...))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range events("completed", items...) {
			fmt.Fprintf(w, "data: %s\n\n", event)
		}
	}
}

// sends answers a stream with some events.
func sends(list ...string) answer {
	return func(w http.ResponseWriter, _ bool) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range list {
			fmt.Fprintf(w, "data: %s\n\n", event)
		}
	}
}

// events are the events of a stream with items: each text in two pieces.
func events(status string, items ...string) []string {
	list := []string{`{"type":"response.created","response":{"id":"resp_1","object":"response","created_at":7,"status":"in_progress","model":"model-1","temperature":1.0,"output":[]}}`}
	for i, item := range items {
		list = append(list, itemEvents(i, item)...)
	}
	kind := "completed"
	if status == "incomplete" {
		kind = status
	}
	list = append(list, fmt.Sprintf(`{"type":"response.%s","response":%s}`, kind, whole("resp_1", status, items...)))
	for i := range list {
		list[i] = strings.Replace(list[i], `{"type":`, fmt.Sprintf(`{"sequence_number":%d,"type":`, i), 1)
	}
	return list
}

// itemEvents are the events of one item.
func itemEvents(i int, item string) []string {
	var o struct {
		ID, Type, Arguments, Input string
		Content                    []struct{ Type, Text, Refusal string }
	}
	if err := json.Unmarshal([]byte(item), &o); err != nil {
		panic(item)
	}
	added := func(as string) string {
		return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, i, strings.Replace(as, `"status":"completed"`, `"status":"in_progress"`, 1))
	}
	done := fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item)
	text := func(kind, member, whole string, more string) []string {
		half := len([]rune(whole)) / 2
		first, second := string([]rune(whole)[:half]), string([]rune(whole)[half:])
		at := fmt.Sprintf(`"item_id":%q,"output_index":%d%s`, o.ID, i, more)
		return []string{
			fmt.Sprintf(`{"type":"%s.delta",%s,"delta":%s,"obfuscation":"xx"}`, kind, at, quoted(first)),
			fmt.Sprintf(`{"type":"%s.delta",%s,"delta":%s}`, kind, at, quoted(second)),
			fmt.Sprintf(`{"type":"%s.done",%s,%q:%s}`, kind, at, member, quoted(whole)),
		}
	}
	list := []string{}
	switch o.Type {
	case "message":
		list = append(list, added(fmt.Sprintf(`{"id":%q,"type":"message","status":"completed","role":"assistant","content":[]}`, o.ID)))
		for n, part := range o.Content {
			more := fmt.Sprintf(`,"content_index":%d`, n)
			if part.Type == "refusal" {
				list = append(list, text("response.refusal", "refusal", part.Refusal, more)...)
			} else {
				list = append(list, text("response.output_text", "text", part.Text, more)...)
			}
		}
	case "function_call":
		list = append(list, added(strings.Replace(item, `"arguments":`+quoted(o.Arguments), `"arguments":""`, 1)))
		list = append(list, text("response.function_call_arguments", "arguments", o.Arguments, "")...)
	case "custom_tool_call":
		list = append(list, added(strings.Replace(item, `"input":`+quoted(o.Input), `"input":""`, 1)))
		list = append(list, text("response.custom_tool_call_input", "input", o.Input, "")...)
	default:
		list = append(list, added(item))
	}
	return append(list, done)
}

// fixture is a face with all that stands behind it.
type fixture struct {
	*facetest.Fixture
	model *model
	log   *bytes.Buffer
}

// plan is what a test changes of a fixture.
type plan struct {
	config     *configs.Config
	state      func(*gateway.Config, *calls.Deps)
	rules      func(*upstream.Rules)
	engine     facetest.ToolFunc
	definition func(*upstream.Definition)
	beat       time.Duration
	budgets    *budget.Ledger
}

func open(t testing.TB, p plan, script ...answer) *fixture {
	t.Helper()
	h := &fixture{model: newModel(t, script...), log: &bytes.Buffer{}}
	if p.engine == nil {
		p.engine = func(task tool.Call) (tool.Result, error) {
			return tool.Result{Body: []byte(`{"did":` + string(task.Arguments) + `}`), JSON: true}, nil
		}
	}
	if p.config == nil {
		p.config = facetest.Vectors(t)
	}
	h.Fixture = facetest.New(t, facetest.Options{Config: p.config, Engine: p.engine, Change: p.state, Log: h.log})
	client := upstream.NewClient(upstream.Options{ReadSecret: facetest.Secret})
	t.Cleanup(client.Close)
	d := upstream.Defaults()
	d.Name, d.BaseURL, d.Retries = "sample", h.model.URL+"/v1", 0
	d.Models = []upstream.Model{{ID: "m", UpstreamModel: "model-1"}}
	d.Rules.Speaks = []upstream.Wire{upstream.ResponsesWire}
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
	responses.New(turns.Options{Executor: h.Executor, Upstreams: func() *upstream.Set { return set }, Client: client, Heartbeat: p.beat, Budgets: p.budgets}).Mount(h.Server)
	return h
}

// The rules that tests run under.
func noRepairs(r *upstream.Rules)   { r.MaxRepairs = 0 }
func orchestrate(r *upstream.Rules) { r.Modes = []upstream.Mode{upstream.Orchestrate} }

func all(changes ...func(*upstream.Rules)) func(*upstream.Rules) {
	return func(r *upstream.Rules) {
		for _, change := range changes {
			change(r)
		}
	}
}

func (h *fixture) postTo(path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func (h *fixture) post(body string, headers ...string) *httptest.ResponseRecorder {
	return h.postTo("/v1/responses", body, headers...)
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

// asks is a request with some more members.
func asks(more ...string) string {
	return `{"model":"m","input":"hi"` + strings.Join(append([]string{""}, more...), ",") + `}`
}

// asksStream is the same as a stream.
func asksStream(more ...string) string { return asks(append(more, `"stream":true`)...) }

// tools are functions of a request, by their names alone.
func tools(names ...string) string {
	var list []string
	for _, n := range names {
		list = append(list, fmt.Sprintf(`{"type":"function","name":%q,"parameters":{"type":"object"}}`, n))
	}
	return `"tools":[` + strings.Join(list, ",") + `]`
}
