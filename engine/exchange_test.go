package engine_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// tokenExchanger is a token endpoint that exchanges the tokens of callers, unless answer answers. It issues "issued-SECRET-n-TOKEN".
type tokenExchanger struct {
	*httptest.Server
	mu     sync.Mutex
	answer http.HandlerFunc
	asked  []url.Values // the forms, with the client of the header as the member "basic"
}

func newTokenExchanger(t *testing.T) *tokenExchanger {
	t.Helper()
	x := &tokenExchanger{}
	x.Server = httptest.NewServer(http.HandlerFunc(x.serve))
	t.Cleanup(x.Close)
	return x
}

func (x *tokenExchanger) serve(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	form := r.PostForm
	if user, password, ok := r.BasicAuth(); ok {
		form.Set("basic", user+":"+password)
	}
	x.mu.Lock()
	x.asked = append(x.asked, form)
	n, answer := len(x.asked), x.answer
	x.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":"issued-SECRET-%d-%s","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3600,"refresh_token":"r"}`,
		n, form.Get("subject_token")+form.Get("assertion"))
}

// answers sets the answer to the requests that follow; nil issues tokens.
func (x *tokenExchanger) answers(answer http.HandlerFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer = answer
}

func (x *tokenExchanger) requests() []url.Values {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.asked)
}

// credential exchanges by a grant.
func (x *tokenExchanger) credential(grant string) *tool.Credential {
	return &tool.Credential{In: tool.InExchange, Secret: "env:KEY", OAuth: &tool.OAuth{
		TokenURL: x.URL + "/token", ClientID: "env:ID", Addresses: []string{"127.0.0.1/32"}, Grant: grant,
	}}
}

// call is one for a caller whose token is "caller-SECRET-" and its name.
func (x *tokenExchanger) call(server, effect, name string) tool.Call {
	call := loopback(server, effect)
	call.Run.Credential = x.credential(tool.GrantTokenExchange)
	call.Caller = caller(name, time.Hour)
	return call
}

func caller(name string, life time.Duration) *tool.Caller {
	return tool.NewCaller("jwt:https://idp.example#"+name, "caller-SECRET-"+name, time.Now().Add(life))
}

// given is a tool that notes the credentials that it is given, unless answer answers.
type given struct {
	*httptest.Server
	mu     sync.Mutex
	answer http.HandlerFunc
	all    []string
}

func newGiven(t *testing.T) *given {
	t.Helper()
	g := &given{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		g.mu.Lock()
		g.all = append(g.all, r.Header.Get("Authorization"))
		answer := g.answer
		g.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		io.WriteString(w, "done")
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *given) tokens() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.all)
}

// newClockedEngine is one whose clock stands still, but for what passes.
func newClockedEngine(t *testing.T) (e *engine.Engine, pass func(time.Duration)) {
	t.Helper()
	start, passed := time.Now(), atomic.Int64{}
	e = newEngine(t, engine.Options{ReadSecret: readSecrets, Now: func() time.Time { return start.Add(time.Duration(passed.Load())) }})
	return e, func(d time.Duration) { passed.Add(int64(d)) }
}

// TestExchangeRequests: each grant sends what it asks for and nothing more, once for all calls of one caller.
func TestExchangeRequests(t *testing.T) {
	t.Parallel()
	const urn = "urn:ietf:params:oauth:"
	for name, c := range map[string]struct {
		grant  string
		change func(*tool.OAuth)
		want   url.Values
	}{
		"an exchange": {tool.GrantTokenExchange, func(*tool.OAuth) {}, url.Values{
			"basic": {"gateway:key-SECRET"}, "grant_type": {urn + "grant-type:token-exchange"}, "subject_token": {"caller-SECRET-ann"},
			"subject_token_type": {urn + "token-type:access_token"}, "requested_token_type": {urn + "token-type:access_token"},
		}},
		"an exchange with all": {tool.GrantTokenExchange, func(o *tool.OAuth) {
			o.SubjectType, o.InBody, o.Scopes = "jwt", true, []string{"orders.read", "orders.write"}
			o.Parameters = map[string]string{"audience": "orders", "resource": "https://orders.example/"}
		}, url.Values{
			"client_id": {"gateway"}, "client_secret": {"key-SECRET"}, "grant_type": {urn + "grant-type:token-exchange"}, "subject_token": {"caller-SECRET-ann"},
			"subject_token_type": {urn + "token-type:jwt"}, "requested_token_type": {urn + "token-type:access_token"},
			"scope": {"orders.read orders.write"}, "audience": {"orders"}, "resource": {"https://orders.example/"},
		}},
		"an assertion": {tool.GrantJWTBearer, func(o *tool.OAuth) { o.Scopes = []string{"orders.read"} }, url.Values{
			"basic": {"gateway:key-SECRET"}, "grant_type": {urn + "grant-type:jwt-bearer"}, "assertion": {"caller-SECRET-ann"}, "scope": {"orders.read"},
		}},
		"Entra": {tool.GrantEntraOBO, func(o *tool.OAuth) { o.InBody, o.Scopes = true, []string{"api://orders/.default"} }, url.Values{
			"client_id": {"gateway"}, "client_secret": {"key-SECRET"}, "grant_type": {urn + "grant-type:jwt-bearer"}, "assertion": {"caller-SECRET-ann"},
			"requested_token_use": {"on_behalf_of"}, "scope": {"api://orders/.default"},
		}},
	} {
		x, g := newTokenExchanger(t), newGiven(t)
		e := newEngine(t, engine.Options{ReadSecret: readSecrets})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				call := x.call(g.URL, "once", "ann")
				call.Run.Credential = x.credential(c.grant)
				c.change(call.Run.Credential.OAuth)
				if result, err := e.Run(t.Context(), call); err != nil || result.Attempts != 1 {
					t.Errorf("%s: %v after %d attempts", name, err, result.Attempts)
				}
			})
		}
		all.Wait()
		if asked := x.requests(); len(asked) != 1 || !reflect.DeepEqual(asked[0], c.want) {
			t.Errorf("%s: asked %v", name, asked)
		}
		for _, token := range g.tokens() {
			if token != "Bearer issued-SECRET-1-caller-SECRET-ann" {
				t.Errorf("%s: the tool was given %q", name, token)
			}
		}
	}
}

// TestUsersShareNoToken: beside each other, each caller gets the token that was issued for its own, and only that.
func TestUsersShareNoToken(t *testing.T) {
	t.Parallel()
	x := newTokenExchanger(t)
	var others, right atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("Authorization"), "-caller-SECRET-"+r.URL.Query().Get("user")) {
			right.Add(1)
		} else {
			others.Add(1)
		}
		io.WriteString(w, "done")
	}))
	defer server.Close()
	e := newEngine(t, engine.Options{ReadSecret: readSecrets})
	const users, calls = 10, 8
	var all sync.WaitGroup
	for i := range users * calls {
		all.Go(func() {
			user := fmt.Sprint("user-", i%users)
			call := x.call(server.URL+"/?user="+user, "once", user)
			if _, err := e.Run(t.Context(), call); err != nil {
				t.Errorf("%s: %v", user, err)
			}
		})
	}
	all.Wait()
	if others.Load() != 0 || right.Load() != users*calls || len(x.requests()) != users {
		t.Errorf("%d calls had their caller's token, %d another; %d exchanges", right.Load(), others.Load(), len(x.requests()))
	}
	// The same user with another token of its own has another, and so has another credential.
	call := x.call(server.URL+"/?user=user-0-again", "once", "user-0")
	call.Caller = tool.NewCaller(call.Caller.Name, "caller-SECRET-user-0-again", time.Now().Add(time.Hour))
	run(t, e, call)
	call.Run.Credential.OAuth.Scopes = []string{"less"}
	run(t, e, call)
	if len(x.requests()) != users+2 || others.Load() != 0 {
		t.Errorf("%d exchanges, %d of another", len(x.requests()), others.Load())
	}
}

// TestExchangeAnswers: what is not the token that was asked for is not sent to the tool, and a refusal says whose matter it
// is; nothing shows a token or what the endpoint says.
func TestExchangeAnswers(t *testing.T) {
	t.Parallel()
	issued := func(members string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"access_token":"issued-SECRET"`+members+`}`)
		}
	}
	failed := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	const accessToken = `,"issued_token_type":"urn:ietf:params:oauth:token-type:access_token"`
	both := []string{tool.GrantTokenExchange, tool.GrantJWTBearer}
	for name, c := range map[string]struct {
		grants []string
		answer http.HandlerFunc
		want   refusal.Code
		says   string
	}{
		"as asked":            {both, issued(accessToken + `,"token_type":"bearer","scope":"read"`), "", ""},
		"with fewer scopes":   {both, issued(accessToken + `,"token_type":"bearer","scope":""`), "", ""},
		"without a kind":      {[]string{tool.GrantJWTBearer, tool.GrantEntraOBO}, issued(`,"token_type":"Bearer"`), "", ""},
		"with all consents":   {[]string{tool.GrantEntraOBO}, issued(`,"token_type":"Bearer","scope":"read email"`), "", ""},
		"no access token":     {both, issued(accessToken + `,"token_type":"N_A"`), refusal.ToolUnavailable, "another type than bearer"},
		"bound to a key":      {both, issued(accessToken + `,"token_type":"DPoP"`), refusal.ToolUnavailable, "another type than bearer"},
		"without a type":      {both, issued(accessToken), refusal.ToolUnavailable, "without a type"},
		"another kind":        {both, issued(`,"issued_token_type":"urn:ietf:params:oauth:token-type:id-jag","token_type":"Bearer"`), refusal.ToolUnavailable, "does not call an access token"},
		"of no kind":          {both[:1], issued(`,"token_type":"Bearer"`), refusal.ToolUnavailable, "does not call an access token"},
		"with more scopes":    {both, issued(accessToken + `,"token_type":"Bearer","scope":"read write"`), refusal.ToolUnavailable, "more scopes"},
		"a list of scopes":    {both, issued(accessToken + `,"token_type":"Bearer","scope":["read"]`), refusal.ToolUnavailable, "no text"},
		"the caller's own":    {both, failed(200, `{"access_token":"caller-SECRET-ann","token_type":"Bearer"`+accessToken+`}`), refusal.ToolUnavailable, "of the caller itself"},
		"garbage":             {both, failed(200, `{"access_token":"issued-SECRET`), refusal.ToolUnavailable, "gave no token"},
		"an unknown client":   {both, failed(401, `{"error":"invalid_client","error_description":"key-SECRET"}`), refusal.ToolUnavailable, "refused the client: invalid_client"},
		"an unknown grant":    {both, failed(400, `{"error":"unsupported_grant_type"}`), refusal.ToolUnavailable, "unsupported_grant_type"},
		"an error":            {both, failed(500, `caller-SECRET-ann`), refusal.ToolUnavailable, "HTTP status 500 and no token"},
		"a revoked token":     {both, failed(400, `{"error":"invalid_grant","error_description":"caller-SECRET-ann"}`), refusal.CredentialUnavailable, "did not exchange the caller's token: invalid_grant"},
		"another audience":    {both, failed(400, `{"error":"invalid_target"}`), refusal.CredentialUnavailable, "invalid_target"},
		"not acceptable":      {both, failed(400, `{"error":"invalid_request"}`), refusal.CredentialUnavailable, "invalid_request"},
		"a second factor":     {both, failed(400, `{"error":"interaction_required","claims":"SECRET"}`), refusal.StepUpRequired, "asks for the user: interaction_required"},
		"consent":             {both, failed(400, `{"error":"invalid_grant","suberror":"consent_required"}`), refusal.StepUpRequired, "asks for the user: consent_required"},
		"an unknown suberror": {both, failed(400, `{"error":"invalid_grant","suberror":"SECRET"}`), refusal.CredentialUnavailable, "invalid_grant"},
		"an unknown error":    {both, failed(400, `{"error":"SECRET"}`), refusal.ToolUnavailable, "HTTP status 400 and no token"},
	} {
		for _, grant := range c.grants {
			x, g := newTokenExchanger(t), newGiven(t)
			x.answers(c.answer)
			e := newEngine(t, engine.Options{ReadSecret: readSecrets})
			call := x.call(g.URL, "read", "ann")
			call.Run.Credential = x.credential(grant)
			call.Run.Credential.OAuth.Scopes = []string{"read"}
			result, err := e.Run(t.Context(), call)
			if got := code(t, err); got != c.want {
				t.Errorf("%s, %s: %v", name, grant, err)
				continue
			}
			if err == nil {
				continue
			}
			if result.Attempts != 0 || len(g.tokens()) != 0 {
				t.Errorf("%s, %s: the tool was given %q", name, grant, g.tokens())
			}
			expectSome(t, err, c.says)
			expectNone(t, err, "SECRET", "/token")
		}
	}
}

// TestExchangeFailuresAreTheirCallers: an exchange that failed is not tried again for a second, unless the user can help;
// another caller's is, and those that have a token do not need the endpoint.
func TestExchangeFailuresAreTheirCallers(t *testing.T) {
	t.Parallel()
	x, g := newTokenExchanger(t), newGiven(t)
	e, pass := newClockedEngine(t)
	if _, refused := run(t, e, x.call(g.URL, "read", "ann")); refused != "" {
		t.Fatal(refused)
	}
	fails := func(status int, body string) {
		x.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			io.WriteString(w, body)
		})
	}
	fails(400, `{"error":"invalid_grant"}`)
	for range 3 {
		if _, refused := run(t, e, x.call(g.URL, "read", "bob")); refused != refusal.CredentialUnavailable {
			t.Errorf("bob: %s", refused)
		}
	}
	if n := len(x.requests()); n != 2 {
		t.Errorf("%d exchanges; expected one of bob's", n)
	}
	fails(400, `{"error":"interaction_required"}`)
	for range 2 {
		if _, refused := run(t, e, x.call(g.URL, "read", "eve")); refused != refusal.StepUpRequired {
			t.Errorf("eve: %s", refused)
		}
	}
	if n := len(x.requests()); n != 4 {
		t.Errorf("%d exchanges; expected two of eve's", n)
	}
	x.answers(nil)
	pass(time.Second)
	for _, name := range []string{"ann", "bob", "eve"} {
		if _, refused := run(t, e, x.call(g.URL, "read", name)); refused != "" {
			t.Errorf("%s, later: %s", name, refused)
		}
	}
	x.Close()
	if _, refused := run(t, e, x.call(g.URL, "read", "ann")); refused != "" {
		t.Errorf("ann, without the endpoint: %s", refused)
	}
	if _, refused := run(t, e, x.call(g.URL, "read", "new")); refused != refusal.ToolUnavailable {
		t.Errorf("somebody new, without the endpoint: %s", refused)
	}
}

// TestExchangeEnds: a token is used until it ends, the caller's own does, or max_age is over; with less than 30 seconds of its
// own, the caller is sent away before anything is asked for, whatever is there for it.
func TestExchangeEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		expires string
		maxAge  time.Duration
		used    time.Duration // or less
	}{
		"max_age":         {`,"expires_in":3600`, 20 * time.Minute, 20 * time.Minute},
		"the default":     {`,"expires_in":3600`, 0, 5 * time.Minute},
		"its own end":     {`,"expires_in":600`, time.Hour, 10 * time.Minute},
		"an unknown end":  {``, time.Hour, 5 * time.Minute},
		"it ends at once": {`,"expires_in":0`, 0, 0},
	} {
		x, g := newTokenExchanger(t), newGiven(t)
		x.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"access_token":"issued","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer"`+c.expires+`}`)
		})
		e, pass := newClockedEngine(t)
		call := x.call(g.URL, "once", "ann")
		call.Run.Credential.OAuth.MaxAge = c.maxAge
		uses := func(after time.Duration, want int) {
			t.Helper()
			pass(after)
			if _, refused := run(t, e, call); refused != "" || len(x.requests()) != want {
				t.Errorf("%s, %s later: %q, %d exchanges; expected %d", name, after, refused, len(x.requests()), want)
			}
		}
		uses(0, 1)
		if c.used == 0 {
			uses(0, 2)
			continue
		}
		uses(c.used-time.Minute, 1)
		uses(time.Minute, 2)
	}

	x, g := newTokenExchanger(t), newGiven(t)
	e, pass := newClockedEngine(t)
	call := x.call(g.URL, "read", "ann")
	call.Caller = caller("ann", 4*time.Minute)
	run(t, e, call)
	pass(3 * time.Minute)
	if _, refused := run(t, e, call); refused != "" {
		t.Errorf("a minute before its end: %s", refused)
	}
	pass(40 * time.Second)
	result, err := e.Run(t.Context(), call)
	if code(t, err) != refusal.CredentialExpired || result.Attempts != 0 || len(g.tokens()) != 2 || len(x.requests()) != 1 {
		t.Errorf("20 seconds before its end: %v", err)
	}
	expectNone(t, err, "SECRET")
	call.Caller = nil
	if _, refused := run(t, e, call); refused != refusal.CredentialUnavailable || len(g.tokens()) != 2 || len(x.requests()) != 1 {
		t.Errorf("without a caller: %s", refused)
	}
}

// TestExchangeAbandoned: a call that waits for the exchange of another goes on by itself if that one is given up.
func TestExchangeAbandoned(t *testing.T) {
	t.Parallel()
	x, g := newTokenExchanger(t), newGiven(t)
	asked, first := make(chan struct{}), atomic.Bool{}
	x.answers(func(w http.ResponseWriter, r *http.Request) {
		if first.CompareAndSwap(false, true) {
			close(asked)
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"access_token":"issued","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer"}`)
	})
	e := newEngine(t, engine.Options{ReadSecret: readSecrets})
	given, giveUp := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := e.Run(given, x.call(g.URL, "read", "ann")); err == nil {
			t.Error("the call that was given up has a result")
		}
	})
	<-asked
	for range 5 {
		all.Go(func() {
			if _, err := e.Run(t.Context(), x.call(g.URL, "read", "ann")); err != nil {
				t.Error(err)
			}
		})
	}
	giveUp()
	all.Wait()
	if n := len(x.requests()); n != 2 {
		t.Errorf("%d exchanges", n)
	}
}

// TestExchangedTokenRejected: a token that the tool does not accept is exchanged for anew, once, and a call of the effect
// once is sent once; what only the user can help with says so.
func TestExchangedTokenRejected(t *testing.T) {
	t.Parallel()
	x, g := newTokenExchanger(t), newGiven(t)
	answers := func(status int, challenge string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.answer = func(w http.ResponseWriter, _ *http.Request) {
			if challenge != "" {
				w.Header().Set("WWW-Authenticate", challenge)
			}
			w.WriteHeader(status)
		}
	}
	e, _ := newClockedEngine(t)
	answers(http.StatusUnauthorized, "Bearer")
	result, err := e.Run(t.Context(), x.call(g.URL, "read", "ann"))
	if tokens := g.tokens(); code(t, err) != refusal.ToolFailed || result.Attempts != 2 || len(tokens) != 2 || tokens[0] == tokens[1] || len(x.requests()) != 2 {
		t.Errorf("%v after %d attempts: %q", err, result.Attempts, tokens)
	}
	expectSome(t, err, "does not let the user do this (HTTP status 401)")
	result, err = e.Run(t.Context(), x.call(g.URL, "once", "bob"))
	if code(t, err) != refusal.ToolFailed || result.Attempts != 1 || len(g.tokens()) != 3 || len(x.requests()) != 3 {
		t.Errorf("once: %v after %d attempts", err, result.Attempts)
	}
	for challenge, want := range map[string]refusal.Code{
		`Bearer error="insufficient_scope", scope="orders.write SECRET"`:                     refusal.StepUpRequired,
		`Bearer realm="x", ERROR=Insufficient_Scope`:                                         refusal.StepUpRequired,
		`Bearer authorization_uri="https://SECRET", error="insufficient_claims", claims="e"`: refusal.StepUpRequired,
		`Bearer error="insufficient_user_authentication", acr_values="SECRET"`:               refusal.StepUpRequired,
		`Bearer error="invalid_token"`:                                                       refusal.ToolFailed,
		``:                                                                                   refusal.ToolFailed,
	} {
		for _, status := range []int{http.StatusForbidden, http.StatusUnauthorized} {
			answers(status, challenge)
			_, err := e.Run(t.Context(), x.call(g.URL, "once", "eve"))
			if code(t, err) != want {
				t.Errorf("%d %s: %v", status, challenge, err)
			}
			expectNone(t, err, "SECRET")
		}
	}
}

// TestExchangedTokenRepeated: a result that has the token that was issued for the caller is not passed on.
func TestExchangedTokenRepeated(t *testing.T) {
	t.Parallel()
	x, g := newTokenExchanger(t), newGiven(t)
	g.answer = func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "you sent %s", r.Header) }
	e := newEngine(t, engine.Options{ReadSecret: readSecrets})
	result, err := e.Run(t.Context(), x.call(g.URL, "read", "ann"))
	if code(t, err) != refusal.InvalidResult || len(result.Body) != 0 {
		t.Errorf("%v with %q", err, result.Body)
	}
	expectNone(t, err, "SECRET")
}

// TestExchangeIsForHTTPAlone: no other type sends what stands for another, or the secret of the client.
func TestExchangeIsForHTTPAlone(t *testing.T) {
	t.Parallel()
	x, server := newTokenExchanger(t), newCanary(t)
	e := newEngine(t, engine.Options{ReadSecret: readSecrets, CallbackURL: func(string, time.Time) (string, error) { return "https://gateway.example/x", nil }})
	for _, kind := range []string{"callback", "oxp"} {
		call := x.call(server.URL, "read", "ann")
		call.Run.Type, call.Run.Tool, call.Run.MaxAge = kind, "Kit.Tool@1.0.0", time.Hour
		if _, refused := run(t, e, call); refused != refusal.ToolUnavailable || server.hits.Load() != 0 || len(x.requests()) != 0 {
			t.Errorf("%s: %s, %d requests", kind, refused, server.hits.Load())
		}
	}
}

// TestExchangeEndpoint: it may be at the addresses of the credential alone, and a call waits for it no longer than its
// timeout.
func TestExchangeEndpoint(t *testing.T) {
	t.Parallel()
	x, g := newTokenExchanger(t), newGiven(t)
	e := newEngine(t, engine.Options{ReadSecret: readSecrets})
	call := x.call(g.URL, "read", "ann")
	call.Run.Credential.OAuth.Addresses = nil
	if _, refused := run(t, e, call); refused != refusal.AddressBlocked || len(x.requests()) != 0 {
		t.Errorf("elsewhere: %s", refused)
	}
	x.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	call = x.call(g.URL, "read", "ann")
	call.Run.Timeout = 100 * time.Millisecond
	if _, refused := run(t, e, call); refused != refusal.ToolTimeout {
		t.Errorf("it hangs: %s", refused)
	}
	call.Run.Timeout, call.Run.Credential.OAuth.Timeout = patient, 100*time.Millisecond
	_, err := e.Run(t.Context(), call)
	if code(t, err) != refusal.ToolUnavailable {
		t.Errorf("it hangs: %v", err)
	}
	expectSome(t, err, "did not answer in time")
	if tokens := g.tokens(); len(tokens) != 0 {
		t.Errorf("the tool was given %q", tokens)
	}
}

// TestCallersArePrintedWithoutTokens: no verb shows the token of a caller, in a call or alone.
func TestCallersArePrintedWithoutTokens(t *testing.T) {
	t.Parallel()
	call := loopback("http://127.0.0.1", "read")
	call.Caller = caller("ann", time.Hour)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{call, &call, call.Caller, *call.Caller, []any{call.Caller}} {
			if text := fmt.Sprintf(verb, value); strings.Contains(text, "SECRET") || strings.Contains(text, fmt.Sprintf("%x", "SECRET")) {
				t.Errorf("%s of a %T: %s", verb, value, text)
			}
		}
	}
}
