package native_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/door"
	"github.com/callgate/callgate/gateway/native"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/corpora"
	"github.com/callgate/callgate/internal/leaks"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/telemetry"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// paper is a journal that forgets.
type paper struct{}

func (paper) Append(context.Context, audit.Record) error { return nil }

// tool is an engine of one tool.
type tool func(gateway.Task) (gateway.Output, error)

func (f tool) Run(_ context.Context, t gateway.Task) (gateway.Output, error) { return f(t) }

// broken breaks off whatever it is asked.
type broken struct{}

func (broken) Authenticate(string) *identity.Principal { panic("broken") }

// faceOf is a door with a face of the vectors' configuration without limits, as it may be
// changed.
func faceOf(t testing.TB, log io.Writer, change func(*gateway.State, *gateway.Parts)) *door.Door {
	t.Helper()
	c, err := configs.Load(corpora.Testdata("vectors", "config", "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	state := &gateway.State{
		Output: c.Output, Tools: c.Tools, Policy: c.Access, Spaces: c.Workspaces, Agents: c.Agents,
		Limits: &ratelimit.Limits{Replicas: 1}, Defaults: gateway.Subject(c.Defaults), Digest: c.Digest,
	}
	parts := gateway.Parts{
		Limiter: ratelimit.NewLocal(time.Now), Journal: paper{}, Store: store.NewMemory(time.Now),
		Engine: tool(func(gateway.Task) (gateway.Output, error) {
			return gateway.Output{Body: []byte(`{"ok":true}`), JSON: true}, nil
		}),
	}
	if change != nil {
		change(state, &parts)
	}
	k, err := gateway.New(state, parts)
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewJSONHandler(log, nil))
	d := door.New(door.Options{Metrics: telemetry.New(), Log: logger, Refuse: native.Refuse})
	native.New(native.Options{Kernel: k, Log: logger}).Mount(d)
	return d
}

const timeNow = `{"tool":{"name":"time.now","arguments":{}}}`

func ask(f http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

func codeOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var b struct {
		Result struct {
			Output struct{ Error struct{ Code string } }
		} `json:"tool_result"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &b); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return b.Result.Output.Error.Code
}

// TestPanics: what breaks off is a refusal, and the next request is answered.
func TestPanics(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*gateway.State, *gateway.Parts)
		path   string
		status int
	}{
		"the engine": {func(_ *gateway.State, p *gateway.Parts) {
			p.Engine = tool(func(gateway.Task) (gateway.Output, error) { panic("broken") })
		}, "/v1/calls", 500},
		"who knows the keys":  {func(s *gateway.State, _ *gateway.Parts) { s.Identity = broken{} }, "/v1/calls", 500},
		"that, for a verdict": {func(s *gateway.State, _ *gateway.Parts) { s.Identity = broken{} }, "/v1/check", 500},
		"no journal":          {func(_ *gateway.State, p *gateway.Parts) { p.Journal = nil }, "/v1/calls", 503},
		"no limiter":          {func(_ *gateway.State, p *gateway.Parts) { p.Limiter = nil }, "/v1/calls", 503},
		"who makes call ids":  {func(_ *gateway.State, p *gateway.Parts) { p.NewID = func() string { panic("broken") } }, "/v1/check", 500},
	} {
		var log bytes.Buffer
		f := faceOf(t, &log, c.change)
		for range 2 {
			w := ask(f, http.MethodPost, c.path, timeNow, "Content-Type", "text/plain")
			if w.Code != c.status || codeOf(t, w) == "" || strings.Contains(w.Body.String(), "broken") {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		}
		if f.InFlight() != 0 || c.status == 500 && c.path == "/v1/check" && strings.Contains(log.String(), "broken") || strings.Contains(log.String(), "goroutine") || strings.Contains(log.String(), ".go:") {
			t.Errorf("%s: %d in flight; the log: %s", name, f.InFlight(), &log)
		}
		if w := ask(f, http.MethodGet, "/healthz", ""); w.Code != 200 {
			t.Errorf("%s: then health is %d", name, w.Code)
		}
	}
}

// TestRoutes: every route asks who calls.
func TestRoutes(t *testing.T) {
	f := faceOf(t, io.Discard, func(s *gateway.State, _ *gateway.Parts) { s.Identity = &identity.Keys{} })
	routes := native.Routes(native.New(native.Options{}))
	if len(routes) != 6 {
		t.Errorf("the routes are %v", routes)
	}
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		w := ask(f, method, strings.Replace(path, ":id", "call_1", 1), "hi", "Content-Type", "text/plain")
		if w.Code != 401 || codeOf(t, w) != "unauthenticated" {
			t.Errorf("%s: %d %s", route, w.Code, w.Body)
		}
	}
}
