// Package threads_test tells stories of threads, testdata/threads/stories.txt, on every face that can, by the real kernel and a
// scripted model.
package threads_test

import (
	"bufio"
	"cmp"
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
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/gateway/faces/callback"
	"github.com/callgate/callgate/gateway/faces/chat"
	"github.com/callgate/callgate/gateway/faces/mcp"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/gateway/faces/oxp"
	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/threads"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/policy/lab"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/boltstore"
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

// call is a call of a tool, and in a history what it has answered.
type call struct{ tool, arguments, result string }

// wire is the name of its tool on the wires of models.
func (c call) wire() string { return strings.ReplaceAll(c.tool, ".", "_") }

// step is one answer of the model, and the request that asks for it.
type step struct {
	line              int
	calls             []call
	thread, ancestors string
	by                string
	fails             bool
	unlogged          bool          // its decisions cannot be written down
	later             time.Duration // than the step before
	answers           string        // what its tools answer; empty: {}
	brings            []call
	code              string
	says              string // is in the answer of a face that takes one call
	asks              string // is said by the user, beside a greeting
}

// story is a policy and what happens under it.
type story struct {
	name    string
	rows    []string
	hooks   string // as hooks.yaml has them; empty: none
	shared  bool
	unasked bool   // its tools do not ask first: the answer to them would be refused by the label of the call that asked
	limits  string // of threads, as limits.yaml has them; empty: none
	clocked bool   // some steps are later
	run     string // of its tools; empty: {type: demo}. Calls of tools that call back are kept in a file
	steps   []step
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
		case word == "unasked":
			s.unasked = true
		case word == "limits":
			s.limits = rest
		case word == "hooks":
			s.hooks = rest
		case word == "row":
			if row, err := strconv.Unquote(strings.ReplaceAll(rest, `""`, `\"`)); err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			} else {
				s.rows = append(s.rows, row)
			}
		case word == "brings":
			made, result, _ := strings.Cut(rest, " -> ")
			c := readCall(made)
			c.result = cmp.Or(result, "{}")
			brings = append(brings, c)
		default:
			st := step{line: i + 1, thread: "t", by: "ada", brings: brings}
			brings = nil
			times := 1
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
				case "unlogged":
					st.unlogged = true
				case "later":
					if st.later, err = time.ParseDuration(value); err != nil {
						t.Fatalf("line %d: %v", i+1, err)
					}
					s.clocked = true
				case "answers":
					st.answers = value
				case "times":
					if times, err = strconv.Atoi(value); err != nil {
						t.Fatalf("line %d: %v", i+1, err)
					}
				default:
					t.Fatalf("line %d: %q", i+1, option)
				}
			}
			rest, st.code, _ = strings.Cut(rest, " -> ")
			st.code, st.says, _ = strings.Cut(st.code, ": ")
			for _, one := range strings.Split(rest, " & ") {
				st.calls = append(st.calls, readCall(one))
			}
			for n := range times {
				one := st
				one.thread, one.answers = strings.ReplaceAll(st.thread, "%", strconv.Itoa(n)), strings.ReplaceAll(st.answers, "%", strconv.Itoa(n))
				s.steps = append(s.steps, one)
			}
		}
	}
	return all
}

func readCall(text string) call {
	name, arguments, _ := strings.Cut(text, " ")
	return call{tool: name, arguments: arguments}
}

// office is a gateway of all faces, whose model gives the answer of a step.
type office struct {
	*facetest.Fixture
	t     *testing.T
	rules *gateway.Config
	mu    sync.Mutex
	step  *step
	asked int      // how often the model was asked for the step
	first []string // what it answers before that
	now   time.Time

	shadow func(gateway.ShadowJudgement) // sees each judgement; nil: nobody does

	headers []string // of each request, beside those of its step

	mcp      *mcp.Face
	sessions map[string]session // by the principal and the name of the thread
	acp      *acp.Face
	editors  map[string]*acptest.Editor // by the principal
	permits  string                     // what the proxy has answered an agent
}

// byName has principals by their names, of which one has one thread.
type byName struct{}

func (byName) Authenticate(name string) *identity.Principal {
	return &identity.Principal{Name: name, Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}, OneThread: name == "one"}
}

// callout answers by a word that the value has.
type callout struct{}

func (callout) Ask(ctx context.Context, _ *hook.Hook, _ hook.Question, value []byte) (hook.Answer, error) {
	has := func(word string) bool { return strings.Contains(string(value), word) }
	switch {
	case has("personal"):
		return hook.Answer{Labels: []string{"customer"}}, nil
	case has("foreign"):
		return hook.Answer{Labels: []string{"untrusted"}}, nil
	case has("slow"):
		<-ctx.Done()
		return hook.Answer{}, ctx.Err()
	case has("panic"):
		panic("the callout")
	}
	return hook.Answer{}, nil
}

func (o *office) Judged(s gateway.ShadowJudgement) {
	if o.shadow != nil {
		o.shadow(s)
	}
}

func (o *office) time() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}

// config is the configuration of a story.
func (s *story) config(t *testing.T) *configs.Config {
	t.Helper()
	unnamed := "refuse"
	if s.shared {
		unnamed = "shared"
	}
	files := map[string]string{
		"callgate.yaml":   "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\nthreads: {labels: [untrusted, customer], default_labels: [untrusted], unnamed: " + unnamed + "}\n",
		"tools.yaml":      strings.ReplaceAll(toolsFile, "{type: demo}", cmp.Or(s.run, "{type: demo}")),
		"approvals.yaml":  "rules: {one: {}}\nwait: 0s\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [/w]}}}}\n",
		"limits.yaml":     "{" + s.limits + "}\n",
		"policy.csv":      strings.Join(s.rows, "\n") + "\n",
	}
	if s.hooks != "" {
		files["callgate.yaml"] += "hooks: hooks.yaml\n"
		files["hooks.yaml"] = "hooks: " + s.hooks + "\n"
	}
	return facetest.Config(t, files)
}

func open(t *testing.T, s *story, kept func(*testing.T, func() time.Time) *store.Engine) *office {
	t.Helper()
	c := s.config(t)
	o := &office{t: t, rules: c.Rules(), now: time.Now().Truncate(time.Hour), sessions: map[string]session{}, editors: map[string]*acptest.Editor{}}
	ledger := kept(t, o.time)
	var secret *history.Secret // that all gateways have
	var keptCalls interface {
		calls.Store
		store.Approvals
	} = store.NewMemory(o.time)
	if s.run == callsBack {
		file, err := boltstore.Open(t.TempDir(), boltstore.Options{Now: o.time, Wait: time.Minute, UnkeyedInMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		keptCalls = file
	}
	o.Fixture = facetest.New(t, facetest.Options{
		Config: c,
		Engine: facetest.ToolFunc(func(c tool.Call) (tool.Result, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			switch {
			case s.run == callsBack:
				return tool.Result{Pending: true}, nil
			case s.run == asksFirst && c.Answers == nil:
				return tool.Result{InputRequired: &tool.InputRequired{Questions: []tool.Question{{Name: "who", Kind: "form", Method: "elicitation/create", Params: json.RawMessage(who)}}}}, refusal.New(refusal.ToolFailed, "It asks.")
			case o.step.fails:
				return tool.Result{}, refusal.New(refusal.ToolFailed, "It failed.")
			}
			return tool.Result{Body: []byte(cmp.Or(o.step.answers, `{}`)), JSON: true}, nil
		}),
		Change: func(g *gateway.Config, d *calls.Deps) {
			d.Shadow = o
			g.Identity, g.Limits.Threads, d.Ledger, d.Now, d.RecordContent = byName{}, c.Limits.Threads, ledger, o.time, audit.Arguments
			d.Store, d.Approvals, d.Secret = keptCalls, keptCalls, func() *history.Secret { return secret }
			d.Hooks = callout{}
		},
	})
	terms, _, err := o.Executor.Kernel.Config().Terms()
	if err != nil {
		t.Fatal(err)
	}
	keeping, err := ledger.KeepTerms(t.Context(), terms, nil)
	if err != nil {
		t.Fatal(err)
	}
	if secret, err = history.NewSecret([]byte(keeping.Key)); err != nil {
		t.Fatal(err)
	}
	o.mount(o.answer)
	return o
}

// mount gives the gateway its faces, before a model.
func (o *office) mount(answer http.HandlerFunc) {
	t := o.t
	t.Helper()
	model := httptest.NewServer(answer)
	t.Cleanup(model.Close)
	client := upstream.NewClient(upstream.Options{})
	t.Cleanup(client.Close)
	var models []upstream.Definition
	for _, wire := range []upstream.Wire{upstream.ChatWire, upstream.MessagesWire, upstream.ResponsesWire} {
		d := upstream.Defaults()
		d.Name, d.BaseURL, d.Retries = string(wire), model.URL, 0
		d.Models, d.Rules.Speaks = []upstream.Model{{ID: string(wire)}, {ID: string(wire) + ":online"}}, []upstream.Wire{wire}
		d.Rules.RequestMembers = []string{"web_search_options", "plugins", "novel", "seed"}
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
	for _, face := range app.ModelFaces(forModels) {
		face.Mount(o.Server)
	}
	oxp.New(oxp.Options{Executor: o.Executor, Log: o.Logger}).Mount(o.Server)
	callback.New(callback.Options{Executor: o.Executor, Verify: func(token string) string { return strings.TrimPrefix(token, "to-") }}).Mount(o.Server)
	o.mcp = mcp.New(mcp.Options{Executor: o.Executor, Version: "1"})
	o.mcp.Mount(o.Server)
	o.acp = acp.New(acp.Options{
		Turns: forModels, Wire: chat.Wire, Model: string(upstream.ChatWire), Folder: t.TempDir(), Version: "1", Logger: o.Logger,
		Accepted: func(wire.MCPServer) bool { return false },
	})
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
	headers = append(headers, o.headers...)
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
	single    bool   // one call a request, and no history
	session   bool   // the thread is a session: it came from no other
	process   bool   // and there is always one, of which the client brings no history
	asks      bool   // people, where the story allows
	run       string // of its tools; empty: {type: demo}
	send      func(o *office, s *step) *httptest.ResponseRecorder
}

// tells reports whether a story can be told this way.
func (w way) tells(s *story) bool {
	if w.run == asksFirst && s.unasked || w.asks && slices.ContainsFunc(s.rows, func(row string) bool { return strings.Contains(row, ", ask:") }) {
		return false
	}
	return !slices.ContainsFunc(s.steps, func(s step) bool {
		return w.single && len(s.calls) > 1 || (w.single || w.process) && s.brings != nil || w.handsOver && (s.fails || s.answers != "") || w.session && s.ancestors != "" || w.process && s.thread == ""
	})
}

func ways() []way {
	all := []way{
		{name: "native", single: true, send: sendNative},
		{name: "native, by a tool that calls back", single: true, run: callsBack, send: sendCalledBack},
		{name: "native, taken up once people allow it", single: true, asks: true, send: sendTakenUp},
		{name: "oxp", single: true, send: func(o *office, s *step) *httptest.ResponseRecorder {
			c := s.calls[0]
			return o.post(s, "/tools/call", `{"tool_id":"`+c.tool+`","input":`+c.arguments+`}`)
		}},
		{name: "mcp", single: true, send: func(o *office, s *step) *httptest.ResponseRecorder {
			return o.post(s, "/mcp", s.mcp(modern), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", s.calls[0].wire(), "Accept", "application/json, text/event-stream")
		}},
		{name: "mcp, by a tool that asks first", single: true, run: asksFirst, send: sendAnswered},
		{name: "mcp, in a session", single: true, session: true, send: sendInSession},
		{name: "mcp, in a process", single: true, session: true, process: true, send: sendToProcess},
		{name: "acp", session: true, process: true, send: sendToAgent},
	}
	if app.Has(configs.ACPProxy) {
		all = append(all, way{name: "acp, by the proxy", single: true, session: true, process: true, handsOver: true, send: sendToProxy})
	}
	for _, w := range []struct {
		wire upstream.Wire
		path string
		body func(*step) string
	}{{upstream.ChatWire, "/v1/chat/completions", chatRequest}, {upstream.MessagesWire, "/v1/messages", messagesRequest}, {upstream.ResponsesWire, "/v1/responses", responsesRequest}} {
		if !app.Speaks(w.wire) {
			continue
		}
		for _, mode := range []upstream.Mode{upstream.Enforce, upstream.Orchestrate} {
			for _, how := range []string{"whole", "streamed"} {
				head := fmt.Sprintf(`{"model":%q,"stream":%t,`, w.wire, how == "streamed")
				all = append(all, way{name: string(w.wire) + ", " + string(mode) + ", " + how, handsOver: mode == upstream.Enforce, send: func(o *office, s *step) *httptest.ResponseRecorder {
					return o.post(s, w.path, head+w.body(s), "Callgate-Mode", string(mode))
				}})
			}
		}
	}
	return all
}

// How the tools of a way run: they answer in a message of their own, or ask a question before.
const (
	callsBack = `{type: callback, url: "http://127.0.0.1:9/invoke", tool: do, timeout: 1ms, max_age: 1h}`
	asksFirst = `{type: mcp, url: "http://127.0.0.1:9/mcp", tool: do, input_requests: [form]}`
	who       = `{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`
)

func sendNative(o *office, s *step) *httptest.ResponseRecorder {
	c := s.calls[0]
	return o.post(s, "/v1/calls", `{"tool":{"name":"`+c.tool+`","arguments":`+c.arguments+`}}`, "Content-Type", "text/plain")
}

// sendCalledBack sends a step whose tool answers by its callback.
func sendCalledBack(o *office, s *step) *httptest.ResponseRecorder {
	w := sendNative(o, s)
	if w.Code == http.StatusAccepted {
		id, text := w.Header().Get("Callgate-Call-Id"), cmp.Or(s.answers, "{}")
		if s.fails {
			text = "Error: it failed."
		}
		group := cmp.Or(threads.Group(store.Scope{Principal: s.by, Workspace: "acme", Project: "alpha"}, s.thread), id)
		if answered := o.post(&step{by: s.by}, "/v1/callbacks/to-"+id, `{"type":"tool_result","id":"`+id+`","group_id":"`+group+`","text":`+quoted(text)+`}`); answered.Code != http.StatusOK {
			o.t.Errorf("line %d: %d %s", s.line, answered.Code, answered.Body)
		}
	}
	return w
}

// sendTakenUp sends a step that people have to allow, lets them, and has it taken up by a request that names no thread.
func sendTakenUp(o *office, s *step) *httptest.ResponseRecorder {
	w := sendNative(o, s)
	if w.Code != http.StatusAccepted {
		return w
	}
	id := o.allow(w)
	return o.post(&step{by: s.by}, "/v1/calls/"+id+"/resume", "")
}

// allow lets people allow the call of an answer, and returns its id.
func (o *office) allow(w *httptest.ResponseRecorder) (id string) {
	id = w.Header().Get("Callgate-Call-Id")
	a, err := o.Executor.Desk().Get(o.t.Context(), id)
	if err == nil {
		_, err = o.Executor.Desk().Vote(o.t.Context(), approval.Voter{Principal: "zoe", Approves: []string{"one"}}, id, approvals.Ballot{Yes: true, Digest: a.Digest})
	}
	if err != nil {
		o.t.Errorf("%v: %s", err, w.Body)
	}
	return id
}

// sendAnswered sends a step whose tool asks a question, and answers it.
func sendAnswered(o *office, s *step) *httptest.ResponseRecorder {
	send := func(more string) *httptest.ResponseRecorder {
		asked := strings.Replace(modern, `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1)
		return o.post(s, "/mcp", s.mcp(asked+more), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", s.calls[0].wire(), "Accept", "application/json, text/event-stream")
	}
	w := send("")
	var answer struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		o.t.Errorf("line %d: %v: %s", s.line, err, w.Body)
	}
	if state := answer.Result.RequestState; state != "" {
		return send(`,"requestState":` + quoted(state) + `,"inputResponses":{"who":{"action":"accept","content":{"name":"ann"}}}`)
	}
	return w
}

// modern is what a request of MCP of the newest revision has.
const modern = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// mcp is the step as a request, with more parameters.
func (s *step) mcp(more string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + s.calls[0].wire() + `","arguments":` + s.calls[0].arguments + more + `}}`
}

// session is one of MCP or ACP: its id, or the streams of its process.
type session struct {
	id  string
	in  io.Writer
	out *bufio.Reader
}

// sendInSession sends a step in the session that stands for its thread, and not its name; without a thread there is no session.
func sendInSession(o *office, s *step) *httptest.ResponseRecorder {
	unnamed, version := *s, []string{"Mcp-Protocol-Version", "2025-11-25", "Accept", "application/json, text/event-stream"}
	unnamed.thread = ""
	name := s.by + "/" + s.thread
	if s.thread != "" && o.sessions[name].id == "" {
		w := o.post(&unnamed, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, version[2:]...)
		o.sessions[name] = session{id: w.Header().Get("Mcp-Session-Id")}
	}
	if id := o.sessions[name].id; id != "" {
		version = append(version, "Mcp-Session-Id", id)
	}
	return o.post(&unnamed, "/mcp", s.mcp(""), version...)
}

// serve runs a process of a principal, and returns the streams of its client.
func (o *office) serve(by string, face func(context.Context, gateway.Request, io.Reader, io.Writer) error) (io.Reader, io.Writer) {
	in, write := io.Pipe()
	read, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- face(context.Background(), gateway.Request{Credential: by}, in, out)
		_ = out.Close()
	}()
	o.t.Cleanup(func() {
		_ = write.Close()
		if err := <-ended; err != nil {
			o.t.Error(err)
		}
	})
	return read, write
}

// sendToAgent sends a step as a prompt in the session that stands for its thread.
func sendToAgent(o *office, s *step) *httptest.ResponseRecorder {
	editor := o.editors[s.by]
	if editor == nil {
		in, out := o.serve(s.by, o.acp.Serve)
		editor = acptest.NewEditor(o.t, in, out)
		editor.Initialize(json.RawMessage(`{}`))
		o.editors[s.by] = editor
	}
	name := s.by + "/" + s.thread
	if o.sessions[name].id == "" {
		o.sessions[name] = session{id: editor.Session("/w")}
	}
	w := httptest.NewRecorder()
	if result, err := editor.Ask("session/prompt", acptest.TextPrompt(o.sessions[name].id, "hi")); err != nil {
		w.Body.WriteString(err.Error())
	} else {
		w.Body.Write(result)
	}
	return w
}

// sendToProxy sends a step to an agent behind the proxy, which asks for the permission to make its call.
func sendToProxy(o *office, s *step) *httptest.ResponseRecorder {
	editor := o.editors[s.by]
	if editor == nil {
		toAgent, agentIn := io.Pipe()
		fromAgent, agentOut := io.Pipe()
		opened := 0
		var agent *acptest.Peer
		agent = acptest.NewPeer(o.t, toAgent, agentOut, map[string]acptest.Handler{
			"initialize": func(json.RawMessage) (any, *acptest.Error) {
				return json.RawMessage(`{"protocolVersion":1,"agentCapabilities":{}}`), nil
			},
			"session/new": func(json.RawMessage) (any, *acptest.Error) {
				opened++
				return map[string]string{"sessionId": fmt.Sprint("s", opened)}, nil
			},
			"session/prompt": func(params json.RawMessage) (any, *acptest.Error) {
				var in struct{ SessionID string }
				_ = json.Unmarshal(params, &in)
				o.mu.Lock()
				c := o.step.calls[0]
				o.mu.Unlock()
				answer, err := agent.Ask("session/request_permission", json.RawMessage(`{"sessionId":`+quoted(in.SessionID)+`,"toolCall":{"toolCallId":"c`+fmt.Sprint(len(o.Journal.Records()))+`","title":"Do","name":"`+c.tool+`","rawInput":`+c.arguments+
					`},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}`))
				o.mu.Lock()
				defer o.mu.Unlock()
				if o.permits = string(answer); err != nil {
					o.permits = err.Error()
				}
				return map[string]string{"stopReason": "end_turn"}, nil
			},
		})
		in, out := o.serve(s.by, func(ctx context.Context, r gateway.Request, in io.Reader, out io.Writer) error {
			return app.RelayACP(ctx, acp.ProxyOptions{Executor: o.Executor, Request: r, Log: o.Logger, ProxySettings: acp.ProxySettings{Unjudged: acp.Cancel},
				MCPServer: wire.MCPServer{Transport: wire.Stdio, Name: "callgate", Command: "/bin/callgate"}}, acp.Agent{
				Out: fromAgent, In: agentIn, Kill: func() { _ = agentIn.Close(); _ = agentOut.Close(); agent.Done() },
			}, in, out)
		})
		editor = acptest.NewEditor(o.t, in, out)
		editor.Initialize(nil)
		o.editors[s.by] = editor
	}
	name := s.by + "/" + s.thread
	if o.sessions[name].id == "" {
		o.sessions[name] = session{id: editor.Session("/w")}
	}
	editor.Prompt(o.sessions[name].id, "hi")
	w := httptest.NewRecorder()
	o.mu.Lock()
	defer o.mu.Unlock()
	w.Body.WriteString(o.permits)
	return w
}

// sendToProcess sends a step to the process that stands for its thread.
func sendToProcess(o *office, s *step) *httptest.ResponseRecorder {
	name := s.by + "/" + s.thread
	to, there := o.sessions[name]
	if !there {
		read, write := o.serve(s.by, o.mcp.Stdio)
		to = session{in: write, out: bufio.NewReader(read)}
		o.sessions[name] = to
	}
	w := httptest.NewRecorder()
	if _, err := io.WriteString(to.in, s.mcp(modern)+"\n"); err != nil {
		o.t.Error(err)
	}
	line, err := to.out.ReadString('\n')
	if err != nil {
		o.t.Error(err)
	}
	w.Body.WriteString(line)
	return w
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
	said := []string{`{"role":"user","content":` + quoted("hi"+s.asks) + `}`}
	for i, c := range s.brings {
		said = append(said, fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":"h%d","type":"function","function":{"name":%q,"arguments":%s}}]}`, i, c.wire(), quoted(c.arguments)),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"h%d","content":%s}`, i, quoted(c.result)))
	}
	return `"messages":[` + strings.Join(said, ",") + `],"tools":[` + s.tools(`{"type":"function","function":{"name":%q}}`) + `]}`
}

func messagesRequest(s *step) string {
	said := []string{`{"role":"user","content":` + quoted("hi"+s.asks) + `}`}
	for i, c := range s.brings {
		said = append(said, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"h%d","name":%q,"input":%s}]}`, i, c.wire(), c.arguments),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"h%d","content":%s}]}`, i, quoted(c.result)))
	}
	return `"max_tokens":9,"messages":[` + strings.Join(said, ",") + `],"tools":[` + s.tools(`{"name":%q,"input_schema":{"type":"object"}}`) + `]}`
}

func responsesRequest(s *step) string {
	said := []string{`{"role":"user","content":` + quoted("hi"+s.asks) + `}`}
	for i, c := range s.brings {
		said = append(said, fmt.Sprintf(`{"type":"function_call","call_id":"h%d","name":%q,"arguments":%s}`, i, c.wire(), quoted(c.arguments)),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"h%d","output":%s}`, i, quoted(c.result)))
	}
	return `"input":[` + strings.Join(said, ",") + `],"tools":[` + s.tools(`{"type":"function","name":%q,"parameters":{"type":"object"}}`) + `]}`
}

// answer is the model: it makes the calls of the step once, and answers with a text from then on.
func (o *office) answer(w http.ResponseWriter, r *http.Request) {
	var request struct{ Stream bool }
	_ = json.NewDecoder(r.Body).Decode(&request)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.first) > 0 {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, o.first[0])
		o.first = o.first[1:]
		return
	}
	var made []call
	if o.asked++; o.asked == 1 {
		made = o.step.calls
	}
	write(w, r.URL.Path, request.Stream, made)
}

// write writes an answer that makes calls, or says a text.
func write(w http.ResponseWriter, path string, stream bool, made []call) {
	whole, events := answerOf[path[strings.LastIndex(path, "/"):]](made)
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range events {
		_, _ = io.WriteString(w, event+"\n\n")
	}
}

// answerOf are answers that make calls, or say a text, by the end of the path: whole, and as the events of a stream.
var answerOf = map[string]func([]call) (whole string, events []string){
	"/completions": func(made []call) (string, []string) {
		message, reason := `{"role":"assistant","content":"Done."}`, "stop"
		if made != nil {
			var parts []string
			for i, c := range made {
				parts = append(parts, fmt.Sprintf(`{"index":%d,"id":"call_%d","type":"function","function":{"name":%q,"arguments":%s}}`, i, i, c.wire(), quoted(c.arguments)))
			}
			message, reason = `{"role":"assistant","content":null,"tool_calls":[`+strings.Join(parts, ",")+`]}`, "tool_calls"
		}
		said := func(kind, member string) string {
			return `{"id":"c","object":"chat.completion` + kind + `","created":7,"model":"m","choices":[{"index":0,"` + member + `":` + message + `,"finish_reason":"` + reason + `"}]}`
		}
		return said("", "message"), []string{"data: " + said(".chunk", "delta"), "data: [DONE]"}
	},
	"/messages": func(made []call) (string, []string) {
		const head = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[`
		stopped := func(reason string) string { return `"stop_reason":` + reason + `,"stop_sequence":null` }
		usage := `"usage":{"input_tokens":1,"output_tokens":1}`
		events := []string{`{"type":"message_start","message":` + head + `],` + stopped("null") + "," + usage + `}}`}
		var parts []string
		add := func(begun, delta, part string) {
			at := fmt.Sprintf(`"index":%d`, len(parts))
			parts = append(parts, part)
			events = append(events, `{"type":"content_block_start",`+at+`,"content_block":`+begun+`}`, `{"type":"content_block_delta",`+at+`,"delta":`+delta+`}`, `{"type":"content_block_stop",`+at+`}`)
		}
		reason := `"tool_use"`
		for i, c := range made {
			part := fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":%q,"input":`, i, c.wire())
			add(part+`{}}`, `{"type":"input_json_delta","partial_json":`+quoted(c.arguments)+`}`, part+c.arguments+`}`)
		}
		if made == nil {
			reason = `"end_turn"`
			add(`{"type":"text","text":""}`, `{"type":"text_delta","text":"Done."}`, `{"type":"text","text":"Done."}`)
		}
		events = append(events, `{"type":"message_delta","delta":{`+stopped(reason)+`},`+usage+`}`, `{"type":"message_stop"}`)
		for i, e := range events {
			events[i] = "event: " + strings.Split(e, `"`)[3] + "\ndata: " + e
		}
		return head + strings.Join(parts, ",") + `],` + stopped(reason) + "," + usage + `}`, events
	},
	"/responses": func(made []call) (string, []string) {
		const head = `"object":"response","created_at":7,"model":"m","id":"resp_1","status":`
		events := []string{`"response.created","response":{` + head + `"in_progress","output":[]}}`}
		var parts []string
		add := func(begun, piece, part string) {
			at := fmt.Sprintf(`"output_index":%d`, len(parts))
			parts = append(parts, part)
			events = append(events, `"response.output_item.added",`+at+`,"item":`+begun+`}`, strings.Replace(piece, "AT", at, 1), `"response.output_item.done",`+at+`,"item":`+part+`}`)
		}
		for i, c := range made {
			part := func(status, arguments string) string {
				return fmt.Sprintf(`{"id":"fc_%d","type":"function_call","status":%q,"call_id":"call_%d","name":%q,"arguments":%s}`, i, status, i, c.wire(), quoted(arguments))
			}
			add(part("in_progress", ""), fmt.Sprintf(`"response.function_call_arguments.delta","item_id":"fc_%d",AT,"delta":%s}`, i, quoted(c.arguments)), part("completed", c.arguments))
		}
		if made == nil {
			const part = `{"id":"msg_1","type":"message","role":"assistant","status":`
			add(part+`"in_progress","content":[]}`, `"response.output_text.delta","item_id":"msg_1",AT,"content_index":0,"delta":"Done."}`, part+`"completed","content":[{"type":"output_text","annotations":[],"text":"Done."}]}`)
		}
		whole := `{` + head + `"completed","output":[` + strings.Join(parts, ",") + `]}`
		events = append(events, `"response.completed","response":`+whole+`}`)
		for i, e := range events {
			events[i] = fmt.Sprintf(`data: {"sequence_number":%d,"type":%s`, i, e)
		}
		return whole, events
	},
}

// tell brings a step to the gateway, and returns the codes of its calls; of one refused, that alone.
func (o *office) tell(w way, s *step) (codes []string, answer *httptest.ResponseRecorder) {
	o.mu.Lock()
	o.step, o.asked, o.now = s, 0, o.now.Add(s.later+time.Millisecond)
	o.mu.Unlock()
	before := len(o.Journal.Records())
	o.Journal.SetFailing(s.unlogged)
	answer = w.send(o, s)
	o.Journal.SetFailing(false)
	if err := o.Executor.Kernel.Flush(o.t.Context()); err != nil {
		o.t.Error(err)
	}
	for _, r := range o.Journal.Records()[before:] {
		if r.Event == audit.Decision && r.Tool != "" {
			codes = append(codes, string(r.Code))
		}
	}
	if (w.asks || w.run == asksFirst) && len(codes) > 1 {
		codes = codes[1:] // it was asked about
	}
	return codes, answer
}

// TestWhatNobodyJudgedLabels: what a model may have read without a call that was judged here labels its thread before its
// next call, wherever and in whatever shape that came.
func TestWhatNobodyJudgedLabels(t *testing.T) {
	s := &story{rows: []string{`p, Analyst, *, files.write, "'untrusted' in thread.labels", deny`, "p, Analyst, *, *, , allow"}}
	write := step{calls: []call{{tool: "files.write", arguments: `{"path":"a"}`}}, thread: "t", by: "ada"}
	const (
		completed = `{"id":"resp_0","object":"response","created_at":7,"status":"completed","model":"m","output":[`
		searched  = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"a"}}`
		asks      = `{"id":"mcpr_1","type":"mcp_approval_request","server_label":"docs","name":"read","arguments":"{}"}`
		says      = `{"id":"msg_0","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"Hi."}]}`
		function  = `{"type":"function","name":"files_write","parameters":{"type":"object"}}`
		offers    = `,"tools":[` + function + `]`
		kept      = `"previous_response_id":"resp_0",`
		inChat    = `"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"files_write"}}]`
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
		"a search by a member of chat":   {upstream.ChatWire, "", `"web_search_options":{},` + inChat, nil},
		"a plugin by a member of chat":   {upstream.ChatWire, "", `"plugins":[{"id":"web"}],` + inChat, nil},
		"a model of chat that searches":  {upstream.ChatWire + ":online", "", inChat, nil},
		"a member that nobody knows":     {upstream.MessagesWire, "", `"novel":1,` + inMessages(`{"role":"user","content":"hi"}`), nil},
		"a block of an unknown type":     {upstream.MessagesWire, "", inMessages(`{"role":"user","content":[{"type":"novel"},{"type":"text","text":"hi"}]}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if test.wire == upstream.ResponsesWire && !app.Speaks(test.wire) {
				t.Skip("skipped: this program has no face of OpenAI Responses")
			}
			o := open(t, s, inMemory)
			path, mode := "/v1/responses", []string{"Callgate-Mode", string(upstream.Enforce)}
			switch {
			case test.wire == upstream.MessagesWire:
				path = "/v1/messages"
			case test.wire != upstream.ResponsesWire:
				path = "/v1/chat/completions"
			}
			o.first, o.step = test.first, &write
			send := func(body string) func(*office, *step) *httptest.ResponseRecorder {
				return func(o *office, s *step) *httptest.ResponseRecorder {
					return o.post(s, path, fmt.Sprintf(`{"model":%q,`, test.wire)+body+`}`, mode...)
				}
			}
			if test.before != "" {
				elsewhere := write
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
		onTime := slices.DeleteFunc(stories, func(s *story) bool { return s.clocked })
		tellAll(t, onTime, sharedOn(redistest.Start(t).Address()))
	})
}

func tellAll(t *testing.T, stories []*story, kept func(*testing.T, func() time.Time) *store.Engine) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			for _, w := range ways() {
				if !w.tells(s) {
					continue
				}
				told := *s
				if told.run = w.run; w.asks {
					told.rows = strings.Split(strings.ReplaceAll(strings.Join(s.rows, "\n"), ", allow", ", ask:one"), "\n")
				}
				o := open(t, &told, kept)
				for i := range s.steps {
					st := &s.steps[i]
					var want []string
					for range st.calls {
						if !st.unlogged {
							want = append(want, st.code)
						}
					}
					got, answer := o.tell(w, st)
					if st.code == string(refusal.ThreadRequired) && !w.single { // the model is not asked
						if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), st.code) || o.asked > 0 || len(got) > 0 {
							t.Errorf("%s, line %d: %d, asked %d times, %q: %s", w.name, st.line, answer.Code, o.asked, got, answer.Body)
						}
						continue
					}
					if w.single && !strings.Contains(answer.Body.String(), cmp.Or(st.says, st.code)) {
						t.Errorf("%s, line %d: %s", w.name, st.line, answer.Body)
					}
					if !slices.Equal(got, want) {
						t.Errorf("%s, line %d: %q, want %q: %s", w.name, st.line, got, want, answer.Body)
					}
				}
				// The log does not say which call of an answer was refused, nor that a call answers what its tool has asked, and
				// hooks are not asked again.
				if w.run != asksFirst && !slices.ContainsFunc(s.steps, func(s step) bool {
					return s.code != "" && len(s.calls) > 1 || s.unlogged || s.code == string(refusal.HookDenied)
				}) {
					o.replay(w.name)
				}
			}
		})
	}
}

// replay judges the calls of the story again: on what their threads had done, each comes out as it did.
func (o *office) replay(way string) {
	replay, err := lab.NewReplay(o.rules, nil, nil, lab.Log{Idle: 7 * 24 * time.Hour, KeepLabels: 30 * 24 * time.Hour})
	if err != nil {
		o.t.Fatal(err)
	}
	for _, r := range o.Journal.Records() {
		if err := replay.Add(o.t.Context(), &r); err != nil {
			o.t.Fatal(err)
		}
	}
	for _, g := range replay.Groups() {
		o.t.Errorf("%s: replayed: %+v", way, g)
	}
	if s := replay.Summary(); len(s.Undecided) > 0 {
		o.t.Errorf("%s: not replayed: %v", way, s.Undecided)
	}
}

// TestOtherSpellingsOfAThread: what names the thread of a request in a way that could be read as two threads, or as none, is
// refused on every face, and nothing is judged.
func TestOtherSpellingsOfAThread(t *testing.T) {
	s := &story{rows: []string{`p, Analyst, *, files.write, "'untrusted' in thread.labels", deny`, "p, Analyst, *, *, , allow"}}
	var many []string
	for i := range 1000 {
		many = append(many, strconv.Itoa(i))
	}
	for name, headers := range map[string][]string{
		"an underscore":             {"Callgate_thread", "u"},
		"an unknown header":         {"Callgate-Threads", "u"},
		"a longer name":             {"Callgate-Thread", strings.Repeat("u", 1025)},
		"no text":                   {"Callgate-Thread", "\xff"},
		"a thousand ancestors":      {"Callgate-Thread-Ancestors", strings.Join(many, ",")},
		"an ancestor without name":  {"Callgate-Thread-Ancestors", ",root"},
		"an ancestor twice":         {"Callgate-Thread-Ancestors", "root,root"},
		"the thread as an ancestor": {"Callgate-Thread-Ancestors", "root,t"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, w := range ways() {
				if w.session {
					continue // its thread has no name
				}
				o := open(t, s, inMemory)
				o.headers = headers
				got, answer := o.tell(w, &step{calls: []call{{tool: "files.write", arguments: `{"path":"a"}`}}, thread: "t", by: "ada"})
				if answer.Code != http.StatusBadRequest || len(got) > 0 || o.asked > 0 {
					t.Errorf("%s: %d, %q: %s", w.name, answer.Code, got, answer.Body)
				}
			}
		})
	}
}

// TestARepeatInAnotherThread: the stored result of a call that adds labels enters no thread that has not got them; that
// of a call that uses no threads is for all.
func TestARepeatInAnotherThread(t *testing.T) {
	o := open(t, &story{rows: []string{`p, Analyst, *, files.write, "'untrusted' in thread.labels", deny`, "p, Analyst, *, *, , allow"}}, inMemory)
	native := ways()[0]
	for _, c := range []struct {
		tool, thread, ancestors, code string
	}{
		{"web.fetch", "c", "", ""}, {"web.fetch", "c", "", ""}, {"web.fetch", "d", "", "idempotency_conflict"},
		{"web.fetch", "c", "root", "idempotency_conflict"}, {"web.fetch", "d", "c", ""},
		{"clock.now", "c", "", ""}, {"clock.now", "d", "", ""},
	} {
		o.headers = []string{"Idempotency-Key", c.tool}
		_, answer := o.tell(native, &step{calls: []call{{tool: c.tool, arguments: `{}`}}, thread: c.thread, ancestors: c.ancestors, by: "ada"})
		if conflict := strings.Contains(answer.Body.String(), "idempotency_conflict"); conflict != (c.code != "") || !conflict && answer.Code != http.StatusOK {
			t.Errorf("%+v: %d %s", c, answer.Code, answer.Body)
		}
	}
	o.headers = nil
	if got, answer := o.tell(native, &step{calls: []call{{tool: "files.write", arguments: `{"path":"a"}`}}, thread: "d", by: "ada"}); !slices.Equal(got, []string{""}) {
		t.Errorf("the thread is labelled: %s", answer.Body)
	}
}

// TestAllowedLater: a call that people allow is judged again in the thread from which its own came, by what that has done
// meanwhile, although the request that takes it up names no thread.
func TestAllowedLater(t *testing.T) {
	o := open(t, &story{rows: []string{`p, Analyst, *, pay.refund, "thread.calls('pay.refund') <= 1 && !('untrusted' in thread.labels)", ask:one`, "p, Analyst, *, web.fetch, , allow"}}, inMemory)
	native := way{asks: true, send: sendNative}
	var ids []string
	for i, of := range [][2]string{{"child", "root"}, {"root", ""}, {"other", ""}, {"child", "other"}} {
		_, w := o.tell(native, &step{calls: []call{{tool: "pay.refund", arguments: fmt.Sprintf(`{"amount":%d,"currency":"EUR"}`, i)}}, thread: of[0], ancestors: of[1], by: "ada"})
		ids = append(ids, o.allow(w))
	}
	fetch := &step{calls: []call{{tool: "web.fetch", arguments: `{"url":"https://a.example/"}`}}, thread: "other", by: "ada"}
	if got, w := o.tell(native, fetch); !slices.Equal(got, []string{""}) {
		t.Errorf("%q %s", got, w.Body)
	}
	for i, want := range []string{"", string(refusal.PermissionDenied), string(refusal.PermissionDenied), string(refusal.PermissionDenied)} {
		got, w := o.tell(way{send: func(o *office, s *step) *httptest.ResponseRecorder {
			return o.post(s, "/v1/calls/"+ids[i]+"/resume", "")
		}}, &step{by: "ada"})
		if !slices.Equal(got, []string{want}) {
			t.Errorf("call %d: %q, want %q: %s", i, got, want, w.Body)
		}
	}
}

// TestTwoAtOnce: of two payments at two gateways, which would together go beyond a bound, one passes.
func TestTwoAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		story   story
		threads [2]string
		refused refusal.Code
	}{
		"a sum":       {story{rows: []string{`p, Analyst, *, pay.refund, "thread.sum('pay.refund', 'amount') <= 500", allow`}}, [2]string{"t", "t"}, refusal.PermissionDenied},
		"calls":       {story{rows: []string{"p, Analyst, *, *, , allow"}, limits: "threads: {calls: 1}"}, [2]string{"t", "t"}, refusal.ThreadLimit},
		"equal calls": {story{rows: []string{"p, Analyst, *, *, , allow"}, limits: "threads: {equal: {calls: 1}}"}, [2]string{"t", "t"}, refusal.LoopDetected},
		"new threads": {story{rows: []string{"p, Analyst, *, *, , allow"}, limits: "threads: {new: 1/h}"}, [2]string{"t", "u"}, refusal.ThreadLimit},
	} {
		t.Run(name, func(t *testing.T) { twoAtOnce(t, &test.story, test.threads, string(test.refused)) })
	}
}

func twoAtOnce(t *testing.T, s *story, threads [2]string, refused string) {
	twice := func(t *testing.T, ledgers func(t *testing.T, n int) [2]*store.Engine) {
		for n, w := range ways() {
			if w.session || s.limits != "" && n > 0 {
				continue // each would be a thread of its own, or one face has told it
			}
			var codes [2][]string
			var both sync.WaitGroup
			for i, ledger := range ledgers(t, n) {
				o := open(t, s, func(*testing.T, func() time.Time) *store.Engine { return ledger })
				both.Go(func() {
					codes[i], _ = o.tell(w, &step{calls: []call{{tool: "pay.refund", arguments: `{"amount":300,"currency":"EUR"}`}}, thread: threads[i], by: "ada"})
				})
			}
			both.Wait()
			all := slices.Concat(codes[0], codes[1])
			if slices.Sort(all); !slices.Equal(all, []string{"", refused}) {
				t.Errorf("%s: %q", w.name, codes)
			}
		}
	}
	t.Run("memory", func(t *testing.T) {
		twice(t, func(t *testing.T, _ int) [2]*store.Engine {
			one := inMemory(t, time.Now)
			return [2]*store.Engine{one, one}
		})
	})
	t.Run("redis", func(t *testing.T) {
		if testing.Short() {
			t.Skip("short: two requests at one gateway alone")
		}
		redistest.Require(t)
		address := redistest.Start(t).Address()
		twice(t, func(t *testing.T, n int) [2]*store.Engine {
			prefix := fmt.Sprintf("p%d:", n)
			return [2]*store.Engine{onRedis(t, address, prefix, "a").Engine, onRedis(t, address, prefix, "b").Engine}
		})
	})
}
