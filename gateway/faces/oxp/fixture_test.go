package oxp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/oxp"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/tool"
)

func TestMain(m *testing.M) { facetest.Main(m) }

// fakeTool is an engine of one tool, which is asked about authorizations too.
type fakeTool struct {
	mu       sync.Mutex
	tasks    []tool.Call
	run      func(tool.Call) (tool.Result, error)
	requests []string
	// status is what it says of an authorization.
	status func() (string, error)
}

func (e *fakeTool) Run(_ context.Context, t tool.Call) (tool.Result, error) {
	e.mu.Lock()
	e.tasks = append(e.tasks, t)
	run := e.run
	e.mu.Unlock()
	return run(t)
}

func (e *fakeTool) Authorization(_ context.Context, run tool.Run, address string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, run.Type+" "+address)
	return e.status()
}

// ran are the tasks so far.
func (e *fakeTool) ran() []tool.Call {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]tool.Call(nil), e.tasks...)
}

func (e *fakeTool) gives(run func(tool.Call) (tool.Result, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.run = run
}

func value(body string) func(tool.Call) (tool.Result, error) {
	return func(tool.Call) (tool.Result, error) { return tool.Result{Body: []byte(body), JSON: true}, nil }
}

func fails(err error) func(tool.Call) (tool.Result, error) {
	return func(tool.Call) (tool.Result, error) { return tool.Result{}, err }
}

// fixture is a face with all that stands behind it.
type fixture struct {
	*facetest.Fixture
	t       testing.TB
	tool    *fakeTool
	log     *bytes.Buffer
	schema  *corpora.Components
	unready error
}

const tools = `tools:
  - {name: web.search, version: 1.9.0, effect: read, description: "The old search.", input_schema: {type: object, required: [old], properties: {old: {type: string}}}, run: {type: demo}}
  - {name: web.search, version: 1.10.0, effect: read, description: "Searches.", input_schema: {type: object, required: [query], properties: {query: {type: string, maxLength: 20}, n: {type: integer}, "a/b~c": {type: integer}, deep: {type: object, properties: {x: {type: integer}}}, site: {type: string, x-boundary: host}}}, output_schema: {type: object}, run: {type: demo}}
  - {name: web.search, version: 1.0.0, effect: read, input_schema: {type: object}, run: {type: demo}}
  - {name: data, effect: read, input_schema: {type: object}, run: {type: demo}}
  - {name: files.read-all.now, version: 2.0.0, effect: once, input_schema: {type: object}, run: {type: demo}}
  - {name: app.run, version: 1.0.0, input_schema: {type: object}, run: {type: client}}
  - {name: odd.beta, version: 2.0.0-beta.1, input_schema: {type: object}, run: {type: demo}}
  - {name: pay.refund, version: 1.0.0, input_schema: {type: object, required: [secret], properties: {secret: {type: string}}}, run: {type: demo}}
  - {name: lone.null, version: 1.0.0, input_schema: {type: object}, output_schema: {type: "null"}, run: {type: demo}}
`

// open builds a fixture of some tools, as it may be changed.
func open(t testing.TB, change func(*gateway.Config, *calls.Deps)) *fixture {
	t.Helper()
	return openWith(t, tools, change)
}

func openWith(t testing.TB, tools string, change func(*gateway.Config, *calls.Deps)) *fixture {
	t.Helper()
	c := facetest.Config(t, map[string]string{
		"tools.yaml":      tools,
		"policy.csv":      "p, Analyst, *, *, , allow\np, Analyst, *, pay.*, , deny\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], hosts: [example.com]}}}}\n",
	})
	h := &fixture{t: t, log: &bytes.Buffer{}, tool: &fakeTool{run: value(`{"n":1}`)}, schema: corpora.OpenAPI(t, "oxp", "openapi-header-version.json")}
	h.Fixture = facetest.New(t, facetest.Options{Config: c, Engine: h.tool, Change: change, Log: h.log})
	oxp.New(oxp.Options{
		Executor: h.Executor, Log: h.Logger, CheckReady: func() error { return h.unready }, URL: func() string { return "https://gate.example" },
	}).Mount(h.Server)
	return h
}

// reply is an answer, taken apart.
type reply struct {
	status int
	header http.Header
	raw    string

	CallID   string          `json:"call_id"`
	Success  *bool           `json:"success"`
	Duration *float64        `json:"duration"`
	Value    json.RawMessage `json:"value"`
	Error    *problem        `json:"error"`
	problem
}

type problem struct {
	Code, Stage, Message string
	CanRetry             *bool             `json:"can_retry"`
	After                int64             `json:"retry_after_ms"`
	Parameters           map[string]string `json:"parameter_errors"`
	DidYouMean           []string          `json:"did_you_mean"`
	Missing              struct {
		Authorization []json.RawMessage `json:"authorization"`
	} `json:"missing_requirements"`
}

// code is the code of an error of any class.
func (r reply) code() string {
	if r.Error != nil {
		return r.Error.Code
	}
	return r.problem.Code
}

// ask sends a request, and holds the answer against the protocol's schemas.
func (h *fixture) ask(method, path, body string, headers ...string) reply {
	h.t.Helper()
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	r := reply{status: w.Code, header: w.Header(), raw: w.Body.String()}
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		h.t.Fatalf("%s %s: %d %s: %v", method, path, w.Code, w.Body, err)
	}
	component := map[int]string{200: "CallToolResponse", 422: "ValidationErrorResponse"}[w.Code]
	if component == "" {
		component = "ServerErrorResponse"
	}
	if path != "/tools/call" && w.Code == 200 {
		component = ""
	}
	if component != "" && path != "/health" {
		if err := h.schema.Check(component, w.Body.Bytes()); err != nil {
			h.t.Errorf("%s: %v", w.Body, err)
		}
	}
	if w.Header().Get("OXP-Version") != "1.0" || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		h.t.Errorf("%s %s: %v", method, path, w.Header())
	}
	return r
}

func (h *fixture) call(body string, headers ...string) reply {
	h.t.Helper()
	return h.ask(http.MethodPost, "/tools/call", body, append([]string{"Content-Type", "application/json"}, headers...)...)
}
