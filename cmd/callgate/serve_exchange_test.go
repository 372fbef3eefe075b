package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// exchangePeer is every peer of a gateway whose tools are called as their callers: the token endpoint, the tool, the
// model, and what takes traces.
type exchangePeer struct {
	mu     sync.Mutex
	users  map[string]string // by their tokens
	forms  []url.Values      // of the requests for tokens
	given  []string          // the credentials of the calls of the tool
	bodies strings.Builder   // of all requests but those for tokens
}

func (p *exchangePeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/token" {
		form, err := url.ParseQuery(string(body))
		id, secret, _ := r.BasicAuth()
		p.forms = append(p.forms, form)
		user := p.users[form.Get("subject_token")]
		if err != nil || id != "gateway" || secret != "canary-client" || user == "" || user == "eve" {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"invalid_grant","error_description":"`+form.Get("subject_token")+`"}`)
			return
		}
		fmt.Fprintf(w, `{"access_token":"canary-issued-%d-for-%s","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3600}`, len(p.forms), user)
		return
	}
	p.bodies.Write(body)
	switch {
	case r.URL.Path == "/orders":
		p.given = append(p.given, r.Header.Get("Authorization"))
		io.WriteString(w, `{"ok":true}`)
	case strings.Contains(r.URL.Path, "chat"):
		fmt.Fprint(&p.bodies, r.Header)
		message := `{"role":"assistant","content":"done"},"finish_reason":"stop"`
		if !strings.Contains(string(body), `"role":"tool"`) {
			message = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"orders","arguments":"{}"}}]},"finish_reason":"tool_calls"`
		}
		io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":`+message+`}]}`)
	}
}

// last are the user of the last call of the tool, and how many calls and exchanges there were.
func (p *exchangePeer) last() (user string, calls, exchanges int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if calls = len(p.given); calls > 0 {
		_, user, _ = strings.Cut(p.given[calls-1], "-for-")
	}
	return user, calls, len(p.forms)
}

// TestToolsAreCalledAsTheirCallers: by every face a tool is given the token that was issued for the caller of the request that
// runs it, and nothing shows or keeps a token.
func TestToolsAreCalledAsTheirCallers(t *testing.T) {
	t.Parallel()
	key := newSigner(t, "k1")
	from := newIssuer(t, key)
	peer := &exchangePeer{users: map[string]string{}}
	server := httptest.NewServer(peer)
	defer server.Close()
	tools := func(audience string) string {
		credential := fmt.Sprintf(`{in: exchange, grant: token_exchange, token_url: "%s/token", client_id: gateway, client_secret: "env:EXCHANGE_CLIENT", audience: %s, addresses: [127.0.0.1/32]}`, server.URL, audience)
		text := "tools:\n"
		for _, name := range []string{"orders", "asked"} {
			text += fmt.Sprintf("  - {name: %s, effect: once, input_schema: {type: object}, run: {type: http, url: %q, addresses: [127.0.0.1/32], credential: %s}}\n", name, server.URL+"/orders", credential)
		}
		return text
	}
	config, data := layout(t, map[string]string{
		"callgate.yaml": tokenMain(of(from.URL)) + "registry: {files: [tools/*.yaml]}\napprovals: approvals.yaml\nupstreams: upstreams.yaml\n" +
			"telemetry: {traces: {endpoint: \"" + server.URL + "/traces\", content: true}}\n",
		"policy.csv":       "p, Analyst, *, *, , allow\np, Analyst, *, asked, , ask:people\n",
		"approvals.yaml":   "rules: {people: {}}\n",
		"upstreams.yaml":   "upstreams: [{name: m, base_url: \"" + server.URL + "/v1\", models: [m]}]\n",
		"tools/tools.yaml": tools("orders"),
	})
	g := serveGate(t, config, "EXCHANGE_CLIENT=canary-client")
	tokens, secrets := map[string]string{}, []string{"canary-issued", "canary-client"}
	user := func(name, sub string, life time.Duration) {
		token := key.token(t, from.URL, members{"sub": sub, "exp": time.Now().Add(life).Unix(), "jti": name})
		tokens[name] = "Bearer " + token
		secrets = append(secrets, token, token[strings.LastIndexByte(token, '.')+1:], base64.StdEncoding.EncodeToString([]byte(token)))
		peer.mu.Lock()
		defer peer.mu.Unlock()
		peer.users[token] = name
	}
	user("alice", "alice", time.Hour)
	user("bob", "bob", time.Hour)
	user("eve", "eve", time.Hour)
	user("alice-again", "alice", time.Hour)
	user("alice-late", "alice", 10*time.Second) // until the end of the skew it is accepted
	tokens["person"] = "Bearer " + key.token(t, from.URL, members{"sub": "person", "callgate_agents": nil, "callgate_workspace": nil, "callgate_projects": nil, "callgate_approves": []string{"people"}})

	var answers strings.Builder
	call := func(who, path, body string, more ...string) reply {
		t.Helper()
		r := g.ask(t, http.MethodPost, path, body, append(more, "Authorization", tokens[who])...)
		fmt.Fprintln(&answers, r.status, r.header, r.body)
		return r
	}
	text := []string{"Content-Type", "text/plain"}
	asJSON := []string{"Content-Type", "application/json"}
	const orders, asked = `{"tool":{"name":"orders","arguments":{}}}`, `{"tool":{"name":"asked","arguments":{}}}`
	revision := append(slices.Clone(asJSON), "Mcp-Protocol-Version", "2025-11-25", "Accept", "application/json, text/event-stream")
	exchanges := 0
	for i, c := range []struct {
		who, path, body string
		headers         []string
		news            int // exchanges
	}{
		{"alice", "/v1/calls", orders, text, 1},
		{"bob", "/v1/calls", orders, text, 1},
		{"alice", "/v1/calls", orders, text, 0},
		{"alice-again", "/v1/calls", orders, text, 1},
		{"bob", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"orders","arguments":{}}}`, revision, 0},
		{"alice", "/tools/call", `{"tool_id":"callgate.orders","input":{}}`, asJSON, 0},
		{"bob", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, append(slices.Clone(asJSON), "Callgate-Mode", "orchestrate"), 0},
	} {
		r := call(c.who, c.path, c.body, c.headers...)
		exchanges += c.news
		if last, calls, n := peer.last(); last != c.who || calls != i+1 || n != exchanges || r.status != http.StatusOK {
			t.Errorf("%s by %s: %d %s; the tool was called %d times, and last by %q; %d exchanges", c.who, c.path, r.status, r.body, calls, last, n)
		}
	}
	peer.mu.Lock()
	for _, form := range peer.forms {
		token := form.Get("subject_token")
		want := url.Values{
			"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {token}, "subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
			"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"}, "audience": {"orders"},
		}
		if peer.users[token] == "" || form.Encode() != want.Encode() {
			t.Errorf("it asked for %s", form.Encode())
		}
	}
	peer.mu.Unlock()

	// Nobody else's token stands in.
	_, before, _ := peer.last()
	if r := call("eve", "/v1/calls", orders, text...); r.status != http.StatusForbidden || r.code() != "credential_unavailable" {
		t.Errorf("a token that is not exchanged: %d %s", r.status, r.body)
	}
	if r := call("alice-late", "/v1/calls", orders, text...); r.status != http.StatusUnauthorized || r.code() != "credential_expired" {
		t.Errorf("a token that ends: %d %s", r.status, r.body)
	}
	if _, calls, _ := peer.last(); calls != before {
		t.Error("a call without a token was sent")
	}

	// The token is that of the request that runs a call. Until then its approval stands.
	r := call("alice", "/v1/calls", asked, text...)
	var approval struct {
		CallID string `json:"call_id"`
		Digest string
	}
	if err := json.Unmarshal([]byte(r.body), &approval); err != nil || r.status != http.StatusAccepted {
		t.Fatalf("%d %s", r.status, r.body)
	}
	at := "http://" + g.admin + "/v1/approvals/" + approval.CallID
	shown := g.sent(t, http.MethodGet, at, "", "", "", "", tokens["person"])
	if err := json.Unmarshal([]byte(shown.body), &approval); err != nil {
		t.Fatalf("%d %s", shown.status, shown.body)
	}
	if r := g.sent(t, http.MethodPost, at, "application/json", fmt.Sprintf(`{"vote":"yes","digest":%q}`, approval.Digest), "", "", tokens["person"]); r.status != http.StatusOK {
		t.Fatalf("%d %s", r.status, r.body)
	}
	resume := "/v1/calls/" + approval.CallID + "/resume"
	if r := call("alice-late", resume, ""); r.code() != "credential_expired" {
		t.Errorf("taken up with a token that ends: %d %s", r.status, r.body)
	}
	if r := call("bob", resume, ""); r.code() != "not_found" {
		t.Errorf("taken up by another: %d %s", r.status, r.body)
	}
	r = call("alice-again", resume, "")
	if last, calls, _ := peer.last(); last != "alice-again" || calls != before+1 || r.status != http.StatusOK {
		t.Errorf("taken up: %d %s; the tool was called by %q", r.status, r.body, last)
	}

	// A reload with another audience uses no token that was issued for the old one.
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "tools", "tools.yaml"), []byte(tools("stock")+"# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new audience is asked for", func() bool {
		call("bob", "/v1/calls", orders, text...)
		peer.mu.Lock()
		defer peer.mu.Unlock()
		return peer.forms[len(peer.forms)-1].Get("audience") == "stock"
	})

	for _, path := range []string{"/metrics", "/readyz", "/v1/config", "/v1/status", "/v1/tools", "/v1/decisions", "/v1/approvals", "/console/calls", "/console/approvals", "/console/tools"} {
		fmt.Fprintln(&answers, g.sent(t, http.MethodGet, "http://"+g.admin+path, "", "", "", "", tokens["person"]).body)
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	for _, r := range verified(t, data) {
		if who, _ := r["principal"].(string); r["event"] == "decision" && !strings.HasPrefix(who, "jwt:"+from.URL+"#") {
			t.Errorf("the log holds a call of %v", r["principal"])
		}
	}
	said := map[string]string{"an answer": answers.String(), "the log": g.stderr.String(), "standard output": g.stdout.String(), "a request to a peer": peer.bodies.String()}
	err := filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		said[filepath.Base(path)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range said {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %q", where, secret)
			}
		}
	}
	if !strings.Contains(peer.bodies.String(), "orders") || len(said) < 6 {
		t.Errorf("too little was looked through: %d texts", len(said))
	}
}
