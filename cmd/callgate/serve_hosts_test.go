package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// everyRoute is every path of every face, with a body that its face reads.
var everyRoute = []struct{ method, path, media, body string }{
	{"POST", "/v1/check", "text/plain", `{"tool":{"name":"echo","arguments":{"n":1}}}`},
	{"POST", "/v1/calls", "text/plain", `{"tool":{"name":"echo","arguments":{"n":1}}}`},
	{"GET", "/v1/calls/call_x", "", ""},
	{"GET", "/v1/calls/call_x/events", "", ""},
	{"POST", "/v1/calls/call_x/cancel", "", ""},
	{"POST", "/v1/threads/close", "", ""},
	{"GET", "/v1/tools", "", ""},
	{"GET", "/v1/models", "", ""},
	{"GET", "/v1/models/m", "", ""},
	{"GET", "/v1/runs/run_x", "", ""},
	{"POST", "/v1/chat/completions", "application/json", `{"model":"m","messages":[]}`},
	{"POST", "/v1/callbacks/x", "application/json", `{}`},
	{"GET", "/health", "", ""},
	{"GET", "/tools", "", ""},
	{"POST", "/tools/call", "application/json", `{"tool_id":"echo","input":{"n":1}}`},
	{"GET", "/tools/authorizations/call_x/0", "", ""},
	{"POST", "/mcp", "application/json", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
}

// sent asks with a Host and an Origin of its own; "" is none but the usual.
func (g *gate) sent(t testing.TB, method, url, media, body, host, origin, key string) reply {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": media, "Origin": origin, "Authorization": key} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if host != "" {
		r.Host = host
	}
	return g.does(t, r)
}

// does sends a request, and reads its answer.
func (g *gate) does(t testing.TB, r *http.Request) reply {
	t.Helper()
	answer, err := g.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, string(data)}
}

// TestHostsAndOriginsEverywhere: a request to a name that is not the gateway's, or from a
// web page that is not allowed, is refused on every path of every face, whether callers
// need a credential or not. Health checks are answered.
func TestHostsAndOriginsEverywhere(t *testing.T) {
	t.Parallel()
	one, _, _ := threeCallers()
	for mode, key := range map[string]string{"none": "", "keys": "Bearer " + one.key} {
		t.Run(mode, func(t *testing.T) {
			config, data := keyedConfig(t, one)
			edit(t, config, data, fmt.Sprintf("server: {%s, origins: [\"https://app.example\"], hosts: [gateway.example]}\nauth: {mode: %s}\nprincipals: principals.yaml\n", anyPort, mode))
			g := serveGate(t, config)
			for _, r := range everyRoute {
				ask := func(host, origin string) (status int, refused bool) {
					answer := g.sent(t, r.method, "http://"+g.listen+r.path, r.media, r.body, host, origin, key)
					return answer.status, strings.Contains(answer.body, "server.hosts") || strings.Contains(answer.body, "server.origins")
				}
				want := http.StatusBadRequest
				if r.path == "/mcp" {
					want = http.StatusForbidden
				}
				for _, from := range []struct{ host, origin string }{
					{"evil.example", ""}, {"evil.example:8080", ""}, {"evil.example", "http://evil.example"}, {"", "https://evil.example"}, {"", "null"}, {"gateway.example", "https://gateway.example"},
				} {
					if status, refused := ask(from.host, from.origin); status != want || !refused {
						t.Errorf("%s %s, Host %q, Origin %q: %d, refused for that: %v", r.method, r.path, from.host, from.origin, status, refused)
					}
				}
				for _, from := range []struct{ host, origin string }{
					{"", ""}, {"localhost", ""}, {"gateway.example", ""}, {"", "https://app.example"}, {"app.example", "https://app.example"}, {"", "http://localhost:3000"},
				} {
					if status, refused := ask(from.host, from.origin); refused {
						t.Errorf("%s %s, Host %q, Origin %q: %d, refused", r.method, r.path, from.host, from.origin, status)
					}
				}
			}
			for _, path := range []string{"/healthz", "/readyz"} {
				if r := g.sent(t, "GET", "http://"+g.listen+path, "", "", "10.1.2.3", "", ""); r.status != http.StatusOK {
					t.Errorf("%s: %d %s", path, r.status, r.body)
				}
			}
			for _, path := range []string{"/metrics", "/readyz"} {
				for _, from := range []struct {
					host, origin string
					want         int
				}{{"", "", 200}, {"localhost", "", 200}, {"evil.example", "", 400}, {"gateway.example", "", 400}, {"", "https://app.example", 400}} {
					if r := g.sent(t, "GET", "http://"+g.admin+path, "", "", from.host, from.origin, ""); r.status != from.want {
						t.Errorf("admin %s, Host %q, Origin %q: %d, expected %d", path, from.host, from.origin, r.status, from.want)
					}
				}
			}
			if code := g.stop(t); code != exitAccepted {
				t.Errorf("exit code %d", code)
			}
			for _, r := range verified(t, data) {
				if r["verdict"] == "refused" && r["code"] == "bad_request" {
					t.Errorf("a page's request is in the log: %v", r)
				}
			}
		})
	}
}
