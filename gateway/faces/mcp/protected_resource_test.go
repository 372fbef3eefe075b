package mcp_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/mcp"
)

// get asks for a document from another machine, where the Host may be made up.
func (h *fixture) get(method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8080})))
	r.Host = "evil.example"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var wellKnown = []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"}

// TestProtectedResource: RFC 9728. A client without a token learns where to get one, by a
// URL that is configured and never by one that a request names.
func TestProtectedResource(t *testing.T) {
	base, issuer := "https://gateway.example/tools", "https://id.example/realm"
	h := open(t, plan{
		state:   func(s *gateway.Config, _ *calls.Deps) { s.Identity = keys{} },
		guarded: &mcp.ProtectedResource{Base: func() string { return base }, Issuer: func() string { return issuer }},
	})
	for _, path := range wellKnown {
		for _, headers := range [][]string{nil, {"Authorization", "Bearer wrong"}, {"Authorization", "nonsense"}, {"X-Forwarded-Host", "evil.example"}} {
			w := h.get(http.MethodGet, path, headers...)
			var document struct {
				Resource, ResourceName string
				Servers                []string `json:"authorization_servers"`
				Methods                []string `json:"bearer_methods_supported"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil || w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
				t.Fatalf("%s: %d %s", path, w.Code, w.Body)
			}
			if document.Resource != "https://gateway.example/tools/mcp" || len(document.Servers) != 1 || document.Servers[0] != issuer || len(document.Methods) != 1 || document.Methods[0] != "header" {
				t.Errorf("%s: %s", path, w.Body)
			}
		}
		if w := h.get(http.MethodPost, path); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, headers := range [][]string{nil, {"Authorization", "Bearer wrong"}, {"Authorization", "Basic one"}} {
		r := h.post(t, list, headers...)
		if got := r.header.Get("Www-Authenticate"); r.status != 401 || got != `Bearer resource_metadata="https://gateway.example/tools/.well-known/oauth-protected-resource/mcp"` {
			t.Errorf("%q: %d %s", headers, r.status, got)
		}
	}
	if r := h.post(t, list, "Authorization", "Bearer one"); r.status != 200 || r.header.Get("Www-Authenticate") != "" {
		t.Errorf("%d %v", r.status, r.header)
	}
	// Nobody is told of what is not known, or is no URL.
	for _, c := range [][2]string{{"", issuer}, {base, ""}, {base, "acme"}, {base, "ftp://id.example"}} {
		base, issuer = c[0], c[1]
		for _, path := range wellKnown {
			if w := h.get(http.MethodGet, path); w.Code != http.StatusNotFound {
				t.Errorf("%q: %d %s", c, w.Code, w.Body)
			}
		}
		if r := h.post(t, list); r.status != 401 || r.header.Get("Www-Authenticate") != "Bearer" {
			t.Errorf("%q: %d %v", c, r.status, r.header)
		}
	}
}

// TestNoProtectedResource: where no tokens are asked for, the paths are those of nothing.
func TestNoProtectedResource(t *testing.T) {
	h := open(t, plan{})
	for _, path := range wellKnown {
		if w := h.get(http.MethodGet, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
