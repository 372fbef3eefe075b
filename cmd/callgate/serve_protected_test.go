package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestProtectedResource: with auth.mode jwt a gateway tells by RFC 9728 where its clients
// get tokens, of the issuer of now; in the other modes there is nothing at these paths.
func TestProtectedResource(t *testing.T) {
	t.Parallel()
	known := newSigner(t, "k1")
	first, second := newIssuer(t, known), newIssuer(t, known)
	config, data := tokenConfig(t, of(first.URL))
	g := serveGate(t, config)
	metadata := func(g *gate, path string) (resource, issuer string) {
		r := g.ask(t, http.MethodGet, path, "")
		var document struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
		}
		if err := json.Unmarshal([]byte(r.body), &document); err != nil || r.status != 200 || len(document.Servers) != 1 {
			t.Fatalf("%s: %d %s", path, r.status, r.body)
		}
		return document.Resource, document.Servers[0]
	}
	r := g.ask(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Content-Type", "application/json")
	at, found := strings.CutPrefix(r.header.Get("WWW-Authenticate"), `Bearer resource_metadata="http://`+g.listen)
	if r.status != http.StatusUnauthorized || !found {
		t.Fatalf("%d %v", r.status, r.header)
	}
	for _, path := range []string{strings.TrimSuffix(at, `"`), "/.well-known/oauth-protected-resource"} {
		if resource, issuer := metadata(g, path); resource != "http://"+g.listen+"/mcp" || issuer != first.URL {
			t.Errorf("%s: %s, %s", path, resource, issuer)
		}
	}
	edit(t, config, data, tokenMain(of(second.URL)))
	eventually(t, "the new issuer is told", func() bool {
		_, issuer := metadata(g, "/.well-known/oauth-protected-resource")
		return issuer == second.URL
	})

	config, data = tokenConfig(t, of(first.URL))
	edit(t, config, data, strings.Replace(tokenMain(of(first.URL)), "server: {", "server: {public_url: \"https://gateway.example\", ", 1))
	if resource, _ := metadata(serveGate(t, config), "/.well-known/oauth-protected-resource/mcp"); resource != "https://gateway.example/mcp" {
		t.Errorf("%s", resource)
	}
	config, _ = unlimitedVectors(t)
	if r := serveGate(t, config).ask(t, http.MethodGet, "/.well-known/oauth-protected-resource", ""); r.status != http.StatusNotFound {
		t.Errorf("%d %s", r.status, r.body)
	}
}
