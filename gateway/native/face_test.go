package native_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/native"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/corpora"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// paper is a journal that forgets.
type paper struct{}

func (paper) Append(context.Context, audit.Record) error { return nil }

// tool is an engine of one tool.
type tool func(gateway.Task) (gateway.Output, error)

func (f tool) Run(_ context.Context, t gateway.Task) (gateway.Output, error) { return f(t) }

// broken breaks off whatever it is asked.
type broken struct{}

func (broken) Authenticate(string) *identity.Principal { panic("broken") }

// faceOf is a face of the vectors' configuration without limits, as it may be
// changed.
func faceOf(t testing.TB, log io.Writer, change func(*gateway.State, *gateway.Parts)) *native.Face {
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
	return native.New(native.Options{Kernel: k, Metrics: telemetry.New(), Log: slog.New(slog.NewJSONHandler(log, nil)), MostHeld: 100_000})
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

// TestTrace: a good traceparent is continued, any other starts a new trace.
func TestTrace(t *testing.T) {
	var log bytes.Buffer
	f := faceOf(t, &log, nil)
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	form := regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-0[01]$`)
	seen := map[string]bool{}
	for header, continued := range map[string]bool{
		"00-" + trace + "-" + span + "-01": true, "00-" + trace + "-" + span + "-00": true,
		"": false, "x": false, "00-" + trace + "-" + span: false, "01-" + trace + "-" + span + "-01": false, "ff-" + trace + "-" + span + "-01": false,
		"00-" + strings.ToUpper(trace) + "-" + span + "-01": false, "00-" + strings.Repeat("0", 32) + "-" + span + "-01": false,
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01": false, "00-" + trace + "-" + span + "-01-x": false, " 00-" + trace + "-" + span + "-1": false,
		"00-" + trace[:31] + "g-" + span + "-01": false, strings.Repeat("0", 5000): false,
	} {
		w := ask(f, http.MethodPost, "/v1/check", "hi", "Content-Type", "text/plain", "traceparent", header)
		m := form.FindStringSubmatch(w.Header().Get("Traceparent"))
		if w.Code != 200 || m == nil {
			t.Errorf("%.80q: %d %v", header, w.Code, w.Header())
			continue
		}
		if (m[1] == trace) != continued || m[2] == span || seen[m[2]] {
			t.Errorf("%.80q is continued as %s", header, m[0])
		}
		seen[m[2]] = true
		if !strings.Contains(log.String(), m[1]) {
			t.Errorf("%.80q: the log does not tell the trace %s", header, m[1])
		}
	}
}

// TestRoutes: every route is one that this list holds, and asks who calls where
// it is not about health.
func TestRoutes(t *testing.T) {
	f := faceOf(t, io.Discard, func(s *gateway.State, _ *gateway.Parts) { s.Identity = &identity.Keys{} })
	open := map[string]bool{"GET /healthz": true, "GET /readyz": true}
	routes := native.Routes(f)
	if len(routes) != 6 {
		t.Errorf("the routes are %v", routes)
	}
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		w := ask(f, method, strings.Replace(path, ":id", "call_1", 1), "hi", "Content-Type", "text/plain")
		if open[route] {
			if w.Code != 200 {
				t.Errorf("%s: %d", route, w.Code)
			}
		} else if w.Code != 401 || codeOf(t, w) != "unauthenticated" {
			t.Errorf("%s: %d %s", route, w.Code, w.Body)
		}
	}
}

func TestDrain(t *testing.T) {
	f := faceOf(t, io.Discard, nil)
	ready := func() int { return ask(f, http.MethodGet, "/readyz", "").Code }
	if ready() != 200 || f.Draining() {
		t.Error("not ready at first")
	}
	f.Drain()
	f.Drain()
	if w := ask(f, http.MethodPost, "/v1/calls", timeNow, "Content-Type", "text/plain"); ready() != 503 || w.Code != 200 {
		t.Errorf("while it drains: ready %d, a call %d", ready(), w.Code)
	}
}

// TestHeldBodies: bodies that have not ended count among those that are held, so
// memory is bounded however many there are.
func TestHeldBodies(t *testing.T) {
	f := faceOf(t, io.Discard, nil)
	in, out := io.Pipe()
	answer := make(chan *httptest.ResponseRecorder)
	go func() {
		r := httptest.NewRequest(http.MethodPost, "/v1/check", in)
		r.Header.Set("Content-Type", "text/plain")
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		answer <- w
	}()
	if _, err := out.Write(bytes.Repeat([]byte("x"), 90_000)); err != nil {
		t.Fatal(err)
	}
	plain := []string{"Content-Type", "text/plain"}
	if w := ask(f, http.MethodPost, "/v1/check", strings.Repeat("x", 50_000), plain...); w.Code != 503 || codeOf(t, w) != "overloaded" || w.Header().Get("Retry-After") == "" {
		t.Errorf("beyond what may be held: %d %s", w.Code, w.Body)
	}
	if w := ask(f, http.MethodPost, "/v1/check", strings.Repeat("x", 5_000), plain...); w.Code != 200 {
		t.Errorf("within it: %d %s", w.Code, w.Body)
	}
	out.Close()
	if w := <-answer; w.Code != 200 {
		t.Errorf("the long one: %d %s", w.Code, w.Body)
	}
	for range 5 { // what was answered is held no longer
		if w := ask(f, http.MethodPost, "/v1/check", strings.Repeat("x", 60_000), plain...); w.Code != 200 {
			t.Errorf("then: %d %s", w.Code, w.Body)
		}
	}
}
