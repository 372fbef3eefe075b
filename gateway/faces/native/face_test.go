package native_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

func TestMain(m *testing.M) { facetest.Main(m) }

// broken panics at every request.
type broken struct{}

func (broken) Authenticate(string) *identity.Principal { panic("broken") }

// faceOf is a server with a face of the vectors' configuration without limits, as it may be
// changed.
func faceOf(t testing.TB, log io.Writer, change func(*gateway.Config, *calls.Deps)) *server.Server {
	t.Helper()
	h := facetest.New(t, facetest.Options{
		Config: facetest.Vectors(t), Change: change, Log: log,
		Engine: facetest.ToolFunc(func(tool.Call) (tool.Result, error) {
			return tool.Result{Body: []byte(`{"ok":true}`), JSON: true}, nil
		}),
	})
	native.New(native.Options{Executor: h.Executor, Log: h.Logger}).Mount(h.Server)
	return h.Server
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
		change func(*gateway.Config, *calls.Deps)
		path   string
		status int
	}{
		"the engine": {func(_ *gateway.Config, p *calls.Deps) {
			p.Engine = facetest.ToolFunc(func(tool.Call) (tool.Result, error) { panic("broken") })
		}, "/v1/calls", 500},
		"who knows the keys":  {func(s *gateway.Config, _ *calls.Deps) { s.Identity = broken{} }, "/v1/calls", 500},
		"that, for a verdict": {func(s *gateway.Config, _ *calls.Deps) { s.Identity = broken{} }, "/v1/check", 500},
		"no journal":          {func(_ *gateway.Config, p *calls.Deps) { p.Journal = nil }, "/v1/calls", 503},
		"no limiter":          {func(_ *gateway.Config, p *calls.Deps) { p.Limiter = nil }, "/v1/calls", 503},
		"who makes call ids":  {func(_ *gateway.Config, p *calls.Deps) { p.NewID = func() string { panic("broken") } }, "/v1/check", 500},
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

// named lets everybody in under the name that the credential is.
type named struct{}

func (named) Authenticate(credential string) *identity.Principal {
	return &identity.Principal{Name: credential, Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}}
}

// TestChallenges: whose call was refused until a person has authorized it is told
// where that person goes, beside the result and not in it; nobody else is.
func TestChallenges(t *testing.T) {
	const place = "https://accounts.example/authorize?state=\u202esecret"
	f := faceOf(t, io.Discard, func(s *gateway.Config, p *calls.Deps) {
		s.Identity = named{}
		p.Engine = facetest.ToolFunc(func(tool.Call) (tool.Result, error) {
			return tool.Result{Challenges: []tool.Challenge{
				{ID: "calendar", URL: place, CheckURL: "https://tool.internal/check"}, {ID: "mail", URL: "https://mail.example/"},
			}}, refusal.New(refusal.ToolFailed, "A person has to authorize this first.")
		})
	})
	called := ask(f, http.MethodPost, "/v1/calls", timeNow, "Content-Type", "text/plain", "Authorization", "Bearer one")
	if codeOf(t, called) != "tool_failed" || strings.Contains(called.Body.String(), "example") {
		t.Fatalf("%d %s", called.Code, called.Body)
	}
	path := "/v1/calls/" + called.Header().Get(server.HeaderCallID)
	found := ask(f, http.MethodGet, path, "", "Authorization", "Bearer one")
	if found.Code != http.StatusOK || strings.ContainsRune(found.Body.String(), '\u202e') || strings.Contains(found.Body.String(), "internal") {
		t.Errorf("%d %s", found.Code, found.Body)
	}
	var is struct {
		State      string
		Challenges []struct{ ID, URL string }
		Result     json.RawMessage `json:"tool_result"`
	}
	if err := json.Unmarshal(found.Body.Bytes(), &is); err != nil {
		t.Fatal(err)
	}
	if is.State != "done" || len(is.Challenges) != 2 || is.Challenges[0].ID != "calendar" || is.Challenges[0].URL != place || is.Challenges[1].ID != "mail" || is.Result == nil || bytes.Contains(is.Result, []byte("accounts")) {
		t.Errorf("found %+v: %s", is, found.Body)
	}
	if other := ask(f, http.MethodGet, path, "", "Authorization", "Bearer two"); other.Code != http.StatusNotFound || strings.Contains(other.Body.String(), "example") {
		t.Errorf("another is told %d %s", other.Code, other.Body)
	}
}

// TestRoutes: every route asks who calls.
func TestRoutes(t *testing.T) {
	f := faceOf(t, io.Discard, func(s *gateway.Config, _ *calls.Deps) { s.Identity = &identity.APIKeys{} })
	routes := native.Routes(native.New(native.Options{}))
	if len(routes) != 9 {
		t.Errorf("the routes are %v", routes)
	}
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		w := ask(f, method, strings.Replace(path, ":id", "call_1", 1), "{}", "Content-Type", "application/json")
		if w.Code != 401 || codeOf(t, w) != "unauthenticated" {
			t.Errorf("%s: %d %s", route, w.Code, w.Body)
		}
	}
}
