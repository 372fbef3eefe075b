package engine_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/engine/mcp"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// readSecrets are the secrets of these tests, by their references.
func readSecrets(_ context.Context, reference string) (string, error) {
	if s, ok := map[string]string{"env:KEY": "key-SECRET", "env:USER": "svc", "env:ID": "gateway", "env:TWO": "two words", "env:BREAK": "SECRET\r\nX: y"}[reference]; ok {
		return s, nil
	}
	return "", errors.New("found no secret at " + reference)
}

// TestCredentialForms: each form is sent in its header, and a credential that no header takes is
// not sent at all.
func TestCredentialForms(t *testing.T) {
	server := newArrivals(t)
	e := newEngine(t, engine.Options{ReadSecret: readSecrets})
	for name, c := range map[string]struct {
		credential   tool.Credential
		header, want string
	}{
		"a header":              {tool.Credential{In: tool.InHeader, Name: "x-api-key", Secret: "env:KEY"}, "X-Api-Key", "key-SECRET"},
		"a prefix":              {tool.Credential{In: tool.InHeader, Name: "Authorization", Prefix: "Token token=", Secret: "env:KEY"}, "Authorization", "Token token=key-SECRET"},
		"basic":                 {tool.Credential{In: tool.InBasic, User: "svc", Secret: "env:TWO"}, "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("svc:two words"))},
		"a user elsewhere":      {tool.Credential{In: tool.InBasic, User: "env:USER", Secret: "env:KEY"}, "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("svc:key-SECRET"))},
		"a header in two lines": {tool.Credential{In: tool.InHeader, Name: "X-Api-Key", Secret: "env:BREAK"}, "", ""},
		"basic in two lines":    {tool.Credential{In: tool.InBasic, User: "svc", Secret: "env:BREAK"}, "", ""},
		"no user":               {tool.Credential{In: tool.InBasic, User: "env:NONE", Secret: "env:KEY"}, "", ""},
	} {
		call := loopback(server.URL, "read")
		call.Run.Credential = &c.credential
		result, err := e.Run(t.Context(), call)
		expectNone(t, err, "SECRET")
		if c.want == "" {
			if code(t, err) != refusal.ToolUnavailable || result.Attempts != 0 || len(server.requests) != 0 {
				t.Errorf("%s: %v after %d attempts", name, err, result.Attempts)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if sent := (<-server.requests).header[c.header]; !slices.Equal(sent, []string{c.want}) {
			t.Errorf("%s: sent %q", name, sent)
		}
	}
}

// TestArgumentsReplaceNoCredential: a call whose argument would be sent in the header of the
// credential is not sent.
func TestArgumentsReplaceNoCredential(t *testing.T) {
	server := newArrivals(t)
	e := newEngine(t, engine.Options{ReadSecret: readSecrets})
	for _, name := range []string{"X-Api-Key", "x-api-key"} {
		call := loopback(server.URL, "read")
		call.Run.Method, call.Run.Parameters = "GET", []tool.Parameter{{Argument: "a", In: "header", Name: name}}
		call.Run.Credential = &tool.Credential{In: tool.InHeader, Name: "X-API-Key", Secret: "env:KEY"}
		if _, refused := run(t, e, call); refused != refusal.ToolUnavailable || server.hits.Load() != 0 {
			t.Errorf("%s: %s, sent %d", name, refused, server.hits.Load())
		}
	}
}

// issuer is a token endpoint: it issues a new token at each request, unless answer answers.
type issuer struct {
	*httptest.Server
	mu      sync.Mutex
	answer  http.HandlerFunc
	asked   []string // the forms of the requests, with the credentials of the header
	current atomic.Pointer[string]
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	i.Server = httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	user, password, _ := r.BasicAuth()
	i.mu.Lock()
	i.asked = append(i.asked, user+":"+password+" "+r.Form.Encode())
	n, answer := len(i.asked), i.answer
	i.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	token := fmt.Sprintf("token-SECRET-%d", n)
	i.current.Store(&token)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":%q,"token_type":"bearer","expires_in":3600}`, token)
}

func (i *issuer) requests() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.asked)
}

// credential is that of a client of the issuer.
func (i *issuer) credential() *tool.Credential {
	return &tool.Credential{In: tool.InOAuth, Secret: "env:KEY", OAuth: &tool.OAuth{TokenURL: i.URL + "/token", ClientID: "env:ID", Addresses: []string{"127.0.0.1/32"}}}
}

// guarded is a tool that accepts the issuer's current token alone. It counts all calls by the token
// that they carried.
type guarded struct {
	*httptest.Server
	hits atomic.Int64
}

func newGuarded(t *testing.T, i *issuer) *guarded {
	t.Helper()
	g := &guarded{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.hits.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		if token := i.current.Load(); token == nil || r.Header.Get("Authorization") != "Bearer "+*token {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		io.WriteString(w, "done")
	}))
	t.Cleanup(g.Close)
	return g
}

// TestOAuthRequests: a token is fetched once for all calls, with the scopes and parameters of the
// credential, and the client's id and secret where it says.
func TestOAuthRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*tool.OAuth)
		want   string
	}{
		"plain": {func(*tool.OAuth) {}, "gateway:key-SECRET grant_type=client_credentials"},
		"more": {func(o *tool.OAuth) {
			o.Scopes, o.Parameters = []string{"read", "write"}, map[string]string{"audience": "https://api.example"}
		}, "gateway:key-SECRET audience=https%3A%2F%2Fapi.example&grant_type=client_credentials&scope=read+write"},
		"in the body": {func(o *tool.OAuth) { o.InBody = true }, ": client_id=gateway&client_secret=key-SECRET&grant_type=client_credentials"},
	} {
		i := newIssuer(t)
		g := newGuarded(t, i)
		e := newEngine(t, engine.Options{ReadSecret: readSecrets})
		credential := i.credential()
		c.change(credential.OAuth)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				call := loopback(g.URL, "read")
				call.Run.Credential = credential
				if result, err := e.Run(t.Context(), call); err != nil || result.Attempts != 1 {
					t.Errorf("%s: %v after %d attempts", name, err, result.Attempts)
				}
			})
		}
		all.Wait()
		if asked := i.requests(); !slices.Equal(asked, []string{c.want}) {
			t.Errorf("%s: asked %q", name, asked)
		}
	}
}

// TestRejectedToken: a token that the tool does not accept is not used again. A call that may be
// repeated is sent with a new one, and a call of the effect once is sent once.
func TestRejectedToken(t *testing.T) {
	t.Parallel()
	revoked := "revoked"
	for _, kind := range []string{"http", "callback", "oxp"} {
		i := newIssuer(t)
		g := newGuarded(t, i)
		e := newEngine(t, engine.Options{ReadSecret: readSecrets, CallbackURL: func(string, time.Time) (string, error) { return "https://gateway.example/x", nil }})
		call := loopback(g.URL, "read")
		call.Run.Type, call.Run.Credential, call.Run.Tool, call.Run.MaxAge = kind, i.credential(), "Kit.Tool@1.0.0", time.Hour
		run(t, e, call)
		i.current.Store(&revoked)
		before := g.hits.Load()
		result, err := e.Run(t.Context(), call)
		if result.Attempts != 2 || g.hits.Load() != before+2 || len(i.requests()) != 2 || (err == nil) == (kind == "oxp") {
			t.Errorf("%s: %v after %d attempts and %d hits, %d tokens", kind, err, result.Attempts, g.hits.Load()-before, len(i.requests()))
		}
		// The next token is not accepted either, so that this is no matter of the token.
		i.current.Store(&revoked)
		before = g.hits.Load()
		result, err = e.Run(t.Context(), call)
		if code(t, err) != refusal.ToolFailed || result.Attempts != 1 || g.hits.Load() != before+1 || len(i.requests()) != 2 {
			t.Errorf("%s: %v after %d attempts, %d tokens", kind, err, result.Attempts, len(i.requests()))
		}
		expectNone(t, err, "SECRET")

		once := newEngine(t, engine.Options{ReadSecret: readSecrets, CallbackURL: func(string, time.Time) (string, error) { return "https://gateway.example/x", nil }})
		call.Effect = "once"
		run(t, once, call)
		i.current.Store(&revoked)
		before = g.hits.Load()
		result, err = once.Run(t.Context(), call)
		if code(t, err) != refusal.ToolFailed || result.Attempts != 1 || g.hits.Load() != before+1 {
			t.Errorf("%s, once: %v after %d attempts and %d hits", kind, err, result.Attempts, g.hits.Load()-before)
		}
		if _, err := once.Run(t.Context(), call); (err == nil) == (kind == "oxp") || len(i.requests()) != 4 {
			t.Errorf("%s, once: the call after it got %v; %d tokens", kind, err, len(i.requests()))
		}
	}
}

// TestRejectedTokenOfMCP: so it is with a server that speaks MCP, whose session is opened first.
func TestRejectedTokenOfMCP(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		called := strings.Contains(string(body), `"tools/call"`)
		if called {
			calls.Add(1)
		}
		if token := i.current.Load(); token == nil || r.Header.Get("Authorization") != "Bearer "+*token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var id string
		if _, rest, ok := strings.Cut(string(body), `"id":`); ok {
			id, _, _ = strings.Cut(rest, ",")
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case called:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}`, id)
		case strings.Contains(string(body), `"initialize"`):
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, id)
		case id != "":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, id)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer server.Close()
	out := outbound.New(outbound.Options{ReadSecret: readSecrets})
	defer out.Close()
	client := mcp.New(mcp.Options{Outbound: out})
	defer client.Close()
	call := loopback(server.URL, "read")
	call.Run.Type, call.Run.Tool, call.Run.Credential = "mcp", "t", i.credential()
	if _, err := client.Run(t.Context(), call); err != nil || calls.Load() != 1 {
		t.Fatal(err, calls.Load())
	}
	revoked := "revoked"
	i.current.Store(&revoked)
	result, err := client.Run(t.Context(), call)
	if err != nil || result.Attempts != 2 || calls.Load() != 3 || len(i.requests()) != 2 {
		t.Errorf("%v after %d attempts, %d calls, %d tokens", err, result.Attempts, calls.Load(), len(i.requests()))
	}
	i.current.Store(&revoked)
	call.Effect = "once"
	if _, err := client.Run(t.Context(), call); code(t, err) != refusal.ToolFailed || calls.Load() != 4 {
		t.Errorf("once: %v, %d calls", err, calls.Load())
	}
	i.mu.Lock()
	i.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	i.mu.Unlock()
	other := mcp.New(mcp.Options{Outbound: outbound.New(outbound.Options{ReadSecret: readSecrets})})
	defer other.Close()
	if _, err := other.Run(t.Context(), call); code(t, err) != refusal.ToolUnavailable || !strings.Contains(err.Error(), "HTTP status 500 and no token") {
		t.Errorf("without a token: %v", err)
	}
	if _, err := other.Discover(t.Context(), tool.Server{Name: "s", Type: "mcp", URL: server.URL, Credential: i.credential(), Addresses: loopback("", "").Run.Addresses}); err == nil || !strings.Contains(err.Error(), "no token") {
		t.Errorf("discovery without a token: %v", err)
	}
}

// TestTokenEndpointFaults: without a token nothing is sent to the tool, and the refusal shows
// nothing of what the endpoint says.
func TestTokenEndpointFaults(t *testing.T) {
	t.Parallel()
	redirected := newCanary(t)
	text := func(status int, media, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"an error":           {text(500, "text/plain", "body-SECRET"), "HTTP status 500 and no token"},
		"a refused client":   {text(401, "application/json", `{"error":"invalid_client","error_description":"key-SECRET"}`), "refused the client: invalid_client"},
		"an error of 200":    {text(200, "application/json", `{"error":"SECRET"}`), "HTTP status 200 and no token"},
		"garbage":            {text(200, "application/json", `{"access_token":"SECRET`), "gave no token"},
		"no token":           {text(200, "application/json", `{}`), "gave no token"},
		"text":               {text(200, "text/plain", `access_token=SECRET`), "not JSON by its content type"},
		"another type":       {text(200, "application/json", `{"access_token":"SECRET","token_type":"mac"}`), "another type than bearer"},
		"a token of 2 lines": {text(200, "application/json", `{"access_token":"SECRET\r\nX: y"}`), "no header takes"},
		"a long token":       {text(200, "application/json", `{"access_token":"SECRET`+strings.Repeat("x", 17<<10)+`"}`), "no header takes"},
		"a huge answer":      {text(200, "application/json", `{"access_token":"SECRET","x":"`+strings.Repeat("x", 2<<20)+`"}`), "gave no token"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, redirected.URL, http.StatusTemporaryRedirect)
		}, "HTTP status 307 and no token"},
		"a broken answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "gave no token"},
	} {
		i := newIssuer(t)
		i.answer = c.answer
		server := newCanary(t)
		e := newEngine(t, engine.Options{ReadSecret: readSecrets})
		for _, effect := range []string{"read", "once"} {
			call := loopback(server.URL, effect)
			call.Run.Credential = i.credential()
			result, err := e.Run(t.Context(), call)
			if code(t, err) != refusal.ToolUnavailable || result.Attempts != 0 {
				t.Errorf("%s: %v after %d attempts", name, err, result.Attempts)
			}
			expectSome(t, err, c.want)
			expectNone(t, err, "SECRET", "/token")
		}
	}
}

// TestTokenEndpointHangs: a call waits for a token no longer than its own timeout, and the fetch
// ends with the engine.
func TestTokenEndpointHangs(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	i.answer = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	server := newCanary(t)
	e := newEngine(t, engine.Options{ReadSecret: readSecrets})
	call := loopback(server.URL, "once")
	call.Run.Credential, call.Run.Timeout = i.credential(), 100*time.Millisecond
	if _, refused := run(t, e, call); refused != refusal.ToolTimeout {
		t.Errorf("%s", refused)
	}
	e.Close()
	call.Run.Credential.OAuth.Timeout, call.Run.Timeout = 100*time.Millisecond, patient
	e = newEngine(t, engine.Options{ReadSecret: readSecrets})
	_, err := e.Run(t.Context(), call)
	if code(t, err) != refusal.ToolUnavailable {
		t.Error(err)
	}
	expectSome(t, err, "did not answer in time")
}

// TestTokensThatExpireAtOnce are used by those who waited for them; one that says nothing of its
// end is used for a while.
func TestTokensThatExpireAtOnce(t *testing.T) {
	t.Parallel()
	for expires, want := range map[string]int{`,"expires_in":0`: 3, `,"expires_in":-5`: 3, `,"expires_in":"3600"`: 1, ``: 1} {
		i := newIssuer(t)
		i.answer = func(w http.ResponseWriter, _ *http.Request) {
			token := "token"
			i.current.Store(&token)
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"access_token":"token"`+expires+`}`)
		}
		g := newGuarded(t, i)
		e := newEngine(t, engine.Options{ReadSecret: readSecrets})
		call := loopback(g.URL, "once")
		call.Run.Credential = i.credential()
		for range 3 {
			if _, refused := run(t, e, call); refused != "" {
				t.Errorf("%s: %s", expires, refused)
			}
		}
		if n := len(i.requests()); n != want {
			t.Errorf("%q: %d tokens; expected %d", expires, n, want)
		}
	}
}

// TestTokenAddresses: the token endpoint may be at the addresses of the credential alone, whatever
// the tool's are; with TLS its certificate is one of the credential's.
func TestTokenAddresses(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	g := newGuarded(t, i)
	e := newEngine(t, engine.Options{ReadSecret: readSecrets})
	call := loopback(g.URL, "read")
	call.Run.Credential = i.credential()
	call.Run.Credential.OAuth.Addresses = nil
	if _, refused := run(t, e, call); refused != refusal.AddressBlocked || len(i.requests()) != 0 || g.hits.Load() != 0 {
		t.Errorf("%s, %d tokens, %d hits", refused, len(i.requests()), g.hits.Load())
	}
	secure := &issuer{}
	secure.Server = httptest.NewTLSServer(http.HandlerFunc(secure.serve))
	defer secure.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	e = newEngine(t, engine.Options{ReadSecret: func(ctx context.Context, reference string) (string, error) {
		if reference == "file:/ca.pem" {
			return string(certificate), nil
		}
		return readSecrets(ctx, reference)
	}})
	g = newGuarded(t, secure)
	call = loopback(g.URL, "read")
	call.Run.Credential = secure.credential()
	if _, refused := run(t, e, call); refused != refusal.ToolUnavailable || len(secure.requests()) != 0 {
		t.Errorf("without the certificate: %s", refused)
	}
	call.Run.Credential = secure.credential()
	call.Run.Credential.OAuth.CAFile = "file:/ca.pem"
	if _, refused := run(t, e, call); refused != "" {
		t.Errorf("with the certificate: %s", refused)
	}
}

// TestRotationUnderLoad: the tokens of two gateways are revoked while they call, and no call that
// may be repeated fails.
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	valid, issued := map[string]bool{}, 0
	i := newIssuer(t)
	i.answer = func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		issued++
		token := fmt.Sprint("token-", issued)
		valid[token] = true
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"expires_in":3600}`, token)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		ok := valid[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		mu.Unlock()
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.WriteString(w, "done")
	}))
	defer server.Close()
	gateways := []*engine.Engine{newEngine(t, engine.Options{ReadSecret: readSecrets}), newEngine(t, engine.Options{ReadSecret: readSecrets})}
	call := loopback(server.URL, "read")
	call.Run.Credential = i.credential()
	for _, e := range gateways { // each has a token before the load begins
		if _, refused := run(t, e, call); refused != "" {
			t.Fatal(refused)
		}
	}
	var all sync.WaitGroup
	rotated := make(chan struct{})
	for n := range 8 {
		all.Go(func() {
			for k := range 25 {
				if n == 0 && k == 12 {
					mu.Lock()
					clear(valid)
					mu.Unlock()
					close(rotated)
				}
				if k == 20 {
					<-rotated // so that each calls with tokens of before and after
				}
				if _, err := gateways[n%2].Run(context.WithoutCancel(t.Context()), call); err != nil {
					t.Errorf("call %d of %d: %v", k, n, err)
				}
			}
		})
	}
	all.Wait()
	if issued != 4 {
		t.Errorf("%d tokens for two gateways; expected 4", issued)
	}
}
