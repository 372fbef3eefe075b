package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
)

// tokenMain is the main file of a gateway that believes tokens, without its last
// lines.
func tokenMain(keys string) string {
	return "server: {" + anyPort + "}\nauth: {mode: jwt, jwt: {" + keys + "}}\n"
}

// tokenConfig is a configuration with tokens and one tool, echo.
func tokenConfig(t testing.TB, keys string) (config, data string) {
	t.Helper()
	return layout(t, map[string]string{
		"callgate.yaml":   tokenMain(keys),
		"policy.csv":      "p, Analyst, *, *, , allow\np, Intern, *, *, , allow\np, Spy, *, *, , allow\n",
		"workspaces.yaml": "workspaces:\n  acme: {projects: {alpha: {agents: [Analyst, Intern]}, beta: {agents: [Analyst, Intern]}}}\n  globex: {projects: {gamma: {agents: [Spy]}}}\n",
		"tools/echo.yaml": "tools:\n  - {name: echo, effect: read, input_schema: {type: object, properties: {n: {type: integer}}}, run: {type: demo}}\n",
	})
}

// of are the keys of auth.jwt that cannot be left out.
func of(issuer string) string { return fmt.Sprintf("issuer: %q, audience: callgate", issuer) }

// as makes a call with a token, and returns its status and code.
func (g *gate) as(t testing.TB, token string, headers ...string) (int, string) {
	t.Helper()
	r := g.call(t, echoCall, append(headers, "Authorization", "Bearer "+token)...)
	return r.status, r.code()
}

// edit replaces the main file of a configuration in one step.
func edit(t testing.TB, config, data, main string) {
	t.Helper()
	if err := os.WriteFile(config+".new", []byte(main+"data_dir: "+data+"\n# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(config+".new", config); err != nil {
		t.Fatal(err)
	}
}

// TestTokens: a good token is let in as what it says, and no further; every other
// is answered alike, and nothing of any is written anywhere.
func TestTokens(t *testing.T) {
	t.Parallel()
	known, stranger := newSigner(t, "k1"), newSigner(t, "k1")
	from := newIssuer(t, known)
	config, data := tokenConfig(t, of(from.URL))
	g := serveGate(t, config)
	good := known.token(t, from.URL, nil)
	header, rest, _ := strings.Cut(good, ".")
	claims, signature, _ := strings.Cut(rest, ".")
	hour := time.Hour
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + claims + "."

	secrets := []string{signature, claims, "canary-claim"}
	for name, c := range map[string]struct {
		token   string
		headers []string
		status  int
		code    string
	}{
		"good":                  {good, nil, 200, ""},
		"two agents, none":      {known.token(t, from.URL, members{"callgate_agents": "Analyst Intern"}), nil, 403, "agent_required"},
		"two agents, one":       {known.token(t, from.URL, members{"callgate_agents": "Analyst Intern"}), []string{"Callgate-Agent", "Intern"}, 200, ""},
		"another agent":         {good, []string{"Callgate-Agent", "Intern"}, 403, "agent_mismatch"},
		"an agent of nowhere":   {known.token(t, from.URL, members{"callgate_agents": []string{"Nobody"}}), nil, 403, "agent_unknown"},
		"another workspace":     {good, []string{"Callgate-Workspace", "globex"}, 403, "workspace_mismatch"},
		"another project":       {good, []string{"Callgate-Project", "beta"}, 403, "project_mismatch"},
		"several audiences":     {known.token(t, from.URL, members{"aud": []string{"other", "callgate"}}), nil, 200, ""},
		"just expired":          {known.token(t, from.URL, members{"exp": at(-10 * time.Second)}), nil, 200, ""}, // within the skew
		"no token":              {"", nil, 401, "unauthenticated"},
		"no three parts":        {"canary-claim", nil, 401, "unauthenticated"},
		"not signed":            {unsigned, nil, 401, "unauthenticated"},
		"no signature":          {header + "." + claims + ".", nil, 401, "unauthenticated"},
		"other claims":          {header + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"canary-claim":1}`)) + "." + signature, nil, 401, "unauthenticated"},
		"of a stranger":         {stranger.token(t, from.URL, nil), nil, 401, "unauthenticated"},
		"of an unknown key":     {signer{"k9", stranger.private}.token(t, from.URL, nil), nil, 401, "unauthenticated"},
		"its own key":           {stranger.sign(t, members{"alg": "EdDSA", "jwk": members{"kty": "OKP"}}, members{}), nil, 401, "unauthenticated"},
		"critical header":       {known.sign(t, members{"alg": "EdDSA", "kid": "k1", "crit": []string{"exp"}}, members{}), nil, 401, "unauthenticated"},
		"another type":          {known.sign(t, members{"alg": "EdDSA", "kid": "k1", "typ": "dpop+jwt"}, members{}), nil, 401, "unauthenticated"},
		"symmetric":             {known.sign(t, members{"alg": "HS256", "kid": "k1"}, members{}), nil, 401, "unauthenticated"},
		"expired":               {known.token(t, from.URL, members{"exp": at(-hour)}), nil, 401, "unauthenticated"},
		"without an end":        {known.token(t, from.URL, members{"exp": nil}), nil, 401, "unauthenticated"},
		"not yet":               {known.token(t, from.URL, members{"nbf": at(hour)}), nil, 401, "unauthenticated"},
		"of the future":         {known.token(t, from.URL, members{"iat": at(hour)}), nil, 401, "unauthenticated"},
		"of another issuer":     {known.token(t, from.URL+"/", nil), nil, 401, "unauthenticated"},
		"for somebody else":     {known.token(t, from.URL, members{"aud": "other"}), nil, 401, "unauthenticated"},
		"for nobody":            {known.token(t, from.URL, members{"aud": nil}), nil, 401, "unauthenticated"},
		"without a name":        {known.token(t, from.URL, members{"sub": nil}), nil, 401, "unauthenticated"},
		"without agents":        {known.token(t, from.URL, members{"callgate_agents": nil}), nil, 401, "unauthenticated"},
		"a role for an agent":   {known.token(t, from.URL, members{"callgate_agents": []string{"role:admin"}}), nil, 401, "unauthenticated"},
		"without projects":      {known.token(t, from.URL, members{"callgate_projects": nil}), nil, 401, "unauthenticated"},
		"a workspace of two":    {known.token(t, from.URL, members{"callgate_workspace": []string{"acme", "globex"}}), nil, 401, "unauthenticated"},
		"a claim with a secret": {known.token(t, from.URL, members{"aud": "canary-claim"}), nil, 401, "unauthenticated"},
	} {
		status, code := g.as(t, c.token, c.headers...)
		if status != c.status || code != c.code {
			t.Errorf("%s: %d %s, want %d %s", name, status, code, c.status, c.code)
		}
	}
	if status, _ := g.as(t, good); status != 200 {
		t.Errorf("afterwards the good one: %d", status)
	}
	for reason, n := range map[string]string{"signature": "3", "unknown_key": "1", "expired": "1", "not_yet": "2", "issuer": "1"} {
		if !g.counts(t, `callgate_tokens_refused_total{reason="`+reason+`"}`, n) {
			t.Errorf("the metrics do not say that %s were refused for %s", n, reason)
		}
	}
	if !g.counts(t, `callgate_key_fetches_total{result="fetched"}`, "1") {
		t.Error("the metrics do not say that the keys were fetched once")
	}
	visible := g.askAdmin(t, "/readyz").body + g.askAdmin(t, "/metrics").body
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	for _, r := range verified(t, data) {
		if principal := r["principal"]; principal != "jwt:"+from.URL+"#alice" {
			t.Errorf("the log holds a record of %v", principal)
		}
	}
	unseen(t, g, data, secrets...)
	for _, s := range secrets {
		if strings.Contains(visible, s) {
			t.Errorf("the admin listener says %q", s)
		}
	}
}

// TestKeysRotate: while the issuer is away its keys are used; when it is back with
// others, who has a token of those is let in, and who has one of the old is not.
func TestKeysRotate(t *testing.T) {
	for _, way := range []string{"discovery", "file"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			first, second := newSigner(t, "k1"), newSigner(t, "k2")
			from := newIssuer(t, first)
			more := ", refresh: 10s"
			set := func(keys []byte, away bool) { from.set(keys, away) }
			if way == "file" {
				path := filepath.Join(t.TempDir(), "keys.json")
				more += ", jwks_file: " + path
				set = func(keys []byte, away bool) {
					if away {
						keys = []byte("{")
					}
					if err := os.WriteFile(path, keys, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				set(keySet(t, first), false)
			}
			config, _ := tokenConfig(t, of(from.URL)+more)
			g := serveGate(t, config)
			old, other := first.token(t, from.URL, nil), second.token(t, from.URL, nil)
			lets := func(when string, token string, want int) {
				t.Helper()
				if status, _ := g.as(t, token); status != want {
					t.Errorf("%s: %d, want %d", when, status, want)
				}
			}
			lets("at first, the old", old, 200)
			set(nil, true)
			eventually(t, "a fetch has failed", func() bool {
				return strings.Contains(g.askAdmin(t, "/metrics").body, `callgate_key_fetches_total{result="failed"}`)
			})
			lets("while the issuer is away, the old", old, 200)
			if o := g.operators(t); !o.Ready || o.Callers != "" {
				t.Errorf("while the issuer is away, the operator reads %+v", o)
			}
			set(keySet(t, second), false)
			eventually(t, "the new token is let in", func() bool { status, _ := g.as(t, other); return status == 200 })
			lets("afterwards, the old", old, 401)
			if code := g.stop(t); code != exitAccepted {
				t.Errorf("exit code %d", code)
			}
			for _, line := range []string{"JWKS refresh failed; using cached keys", "JWKS refresh succeeded again"} {
				if strings.Count(g.stderr.String(), line) != 1 {
					t.Errorf("the log does not say once: %s", line)
				}
			}
		})
	}
}

// TestTokensReload: another audience and another issuer are live without a
// restart, and an issuer whose keys cannot be had takes the place of none, even
// where a start would not wait for them.
func TestTokensReload(t *testing.T) {
	t.Parallel()
	one, two := newSigner(t, "k1"), newSigner(t, "k2")
	first, second := newIssuer(t, one), newIssuer(t, two)
	config, data := tokenConfig(t, of(first.URL))
	g := serveGate(t, config)
	lets := func(token string) bool { status, _ := g.as(t, token); return status == 200 }
	good, elsewhere, later := one.token(t, first.URL, nil), one.token(t, first.URL, members{"aud": "other"}), two.token(t, second.URL, nil)
	if !lets(good) || lets(elsewhere) || lets(later) {
		t.Fatal("at first others are let in than should be")
	}

	edit(t, config, data, tokenMain(fmt.Sprintf("issuer: %q, audience: other", first.URL)))
	eventually(t, "the other audience is let in", func() bool { return lets(elsewhere) })
	if lets(good) {
		t.Error("the old audience is let in beside the new")
	}

	second.set(nil, true)
	edit(t, config, data, tokenMain(of(second.URL)+", start_without_keys: true"))
	eventually(t, "the broken issuer is reported", func() bool { return strings.Contains(strings.Join(g.operators(t).Faults, " "), second.URL) })
	if o := g.operators(t); !o.Ready || o.Callers != "" || len(o.Faults) != 1 || !strings.Contains(o.Faults[0], "auth.jwt: found no keys that tokens can be verified with") {
		t.Errorf("the operator reads %+v", o)
	}
	if !lets(elsewhere) || lets(later) {
		t.Error("a broken issuer has changed who is let in")
	}

	second.set(keySet(t, two), false) // nobody touches the files
	eventually(t, "the new issuer is believed", func() bool { return lets(later) })
	if lets(elsewhere) {
		t.Error("the old issuer is believed beside the new")
	}
	eventually(t, "the operator reads of no fault", func() bool { return len(g.operators(t).Faults) == 0 })

	// The mode waits for a restart, and so tokens go on being needed.
	edit(t, config, data, "server: {"+anyPort+"}\nauth: {mode: none}\n")
	eventually(t, "the missing issuer is reported", func() bool { return strings.Contains(strings.Join(g.operators(t).Faults, " "), "found no auth.jwt") })
	if !lets(later) || lets("") || g.call(t, echoCall).status != 401 {
		t.Error("a mode that waits for a restart has changed who is let in")
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	if n := strings.Count(g.stderr.String(), second.URL); n > 3 {
		t.Errorf("the log names the broken issuer %d times; it is asked at each look", n)
	}
}

// TestRulesWhileTheIssuerIsAway: to shut everybody out takes no issuer that
// answers, since the keys are known.
func TestRulesWhileTheIssuerIsAway(t *testing.T) {
	t.Parallel()
	key := newSigner(t, "k1")
	from := newIssuer(t, key)
	config, data := tokenConfig(t, of(from.URL))
	g := serveGate(t, config)
	lets := func(token string) bool { status, _ := g.as(t, token); return status == 200 }
	old, other := key.token(t, from.URL, nil), key.token(t, from.URL, members{"aud": "other"})
	if !lets(old) || lets(other) {
		t.Fatal("at first others are let in than should be")
	}
	from.set(nil, true)
	edit(t, config, data, tokenMain(fmt.Sprintf("issuer: %q, audience: other", from.URL)))
	eventually(t, "the old audience is shut out", func() bool { return !lets(old) })
	if o := g.operators(t); !lets(other) || !o.Ready || len(o.Faults) > 0 {
		t.Errorf("the new audience is not let in, or the operator reads %+v", o)
	}
	later := newSigner(t, "k2")
	from.set(keySet(t, later), false)
	eventually(t, "the keys are fetched again", func() bool { return lets(later.token(t, from.URL, members{"aud": "other"})) })
	if lets(other) {
		t.Error("a key that was taken away is believed")
	}
}

// silent is an issuer that takes questions and never answers. asked tells that one
// has come.
func silent(t testing.TB) (url string, requested <-chan struct{}) {
	t.Helper()
	came, over := make(chan struct{}, 100), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		came <- struct{}{}
		<-over
	}))
	t.Cleanup(func() { close(over); server.Close() })
	return server.URL, came
}

// TestEndsWhileItWaitsForKeys: a process that is stopped while it waits for keys ends in
// order, and reports no failure.
func TestEndsWhileItWaitsForKeys(t *testing.T) {
	t.Parallel()
	t.Run("at the start", func(t *testing.T) {
		from, requested := silent(t)
		config, data := tokenConfig(t, of(from))
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c := process(ctx, nil, "serve", "--config", config)
		var log syncBuffer
		c.Stderr = &log
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		<-requested
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := c.Wait(); err != nil || strings.Contains(log.String(), "callgate: ") || !strings.Contains(log.String(), `"level":"INFO","msg":"stopped before serving"`) {
			t.Errorf("%v, with the log %s", err, log.String())
		}
		if _, err := os.Stat(data); err == nil {
			t.Error("it has opened the data folder")
		}
	})
	t.Run("in a reload", func(t *testing.T) {
		ends := func() time.Duration {
			key := newSigner(t, "k1")
			config, data := tokenConfig(t, of(newIssuer(t, key).URL))
			g := serveGate(t, config)
			from, requested := silent(t)
			edit(t, config, data, tokenMain(of(from)+", timeout: 1m"))
			<-requested
			began := time.Now()
			if code := g.stop(t); code != exitAccepted || strings.Contains(g.stderr.String(), "configuration reload failed") {
				t.Errorf("exit code %d, with the log %s", code, g.stderr.String())
			}
			return time.Since(began)
		}
		// A machine that is busy with something else may need more than one try.
		took := ends()
		for try := 1; try < 4 && took >= app.ReloadTimeout/2; try++ {
			took = ends()
		}
		if took >= app.ReloadTimeout/2 {
			t.Errorf("it ended after %v, though nobody waits for the keys any more", took)
		}
	})
}

// TestNoIssuerAtTheStart: a gateway that could let nobody in does not start, or
// says that it is not ready until it can.
func TestNoIssuerAtTheStart(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for keys, says := range map[string]string{
		of(gone.URL) + ", startup_timeout: 100ms":                                      "the keys of the issuer " + gone.URL,
		of(gone.URL) + ", startup_timeout: 100ms, jwks_file: /nowhere/keys.json":       "the key file /nowhere/keys.json",
		of(gone.URL) + ", startup_timeout: 100ms, jwks_url: \"" + gone.URL + "/?k=1\"": "the keys at " + gone.URL + "/:",
	} {
		config, data := tokenConfig(t, keys)
		code, stdout, stderr := command(t, nil, "serve", "--config", config)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, "callgate: auth.jwt: found no keys that tokens can be verified with") || !strings.Contains(stderr, says) || !strings.Contains(stderr, "start_without_keys: true") {
			t.Errorf("%s: exit code %d: %s%s\nexpected %q", keys, code, stdout, stderr, says)
		}
		if _, err := os.Stat(data); err == nil {
			t.Errorf("%s: it has opened the data folder", keys)
		}
	}

	key := newSigner(t, "k1")
	from := newIssuer(t, key)
	from.set(nil, true)
	config, _ := tokenConfig(t, of(from.URL)+", start_without_keys: true")
	g := serveGate(t, config)
	token := key.token(t, from.URL, nil)
	if status, code := g.as(t, token); status != 401 || code != "unauthenticated" {
		t.Errorf("without keys: %d %s", status, code)
	}
	if o := g.operators(t); o.Ready || !strings.Contains(o.Callers, "no keys yet") {
		t.Errorf("without keys, the operator reads %+v", o)
	}
	if r := g.ask(t, http.MethodGet, "/readyz", ""); r.status != 503 || strings.Contains(r.body, from.URL) {
		t.Errorf("without keys, /readyz: %d %s", r.status, r.body)
	}
	if r := g.ask(t, http.MethodGet, "/healthz", ""); r.status != 200 {
		t.Errorf("without keys, /healthz: %d", r.status)
	}
	from.set(keySet(t, key), false)
	eventually(t, "the token is let in", func() bool { status, _ := g.as(t, token); return status == 200 })
	if o := g.operators(t); !o.Ready || o.Callers != "" {
		t.Errorf("with keys, the operator reads %+v", o)
	}
	if r := g.ask(t, http.MethodGet, "/readyz", ""); r.status != 200 {
		t.Errorf("with keys, /readyz: %d", r.status)
	}
}
