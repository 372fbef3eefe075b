package messages_test

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
	"github.com/callgate/callgate/gateway/messages"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/facetest"
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
	client := upstream.NewClient(upstream.Options{})
	t.Cleanup(client.Close)
	d := upstream.Defaults()
	d.Name, d.BaseURL, d.Retries = "sample", h.model.URL+"/v1", 0
	d.Key = func() (string, error) { return "upstream-own-key", nil }
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
	messages.New(turns.Options{Executor: h.Executor, Upstreams: func() *upstream.Set { return models }, Client: client, Runs: runs.New(runs.Options{}), Heartbeat: p.beat}).Mount(h.Server)
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
	if err := h.Executor.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	return strings.Join(h.Journal.Lines(), "\n")
}

// shownBlock is a content block, as far as tests look at it.
type shownBlock struct {
	Type, Text, Thinking, Signature, ID, Name string
	Input                                     json.RawMessage
}

// answer is a message, or an error, whole or put together from a stream.
type answer struct {
	Type, ID, Model, Role string
	Content               []shownBlock
	StopReason            string `json:"stop_reason"`
	Usage                 map[string]any
	Error                 struct {
		Type, Message string
		Details       struct {
			Code string `json:"error_code"`
		}
	}
	RequestID string `json:"request_id"`
	pings     int
	comments  int
	done      bool
	text      string // of all blocks
}

func (a answer) calls() []string {
	var all []string
	for _, b := range a.Content {
		if b.Type == "tool_use" {
			all = append(all, b.ID+" "+b.Name+" "+string(b.Input))
		}
	}
	return all
}

// reads takes an answer apart, whole or a stream, as strictly as a client does.
func reads(t testing.TB, w *httptest.ResponseRecorder) answer {
	t.Helper()
	var a answer
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Fatalf("%d %q: %v", w.Code, w.Body, err)
		}
		a.done = true
	} else {
		a = readsStream(t, w.Body.String())
	}
	for _, b := range a.Content {
		a.text += b.Text
	}
	return a
}

// readsStream puts a stream together. Every event of which a client would fail fails the test.
func readsStream(t testing.TB, body string) answer {
	t.Helper()
	var a answer
	var inputs []string
	opened := false
	for event := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		if strings.HasPrefix(event, ":") {
			a.comments++
			continue
		}
		name, data, found := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
		var e struct {
			Type    string
			Index   int
			Message answer
			Block   shownBlock `json:"content_block"`
			Delta   struct {
				Type, Text, Thinking, Signature string
				Partial                         string `json:"partial_json"`
				StopReason                      string `json:"stop_reason"`
			}
			Usage map[string]any
			Error json.RawMessage
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || !found || e.Type != name || a.done || a.Error.Type != "" {
			t.Fatalf("found %q in %q: %v", event, body, err)
		}
		if a.ID == "" && name != "message_start" && name != "error" {
			t.Fatalf("%s before message_start in %q", name, body)
		}
		switch name {
		case "message_start":
			if a.ID != "" || len(e.Message.Content) > 0 || e.Message.StopReason != "" {
				t.Fatalf("a bad message_start in %q", body)
			}
			a = e.Message
		case "content_block_start":
			if opened || e.Index != len(a.Content) {
				t.Fatalf("a block at %d in %q", e.Index, body)
			}
			opened = true
			a.Content, inputs = append(a.Content, e.Block), append(inputs, "")
		case "content_block_delta", "content_block_stop":
			if !opened || e.Index != len(a.Content)-1 {
				t.Fatalf("%s at %d in %q", name, e.Index, body)
			}
			b := &a.Content[e.Index]
			if name == "content_block_stop" {
				opened = false
				if inputs[e.Index] != "" {
					b.Input = json.RawMessage(inputs[e.Index])
				}
				continue
			}
			b.Text += e.Delta.Text
			b.Thinking += e.Delta.Thinking
			b.Signature += e.Delta.Signature
			inputs[e.Index] += e.Delta.Partial
		case "message_delta":
			a.StopReason, a.Usage = e.Delta.StopReason, e.Usage
		case "message_stop":
			if opened || a.StopReason == "" || a.Usage["output_tokens"] == nil {
				t.Fatalf("a bad end in %q", body)
			}
			a.done = true
		case "ping":
			a.pings++
		case "error":
			if err := json.Unmarshal(e.Error, &a.Error); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("found %q", event)
		}
	}
	return a
}

// block is a content block of the model.
func textOf(text string) string { return `{"type":"text","text":` + quoted(text) + `}` }

func toolUse(id, name, input string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, name, input)
}

const thinkingBlock = `{"type":"thinking","thinking":"Hm.","signature":"c2ln"}`

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// message is a message of the model.
func message(reason string, blocks ...string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[` + strings.Join(blocks, ",") + `],"stop_reason":` + quoted(reason) +
		`,"stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":5}}`
}

// stream writes a message as a stream, in deltas of so many bytes. place is where the calls stand:
// deltas, start or message.
func stream(w io.Writer, place string, size int, whole string) {
	var m struct {
		Content    []map[string]any
		StopReason string `json:"stop_reason"`
	}
	if err := json.Unmarshal([]byte(whole), &m); err != nil {
		panic(err)
	}
	head := whole[:strings.Index(whole, `"content":[`)]
	usage := `"stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1}}`
	event := func(name, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data) }
	if place == "message" {
		event("message_start", `{"type":"message_start","message":`+whole+`}`)
		event("message_stop", `{"type":"message_stop"}`)
		return
	}
	event("message_start", `{"type":"message_start","message":`+head+`"content":[],"stop_reason":null,`+usage+`}`)
	event("ping", `{"type":"ping"}`)
	for i, b := range m.Content {
		delta := func(kind, member, text string) {
			for len(text) > 0 {
				n := min(size, len(text))
				for n < len(text) && text[n]&0xC0 == 0x80 {
					n++ // not within a character
				}
				event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, i, kind, member, quoted(text[:n])))
				text = text[n:]
			}
		}
		opening := map[string]any{}
		for name, value := range b {
			opening[name] = value
		}
		var then func()
		switch b["type"] {
		case "text":
			opening["text"] = ""
			then = func() { delta("text_delta", "text", b["text"].(string)) }
		case "thinking":
			opening["thinking"], opening["signature"] = "", ""
			then = func() {
				delta("thinking_delta", "thinking", b["thinking"].(string))
				event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"signature_delta","signature":%s}}`, i, quoted(b["signature"].(string))))
			}
		case "tool_use", "server_tool_use":
			if place == "deltas" {
				opening["input"] = map[string]any{}
				raw, _ := json.Marshal(b["input"])
				then = func() { delta("input_json_delta", "partial_json", string(raw)) }
			}
		}
		raw, _ := json.Marshal(opening)
		event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, raw))
		if then != nil {
			then()
		}
		event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":5}}`, m.StopReason))
	event("message_stop", `{"type":"message_stop"}`)
}

// says is a script of messages, the last of which is said from then on; streamed where the request
// asks for that.
func says(wholes ...string) script { return saysIn("deltas", 7, wholes...) }

func saysIn(place string, size int, wholes ...string) script {
	return func(turn int, w http.ResponseWriter, r *http.Request) {
		whole := wholes[min(turn, len(wholes)-1)]
		w.Header().Set("Request-Id", "req_upstream")
		if r.Header.Get("Accept") == "text/event-stream" {
			w.Header().Set("Content-Type", "text/event-stream")
			stream(w, place, size, whole)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole)
	}
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
