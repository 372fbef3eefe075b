package identity_test

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/identity"
)

// TestIssuerFaults has an issuer that answers wrongly in each way: the fetch
// fails, in bounded time, and its error shows nothing of the answer.
func TestIssuerFaults(t *testing.T) {
	var canaryHits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		canaryHits.Add(1)
		w.Write(setOf(jwkOf(private().ed, members{"kid": "ed"})))
	}))
	defer elsewhere.Close()
	answer := func(status int, body string) func(*issuer) {
		return func(i *issuer) {
			i.before = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); w.Write([]byte(body)) }
		}
	}
	keys := func(document string) func(*issuer) { return func(i *issuer) { i.keys = []byte(document) } }
	found := func(m members) func(*issuer) {
		return func(i *issuer) {
			i.discovery = with(members{"issuer": i.URL, "jwks_uri": i.URL + "/keys"}, m)
		}
	}
	many := make([]members, 101)
	for n := range many {
		many[n] = jwkOf(private().ed, nil)
	}
	for name, c := range map[string]struct {
		change func(*issuer)
		says   string
	}{
		"500":                         {answer(500, canary), "status 500"},
		"204":                         {answer(204, ""), "status 204"},
		"401":                         {answer(401, canary), "status 401"},
		"discovery is HTML":           {answer(200, "<html>"+canary), "not one JSON object"},
		"discovery of another issuer": {found(members{"issuer": "https://" + canary}), "another issuer"},
		"discovery without issuer":    {found(members{"issuer": nil, "Issuer": "x"}), "another issuer"},
		"discovery without keys":      {found(members{"jwks_uri": nil}), "no jwks_uri"},
		"keys over plain http":        {found(members{"jwks_uri": "http://" + canary + ".example/keys"}), "http beyond loopback"},
		"keys in a file":              {found(members{"jwks_uri": "file:///etc/passwd"}), "no URL with a host"},
		"keys of another scheme":      {found(members{"jwks_uri": "ftp://" + canary + "/keys"}), "another scheme"},
		"keys with a user":            {found(members{"jwks_uri": "http://" + canary + ":b@127.0.0.1/keys"}), "a URL with a user"},
		"keys over https from http":   {found(members{"jwks_uri": "https://" + canary + ".example/keys"}), "another scheme than the issuer"},
		"discovery with a name twice": {func(i *issuer) {
			i.discovery = `{"issuer":"` + i.URL + `","jwks_uri":"` + elsewhere.URL + `","jwks_uri":"` + i.URL + `/keys"}`
		}, "one name twice"},
		"keys are no JSON":        {keys(canary), "not one JSON object"},
		"keys are a list":         {keys(`[]`), "not one JSON object"},
		"keys without keys":       {keys(`{"Keys":[]}`), `no list "keys"`},
		"keys of an object":       {keys(`{"keys":{}}`), `no list "keys"`},
		"a key that is no object": {keys(`{"keys":["` + canary + `"]}`), "key 1 is not an object"},
		"keys with a name twice":  {keys(`{"keys":[{"kty":"OKP","kty":"RSA"}]}`), "one name twice"},
		"keys nested too deeply":  {keys(`{"keys":[` + strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100) + `]}`), "nested too deeply"},
		"too many keys":           {func(i *issuer) { i.keys = setOf(many...) }, "more than 100 keys"},
		"one kid for two keys": {func(i *issuer) {
			i.keys = setOf(jwkOf(private().rsa, members{"kid": "a"}), jwkOf(private().rsa2, members{"kid": "a"}))
		}, "key 2 has the kid"},
		"a huge document": {keys(`{"keys":[],"x":"` + strings.Repeat("a", 1<<20) + `"}`), "more than 1048576 bytes"},
		"an endless document": {func(i *issuer) {
			i.before = func(w http.ResponseWriter, r *http.Request) {
				for block := []byte(strings.Repeat(" ", 1<<16)); r.Context().Err() == nil; {
					if _, err := w.Write(block); err != nil {
						return
					}
				}
			}
		}, "more than 1048576 bytes"},
		"huge headers": {func(i *issuer) {
			i.before = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("a", 1<<17)) }
		}, "exceeded"},
		"no answer": {func(i *issuer) { i.before = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() } }, "deadline exceeded"},
		"an answer that stops": {func(i *issuer) {
			i.before = func(w http.ResponseWriter, r *http.Request) {
				w.Write([]byte(`{"keys":`))
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		}, "deadline exceeded"},
		"a connection that is cut": {func(i *issuer) {
			i.before = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		}, "EOF"},
		"a redirect to another host": {func(i *issuer) {
			i.before = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }
		}, "redirect to another host"},
		"a redirect with a user": {func(i *issuer) {
			i.before = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://"+canary+":b@"+r.Host+"/", http.StatusFound)
			}
		}, "redirect to another host"},
		"a redirect without end": {func(i *issuer) {
			i.before = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) }
		}, "more than 3 redirects"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t, false, jwkOf(private().ed, members{"kid": "ed"}))
			i.set(c.change)
			var result identity.RefreshResult
			o := optionsFor(i.URL)
			o.StartWithoutKeys, o.Timeout = true, time.Minute
			if c.says == "deadline exceeded" {
				o.Timeout = 300 * time.Millisecond
			}
			o.OnRefresh = func(r identity.RefreshResult) { result = r }
			tokens := started(t, o)
			err := tokens.Ready()
			if err == nil || result.Err == nil {
				t.Fatal("it is taken")
			}
			for _, said := range []string{err.Error(), result.Err.Error()} {
				quiet(t, said)
				if !strings.Contains(said, c.says) || !strings.Contains(said, i.URL) {
					t.Errorf("%q does not name %q and the issuer", said, c.says)
				}
			}
			if tokens.Authenticate(goodWith(i.URL, nil)) != nil {
				t.Error("somebody is let in")
			}
		})
	}
	if n := canaryHits.Load(); n != 0 {
		t.Errorf("another host was asked %d times", n)
	}
}

func TestSecureIssuer(t *testing.T) {
	var plainHits atomic.Int64
	i := newIssuer(t, true, fullSet()...)
	clear := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		plainHits.Add(1)
		w.Write(setOf(jwkOf(private().ed, members{"kid": "ed"})))
	}))
	defer clear.Close()
	o := optionsFor(i.URL)
	o.StartWithoutKeys = true
	if err := started(t, o).Ready(); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %v", err)
	}
	o.RootCAs = x509.NewCertPool()
	o.RootCAs.AddCert(i.Certificate())
	tokens := started(t, o)
	if tokens.Ready() != nil || tokens.Authenticate(goodWith(i.URL, nil)) == nil {
		t.Errorf("refused: %v", tokens.Ready())
	}
	i.set(func(i *issuer) { i.discovery = with(nil, members{"issuer": i.URL, "jwks_uri": clear.URL}) })
	if err := started(t, o).Ready(); err == nil || !strings.Contains(err.Error(), "another scheme than the issuer") {
		t.Errorf("keys in the clear on loopback: %v", err)
	}
	i.set(func(i *issuer) {
		i.discovery = ""
		i.before = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, clear.URL, http.StatusFound) }
	})
	if err := started(t, o).Ready(); err == nil || !strings.Contains(err.Error(), "redirect to another host") {
		t.Errorf("a redirect into the clear: %v", err)
	}
	i.set(func(i *issuer) {
		i.before = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+r.URL.Path, http.StatusFound)
		}
	})
	if err := started(t, o).Ready(); err == nil || !strings.Contains(err.Error(), "redirect to another host") {
		t.Errorf("a redirect into the clear on the same host: %v", err)
	}
	if n := plainHits.Load(); n != 0 {
		t.Errorf("keys were fetched in the clear %d times", n)
	}
}

// TestInTheClearIsLoopback has a name that passes for loopback lead elsewhere.
// The address is of a network that is for examples alone (RFC 5737).
func TestInTheClearIsLoopback(t *testing.T) {
	if err := identity.FetchInTheClear(t.Context(), "http://192.0.2.1:9/"); err == nil || !strings.Contains(err.Error(), "not loopback") {
		t.Errorf("%v", err)
	}
}

// TestKeyURL also follows a redirect, which stays on its host.
func TestKeyURL(t *testing.T) {
	i := newIssuer(t, false, fullSet()...)
	i.set(func(i *issuer) {
		i.before = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/old" {
				http.Redirect(w, r, "/new?"+r.URL.RawQuery, http.StatusFound)
				return
			}
			if encodings := r.Header.Get("Accept-Encoding"); encodings != "" {
				t.Errorf("the encodings %q are accepted", encodings)
			}
			w.Write(i.keys)
		}
	})
	o := optionsFor("https://issuer.example")
	o.JWKSURL = i.URL + "/old?secret=" + canary
	tokens := started(t, o)
	if tokens.Authenticate(goodWith("https://issuer.example", nil)) == nil {
		t.Error("refused")
	}
	o.StartWithoutKeys = true
	i.Close()
	err := started(t, o).Ready()
	if err == nil || !strings.Contains(err.Error(), i.URL+"/old") {
		t.Errorf("ready: %v", err)
	} else {
		quiet(t, err.Error())
	}
}

// TestNoProxy has an environment that names a proxy for everything. It is read
// once by a process, so this is one of its own.
func TestNoProxy(t *testing.T) {
	const inside = "CALLGATE_TEST_BEHIND_PROXY"
	if os.Getenv(inside) == "" {
		var hits atomic.Int64
		proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
		defer proxy.Close()
		self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoProxy$", "-test.v")
		self.Env = append(os.Environ(), inside+"=1")
		for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY=", "no_proxy="} {
			if !strings.HasSuffix(name, "=") {
				name += "=" + proxy.URL
			}
			self.Env = append(self.Env, name)
		}
		if out, err := self.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: TestNoProxy") {
			t.Errorf("%v: %s", err, out)
		}
		if n := hits.Load(); n != 0 {
			t.Errorf("the proxy was asked %d times", n)
		}
		return
	}
	// A name of .invalid is resolved by nobody: only a proxy would answer.
	o := optionsFor("https://issuer.invalid")
	o.StartWithoutKeys, o.Timeout = true, 300*time.Millisecond
	if started(t, o).Ready() == nil {
		t.Error("an issuer that is not there has answered")
	}
}

// TestPipeIsNoKeyFile would wait for a writer for ever.
func TestPipeIsNoKeyFile(t *testing.T) {
	path := t.TempDir() + "/pipe"
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	o := optionsFor("https://issuer.example")
	o.JWKSFile, o.StartWithoutKeys = path, true
	if err := started(t, o).Ready(); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("ready: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
