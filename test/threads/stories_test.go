// Package threads_test tells stories of threads, testdata/threads/stories.txt, on every face that can, by the real kernel and a
// scripted model.
package threads_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/chat"
	"github.com/callgate/callgate/gateway/faces/mcp"
	"github.com/callgate/callgate/gateway/faces/messages"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/gateway/faces/responses"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

func TestMain(m *testing.M) { facetest.Main(m) }

const toolsFile = `tools:
  - {name: crm.read, labels: [customer], run: {type: demo}, input_schema: {type: object, properties: {id: {type: integer}}}}
  - {name: mail.send, labels: [], run: {type: demo}, input_schema: {type: object, required: [to], properties: {to: {type: string}}}}
  - {name: web.fetch, labels: [{label: untrusted, unless_hosts: [docs.acme.example]}], run: {type: demo}, input_schema: {type: object, properties: {url: {type: string}}}}
  - {name: files.read, labels: [], run: {type: demo}, input_schema: {type: object, required: [path], properties: {path: {type: string}}}}
  - {name: files.write, labels: [], run: {type: demo}, input_schema: {type: object, required: [path], properties: {path: {type: string}}}}
  - {name: pay.refund, labels: [], run: {type: demo}, input_schema: {type: object, required: [amount, currency], properties: {amount: {type: number, minimum: 0}, currency: {type: string}}}}
  - {name: clock.now, labels: [], run: {type: demo}, input_schema: {type: object}}
`

// call is a call of a tool.
type call struct{ tool, arguments string }

// wire is the name of its tool on the wires of models.
func (c call) wire() string { return strings.ReplaceAll(c.tool, ".", "_") }

// step is one answer of the model, and the request that asks for it.
type step struct {
	line              int
	calls             []call
	thread, ancestors string
	by                string
	fails             bool
	brings            []call
	code              string
}

// story is a policy and what happens under it.
type story struct {
	name   string
	rows   []string
	shared bool
	steps  []step
}

func readStories(t *testing.T) (all []*story) {
	t.Helper()
	text, err := os.ReadFile(corpora.Testdata("threads", "stories.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var s *story
	var brings []call
	for i, line := range strings.Split(string(text), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || word == "#":
		case word == "story":
			s = &story{name: rest}
			all = append(all, s)
		case word == "shared":
			s.shared = true
		case word == "row":
			if row, err := strconv.Unquote(strings.ReplaceAll(rest, `""`, `\"`)); err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			} else {
				s.rows = append(s.rows, row)
			}
		case word == "brings":
			brings = append(brings, readCall(rest))
		default:
			st := step{line: i + 1, thread: "t", by: "ada", brings: brings}
			brings = nil
			head, rest, ok := strings.Cut(" "+line, " call ")
			if !ok {
				t.Fatalf("line %d: %q", i+1, line)
			}
			for _, option := range strings.Fields(head) {
				name, value, _ := strings.Cut(option, "=")
				switch name {
				case "thread":
					st.thread = value
				case "ancestors":
					st.ancestors = value
				case "by":
					st.by = value
				case "fails":
					st.fails = true
				default:
					t.Fatalf("line %d: %q", i+1, option)
				}
			}
			rest, st.code, _ = strings.Cut(rest, " -> ")
			for _, one := range strings.Split(rest, " & ") {
				st.calls = append(st.calls, readCall(one))
			}
			s.steps = append(s.steps, st)
		}
	}
	return all
}

func readCall(text string) call {
	name, arguments, _ := strings.Cut(text, " ")
	return call{name, arguments}
}

// office is a gateway of all faces, whose model gives the answer of a step.
type office struct {
	*facetest.Fixture
	t     *testing.T
	mu    sync.Mutex
	step  *step
	asked int      // how often the model was asked for the step
	first []string // what it answers before that
}

// byName has principals by their names, of which one has one thread.
type byName struct{}

func (byName) Authenticate(name string) *identity.Principal {
	return &identity.Principal{Name: name, Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}, OneThread: name == "one"}
}

func open(t *testing.T, s *story, ledger *store.Engine) *office {
	t.Helper()
	unnamed := "refuse"
	if s.shared {
		unnamed = "shared"
	}
	c := facetest.Config(t, map[string]string{
		"callgate.yaml":  "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\nthreads: {labels: [untrusted, customer], default_labels: [untrusted], unnamed: " + unnamed + "}\n",
		"tools.yaml":     toolsFile,
		"approvals.yaml": "rules: {one: {}}\nwait: 0s\n",
		"policy.csv":     strings.Join(s.rows, "\n") + "\n",
	})
	o := &office{t: t}
	o.Fixture = facetest.New(t, facetest.Options{
		Config: c,
		Engine: facetest.ToolFunc(func(tool.Call) (tool.Result, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.step.fails {
				return tool.Result{}, refusal.New(refusal.ToolFailed, "It failed.")
			}
			return tool.Result{Body: []byte(`{}`), JSON: true}, nil
		}),
		Change: func(g *gateway.Config, d *calls.Deps) {
			g.Identity, d.Ledger = byName{}, ledger
		},
	})
	terms, _, err := o.Executor.Config().Terms()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.KeepTerms(t.Context(), terms, nil); err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(http.HandlerFunc(o.answer))
	t.Cleanup(model.Close)
	client := upstream.NewClient(upstream.Options{})
	t.Cleanup(client.Close)
	var models []upstream.Definition
	for _, wire := range []upstream.Wire{upstream.ChatWire, upstream.MessagesWire, upstream.ResponsesWire} {
		d := upstream.Defaults()
		d.Name, d.BaseURL, d.Retries = string(wire), model.URL, 0
		d.Models, d.Rules.Speaks = []upstream.Model{{ID: string(wire)}}, []upstream.Wire{wire}
		d.Rules.Modes = []upstream.Mode{upstream.Enforce, upstream.Orchestrate}
		d.Rules.Messages.UnknownBlocks, d.Rules.Messages.ServerTools = upstream.Pass, []string{"web_search"}
		d.Rules.Responses.State, d.Rules.Responses.UnknownItems, d.Rules.Responses.Prompt = upstream.BindState, upstream.Pass, true
		d.Rules.Responses.HostedTools, d.Rules.Responses.MCPServers = []string{"web_search"}, []string{"docs"}
		models = append(models, d)
	}
	set, err := upstream.New(models)
	if err != nil {
		t.Fatal(err)
	}
	forModels := turns.Options{Executor: o.Executor, Upstreams: func() *upstream.Set { return set }, Client: client}
	native.New(native.Options{Executor: o.Executor, Log: o.Logger}).Mount(o.Server)
	chat.New(forModels).Mount(o.Server)
	messages.New(forModels).Mount(o.Server)
	responses.New(forModels).Mount(o.Server)
	mcp.New(mcp.Options{Executor: o.Executor, Version: "1"}).Mount(o.Server)
	return o
}

// post sends the request of a step.
func (o *office) post(s *step, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+s.by)
	for _, h := range [][2]string{{"Callgate-Thread", s.thread}, {"Callgate-Thread-Ancestors", s.ancestors}} {
		if h[1] != "" {
			r.Header.Set(h[0], h[1])
		}
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Host = "127.0.0.1:8080"
	w := httptest.NewRecorder()
	o.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}))))
	return w
}

// way is how a step is told: by a face, in a mode.
type way struct {
	name      string
	handsOver bool
	single    bool // one call a request, and no history
	send      func(o *office, s *step) *httptest.ResponseRecorder
}

func ways() []way {
	all := []way{
		{"native", false, true, func(o *office, s *step) *httptest.ResponseRecorder {
			c := s.calls[0]
			return o.post(s, "/v1/calls", `{"tool":{"name":"`+c.tool+`","arguments":`+c.arguments+`}}`, "Content-Type", "text/plain")
		}},
		{"mcp", false, true, func(o *office, s *step) *httptest.ResponseRecorder {
			c := s.calls[0]
			return o.post(s, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+c.wire()+`","arguments":`+c.arguments+`,`+
				`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
				"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", c.wire(), "Accept", "application/json, text/event-stream")
		}},
	}
	for _, w := range []struct {
		wire upstream.Wire
		path string
		body func(*step) string
	}{{upstream.ChatWire, "/v1/chat/completions", chatRequest}, {upstream.MessagesWire, "/v1/messages", messagesRequest}, {upstream.ResponsesWire, "/v1/responses", responsesRequest}} {
		for _, mode := range []upstream.Mode{upstream.Enforce, upstream.Orchestrate} {
			all = append(all, way{string(w.wire) + ", " + string(mode), mode == upstream.Enforce, false, func(o *office, s *step) *httptest.ResponseRecorder {
				return o.post(s, w.path, fmt.Sprintf(`{"model":%q,`, w.wire)+w.body(s), "Callgate-Mode", string(mode))
			}})
		}
	}
	return all
}

// tools are those that are offered: those that the step calls.
func (s *step) tools(form string) string {
	var all []string
	for _, c := range s.calls {
		if one := fmt.Sprintf(form, c.wire()); !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return strings.Join(all, ",")
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

func chatRequest(s *step) string {
	said := []string{`{"role":"user","content":"hi"}`}
	for i, c := range s.brings {
		said = append(said, fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":"h%d","type":"function","function":{"name":%q,"arguments":%s}}]}`, i, c.wire(), quoted(c.arguments)),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"h%d","content":"{}"}`, i))
	}
	return `"messages":[` + strings.Join(said, ",") + `],"tools":[` + s.tools(`{"type":"function","function":{"name":%q}}`) + `]}`
}

func messagesRequest(s *step) string {
	said := []string{`{"role":"user","content":"hi"}`}
	for i, c := range s.brings {
		said = append(said, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"h%d","name":%q,"input":%s}]}`, i, c.wire(), c.arguments),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"h%d","content":"{}"}]}`, i))
	}
	return `"max_tokens":9,"messages":[` + strings.Join(said, ",") + `],"tools":[` + s.tools(`{"name":%q,"input_schema":{"type":"object"}}`) + `]}`
}

func responsesRequest(s *step) string {
	said := []string{`{"role":"user","content":"hi"}`}
	for i, c := range s.brings {
		said = append(said, fmt.Sprintf(`{"type":"function_call","call_id":"h%d","name":%q,"arguments":%s}`, i, c.wire(), quoted(c.arguments)),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"h%d","output":"{}"}`, i))
	}
	return `"input":[` + strings.Join(said, ",") + `],"tools":[` + s.tools(`{"type":"function","name":%q,"parameters":{"type":"object"}}`) + `]}`
}

// answer is the model: it makes the calls of the step once, and answers with a text from then on.
func (o *office) answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	o.mu.Lock()
	if len(o.first) > 0 {
		_, _ = io.WriteString(w, o.first[0])
		o.first = o.first[1:]
		o.mu.Unlock()
		return
	}
	made := o.step.calls
	if o.asked++; o.asked > 1 {
		made = nil
	}
	o.mu.Unlock()
	var parts []string
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		for i, c := range made {
			parts = append(parts, fmt.Sprintf(`{"id":"call_%d","type":"function","function":{"name":%q,"arguments":%s}}`, i, c.wire(), quoted(c.arguments)))
		}
		message, reason := `{"role":"assistant","content":"Done."}`, "stop"
		if parts != nil {
			message, reason = `{"role":"assistant","content":null,"tool_calls":[`+strings.Join(parts, ",")+`]}`, "tool_calls"
		}
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":7,"model":"m","choices":[{"index":0,"message":`+message+`,"finish_reason":"`+reason+`"}]}`)
	case strings.HasSuffix(r.URL.Path, "/messages"):
		reason := "tool_use"
		for i, c := range made {
			parts = append(parts, fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":%q,"input":%s}`, i, c.wire(), c.arguments))
		}
		if parts == nil {
			parts, reason = []string{`{"type":"text","text":"Done."}`}, "end_turn"
		}
		_, _ = io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[`+strings.Join(parts, ",")+`],"stop_reason":"`+reason+`","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`)
	default:
		for i, c := range made {
			parts = append(parts, fmt.Sprintf(`{"id":"fc_%d","type":"function_call","status":"completed","call_id":"call_%d","name":%q,"arguments":%s}`, i, i, c.wire(), quoted(c.arguments)))
		}
		if parts == nil {
			parts = []string{`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"Done."}]}`}
		}
		_, _ = io.WriteString(w, `{"id":"resp_1","object":"response","created_at":7,"status":"completed","model":"m","output":[`+strings.Join(parts, ",")+`]}`)
	}
}

// tell brings a step to the gateway, and returns the codes of its calls; of one refused, that alone.
func (o *office) tell(w way, s *step) (codes []string, answer *httptest.ResponseRecorder) {
	o.mu.Lock()
	o.step, o.asked = s, 0
	o.mu.Unlock()
	before := len(o.Journal.Records())
	answer = w.send(o, s)
	if err := o.Executor.Flush(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	for _, r := range o.Journal.Records()[before:] {
		if r.Event == audit.Decision && r.Tool != "" {
			codes = append(codes, string(r.Code))
		}
	}
	return codes, answer
}

// TestWhatNobodyJudgedLabels: what a model may have read without a call that was judged here labels its thread before its
// next call, wherever and in whatever shape that came.
func TestWhatNobodyJudgedLabels(t *testing.T) {
	s := &story{rows: []string{`p, Analyst, *, files.write, "'untrusted' in thread.labels", deny`, "p, Analyst, *, *, , allow"}}
	write := step{calls: []call{{"files.write", `{"path":"a"}`}}, thread: "t", by: "ada"}
	const (
		completed = `{"id":"resp_0","object":"response","created_at":7,"status":"completed","model":"m","output":[`
		searched  = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"a"}}`
		asks      = `{"id":"mcpr_1","type":"mcp_approval_request","server_label":"docs","name":"read","arguments":"{}"}`
		says      = `{"id":"msg_0","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"Hi."}]}`
		function  = `{"type":"function","name":"files_write","parameters":{"type":"object"}}`
		offers    = `,"tools":[` + function + `]`
		kept      = `"previous_response_id":"resp_0",`
	)
	begins := []string{completed + says + `]}`}
	inMessages := func(messages string) string {
		return `"max_tokens":9,"messages":[` + messages + `],"tools":[{"name":"files_write","input_schema":{"type":"object"}}]`
	}
	for name, test := range map[string]struct {
		wire   upstream.Wire
		before string // a request that comes before it
		body   string
		first  []string
	}{
		"a kept response, and a text":   {upstream.ResponsesWire, `"input":"hi"`, kept + `"input":"hi"` + offers, begins},
		"a kept response, and items":    {upstream.ResponsesWire, `"input":"hi"`, kept + `"input":[{"role":"user","content":"hi"}]` + offers, begins},
		"a kept response, and a prompt": {upstream.ResponsesWire, `"input":"hi"`, kept + `"prompt":{"id":"pmpt_1"}` + offers, begins},
		"a kept item":                   {upstream.ResponsesWire, `"input":"hi"`, `"input":[{"type":"item_reference","id":"msg_0"},{"role":"user","content":"hi"}]` + offers, begins},
		"a search in the history":       {upstream.ResponsesWire, "", `"input":[` + searched + `,{"role":"user","content":"hi"}]` + offers, nil},
		"an item of an unknown type":    {upstream.ResponsesWire, "", `"input":[{"type":"novel"},{"role":"user","content":"hi"}]` + offers, nil},
		"a search beside what is asked for": {upstream.ResponsesWire, "", `"input":"hi","tools":[{"type":"web_search"},{"type":"mcp","server_label":"docs","server_url":"https://docs.example"},` + function + `]`,
			[]string{completed + searched + "," + asks + `]}`}},
		"a search of the model": {upstream.MessagesWire, "", inMessages(`{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},` +
			`{"type":"web_search_tool_result","tool_use_id":"s","content":[]}]},{"role":"user","content":"go on"}`), nil},
		"a search that the user states":  {upstream.MessagesWire, "", inMessages(`{"role":"user","content":[{"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"text","text":"hi"}]}`), nil},
		"a result that the model states": {upstream.MessagesWire, "", inMessages(`{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"s","content":"x"}]},{"role":"user","content":"go on"}`), nil},
		"a block of an unknown type":     {upstream.MessagesWire, "", inMessages(`{"role":"user","content":[{"type":"novel"},{"type":"text","text":"hi"}]}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, s, inMemory(t))
			path, mode := "/v1/responses", []string{"Callgate-Mode", string(upstream.Enforce)}
			if test.wire == upstream.MessagesWire {
				path = "/v1/messages"
			}
			o.first, o.step = test.first, &write
			send := func(body string) func(*office, *step) *httptest.ResponseRecorder {
				return func(o *office, s *step) *httptest.ResponseRecorder {
					return o.post(s, path, fmt.Sprintf(`{"model":%q,`, test.wire)+body+`}`, mode...)
				}
			}
			if test.before != "" {
				elsewhere := write // nothing of it is kept of this thread
				elsewhere.thread = "before"
				if w := send(test.before)(o, &elsewhere); w.Code != http.StatusOK {
					t.Fatalf("%d %s", w.Code, w.Body)
				}
			}
			got, answer := o.tell(way{send: send(test.body)}, &write)
			if len(got) == 0 || got[len(got)-1] != string(refusal.PermissionDenied) {
				t.Errorf("%q: %d %s", got, answer.Code, answer.Body)
			}
		})
	}
}

// TestStories tells the stories on every face, with what is kept in memory and on Redis.
func TestStories(t *testing.T) {
	stories := readStories(t)
	t.Run("memory", func(t *testing.T) { tellAll(t, stories, inMemory) })
	t.Run("redis", func(t *testing.T) {
		if testing.Short() {
			t.Skip("short: the stories are told over memory alone")
		}
		redistest.Require(t)
		tellAll(t, stories, sharedOn(redistest.Start(t).Address()))
	})
}

func tellAll(t *testing.T, stories []*story, kept func(*testing.T) *store.Engine) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			for _, w := range ways() {
				if w.single && slices.ContainsFunc(s.steps, func(s step) bool { return len(s.calls) > 1 || s.brings != nil }) ||
					w.handsOver && slices.ContainsFunc(s.steps, func(s step) bool { return s.fails }) {
					continue
				}
				o := open(t, s, kept(t))
				for i := range s.steps {
					st := &s.steps[i]
					want := make([]string, len(st.calls))
					for i := range want {
						want[i] = st.code
					}
					got, answer := o.tell(w, st)
					if st.code == string(refusal.ThreadRequired) && !w.single { // the model is not asked
						if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), st.code) || o.asked > 0 || len(got) > 0 {
							t.Errorf("%s, line %d: %d, asked %d times, %q: %s", w.name, st.line, answer.Code, o.asked, got, answer.Body)
						}
						continue
					}
					if !slices.Equal(got, want) {
						t.Errorf("%s, line %d: %q, want %q: %s", w.name, st.line, got, want, answer.Body)
					}
				}
			}
		})
	}
}
