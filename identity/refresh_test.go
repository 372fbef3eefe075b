package identity_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/identity"
)

// kept is a verifier whose Run is under way, on a clock that the test moves.
type kept struct {
	*identity.TokenVerifier
	clock   *clock
	why     *reasons
	fetched chan identity.RefreshResult
	stop    func() error
}

func keep(t *testing.T, o identity.TokenOptions) kept {
	t.Helper()
	k := kept{clock: newClock(), why: &reasons{}, fetched: make(chan identity.RefreshResult, 100)}
	o.Now, o.After, o.OnRefused = k.clock.Now, k.clock.After, k.why.add
	o.OnRefresh = func(r identity.RefreshResult) { k.fetched <- r }
	tokens, err := identity.NewTokenVerifier(o)
	must(err)
	k.TokenVerifier = tokens
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- tokens.Run(ctx) }()
	k.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { k.stop() })
	return k
}

// round lets what is waited for pass, and returns how long that was and what
// became of the fetch.
func (k kept) round(t *testing.T) (time.Duration, identity.RefreshResult) {
	t.Helper()
	w := k.clock.next(t)
	k.clock.pass(w)
	select {
	case r := <-k.fetched:
		return w.d, r
	case <-time.After(time.Minute):
		t.Fatal("nothing was fetched")
		return 0, identity.RefreshResult{}
	}
}

func TestRotation(t *testing.T) {
	k := private()
	i := newIssuer(t, false, jwkOf(k.p256, members{"kid": "one"}))
	v := keep(t, optionsFor(i.URL))
	forDays := members{"exp": epoch.Add(100 * time.Hour).Unix()}
	one := sign(`{"alg":"ES256","kid":"one"}`, with(goodClaims(i.URL), forDays), "ES256", k.p256)
	two := sign(`{"alg":"EdDSA","kid":"two"}`, with(goodClaims(i.URL), forDays), "EdDSA", k.ed)

	if d, r := v.round(t); d > 0 || r.Keys != 1 || r.Err != nil {
		t.Fatalf("first fetch after %v: %+v", d, r)
	}
	if v.Authenticate(one) == nil || v.Ready() != nil {
		t.Fatalf("the first key: %v, ready: %v", v.why.last(t), v.Ready())
	}
	// Both keys, then the second alone: what an issuer does that rotates.
	i.set(func(i *issuer) {
		i.keys = setOf(jwkOf(k.p256, members{"kid": "one"}), jwkOf(k.ed, members{"kid": "two"}))
	})
	w := v.clock.next(t)
	if w.d != 5*time.Minute {
		t.Errorf("the next fetch is in %v", w.d)
	}
	// A kid that is unknown brings the fetch forward, to 10 s after the last.
	v.clock.advance(time.Second)
	if v.Authenticate(two) != nil || v.why.last(t) != identity.UnknownKey {
		t.Fatal("a key that is not known yet")
	}
	if d, r := v.round(t); d != 9*time.Second || r.Keys != 2 {
		t.Fatalf("early fetch after %v: %+v", d, r)
	}
	if v.Authenticate(one) == nil || v.Authenticate(two) == nil {
		t.Fatalf("while both keys are there: %v", v.why.all)
	}
	i.set(func(i *issuer) { i.keys = setOf(jwkOf(k.ed, members{"kid": "two"})) })
	if d, r := v.round(t); d != 5*time.Minute || r.Keys != 1 {
		t.Fatalf("fetch after %v: %+v", d, r)
	}
	v.clock.next(t) // which the token brings forward
	if v.Authenticate(one) != nil || v.why.last(t) != identity.UnknownKey {
		t.Error("a key that was removed is believed")
	}
	if v.Authenticate(two) == nil {
		t.Error("the key that stayed is refused")
	}
	// All withdrawn: nobody is believed, and the gateway is not ready.
	i.set(func(i *issuer) { i.keys = []byte(`{"keys":[]}`) })
	if d, _ := v.round(t); d != 10*time.Second {
		t.Errorf("early fetch after %v", d)
	}
	if v.Authenticate(two) != nil || v.Ready() == nil {
		t.Error("a key that was withdrawn is believed")
	}
	if err := v.stop(); err != nil {
		t.Error(err)
	}
}

// TestEarlyIsBounded has many made-up kids ask for keys.
func TestEarlyIsBounded(t *testing.T) {
	i := newIssuer(t, false, fullSet()...)
	v := keep(t, optionsFor(i.URL))
	v.round(t)
	unknown := sign(`{"alg":"EdDSA","kid":"made-up"}`, with(goodClaims(i.URL), nil), "EdDSA", private().ed)
	v.clock.next(t)
	for n := 1; n <= 5; n++ {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 50 {
					if v.Authenticate(unknown) != nil {
						t.Error("a kid that is made up")
					}
				}
			})
		}
		all.Wait()
		if d, _ := v.round(t); d != 10*time.Second {
			t.Fatalf("early fetch %d comes %v after the one before", n, d)
		}
		v.clock.next(t)
		if got := i.fetches(); got != 1+n {
			t.Fatalf("%d fetches after %d early ones", got, n)
		}
	}
	// A refresh requested before the last fetch does not fetch again.
	v.stop()
	if n := len(v.clock.waits); n != 0 {
		t.Errorf("%d fetches more are waited for", n)
	}
}

func TestIssuerAway(t *testing.T) {
	i := newIssuer(t, false, fullSet()...)
	o := optionsFor(i.URL)
	o.StaleIfError = time.Hour
	v := keep(t, o)
	v.round(t)
	token := goodWith(i.URL, members{"exp": epoch.Add(10 * time.Hour).Unix()})
	i.set(func(i *issuer) {
		i.before = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte(canary))
		}
	})
	for n, want := range []time.Duration{5 * time.Minute, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second} {
		d, r := v.round(t)
		if d != want || r.Err == nil || r.Keys != 5 {
			t.Fatalf("fetch %d after %v, want %v: %+v", n, d, want, r)
		}
		quiet(t, r.Err.Error())
		if v.Authenticate(token) == nil || v.Ready() != nil {
			t.Fatalf("the last good keys are not used: %v, %v", v.why.all, v.Ready())
		}
	}
	w := v.clock.next(t)
	v.clock.advance(time.Hour)
	if v.Authenticate(token) != nil || v.why.last(t) != identity.NoKeys {
		t.Error("keys are used for longer than KeepFor")
	}
	if err := v.Ready(); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("ready: %v", err)
	} else {
		quiet(t, err.Error())
	}
	i.set(func(i *issuer) { i.before = nil })
	v.clock.pass(w)
	if r := <-v.fetched; r.Err != nil || v.Authenticate(token) == nil || v.Ready() != nil {
		t.Errorf("the issuer is back: %+v, %v", r, v.why.all)
	}
	if w := v.clock.next(t); w.d != 5*time.Minute {
		t.Errorf("after it is back, the next fetch is in %v", w.d)
	}
}

// TestIssuerGone stops the server itself.
func TestIssuerGone(t *testing.T) {
	i := newIssuer(t, false, fullSet()...)
	v := keep(t, optionsFor(i.URL))
	v.round(t)
	i.Close()
	if _, r := v.round(t); r.Err == nil {
		t.Fatal("a fetch from nowhere")
	}
	if v.Authenticate(goodWith(i.URL, nil)) == nil {
		t.Errorf("refused while the issuer is down: %v", v.why.last(t))
	}
}

// TestInherit: other rules hold for keys that are known before their source is
// asked, and the keys get no younger by it.
func TestInherit(t *testing.T) {
	i, timer := newIssuer(t, false, fullSet()...), newClock()
	o := optionsFor(i.URL)
	o.RootCAs = x509.NewCertPool()
	v := keep(t, o)
	v.round(t)
	i.Close()
	v.clock.advance(time.Minute)
	certified := x509.NewCertPool()
	certified.AddCert(newIssuer(t, true).Certificate())
	heir := func(change func(*identity.TokenOptions)) *identity.TokenVerifier {
		changed := o
		changed.RootCAs, changed.Now, changed.After = x509.NewCertPool(), v.clock.Now, timer.After
		change(&changed)
		tokens, err := identity.NewTokenVerifier(changed)
		must(err)
		tokens.AdoptKeys(v.TokenVerifier)
		return tokens
	}
	for name, c := range map[string]struct {
		change func(*identity.TokenOptions)
		ready  bool
	}{
		"another audience":     {func(o *identity.TokenOptions) { o.Audience = "other" }, true},
		"another issuer":       {func(o *identity.TokenOptions) { o.Issuer = "https://other.example" }, false},
		"another place":        {func(o *identity.TokenOptions) { o.JWKSURL = i.URL + "/keys" }, false},
		"a file":               {func(o *identity.TokenOptions) { o.JWKSFile = "keys.json" }, false},
		"other certificates":   {func(o *identity.TokenOptions) { o.RootCAs = certified }, false},
		"those of the system":  {func(o *identity.TokenOptions) { o.RootCAs = nil }, false},
		"keys kept for less":   {func(o *identity.TokenOptions) { o.Refresh, o.StaleIfError = 30*time.Second, 50*time.Second }, false},
		"keys kept for longer": {func(o *identity.TokenOptions) { o.StaleIfError = 48 * time.Hour }, true},
	} {
		if err := heir(c.change).Ready(); (err == nil) != c.ready {
			t.Errorf("%s: ready %v", name, err)
		}
	}
	tokens := heir(func(o *identity.TokenOptions) { o.Audience = "other" })
	if tokens.Authenticate(goodWith(i.URL, nil)) != nil || tokens.Authenticate(goodWith(i.URL, members{"aud": "other"})) == nil {
		t.Error("the old rules hold for the keys that were taken over")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- tokens.Run(ctx) }()
	if w := timer.next(t); w.d > 0 {
		t.Errorf("the keys that were taken over are fetched anew in %v", w.d)
	}
	cancel()
	must(<-done)
	none, err := identity.NewTokenVerifier(o)
	must(err)
	if none.AdoptKeys(nil); none.Ready() == nil {
		t.Error("keys were taken over from nobody")
	}
}

func TestJitter(t *testing.T) {
	i := newIssuer(t, false, fullSet()...)
	for random, want := range map[float64]time.Duration{0: 270 * time.Second, 0.5: 300 * time.Second, 0.999999: 330 * time.Second} {
		o := optionsFor(i.URL)
		o.Random = func() float64 { return random }
		v := keep(t, o)
		v.round(t)
		if d := v.clock.next(t).d; d.Round(time.Second) != want {
			t.Errorf("%v: %v, want %v", random, d, want)
		}
		v.stop()
	}
}

func TestRunOnce(t *testing.T) {
	i := newIssuer(t, false, fullSet()...)
	v := keep(t, optionsFor(i.URL))
	v.round(t)
	if v.Run(t.Context()) == nil {
		t.Error("two run at a time")
	}
	if err := v.stop(); err != nil {
		t.Error(err)
	}
	if got := v.TokenVerifier.Ready(); got != nil {
		t.Error(got)
	}
}

// TestStopWhileFetching ends the context while the issuer does not answer.
func TestStopWhileFetching(t *testing.T) {
	reached := make(chan struct{}, 10)
	i := newIssuer(t, false)
	i.set(func(i *issuer) {
		i.before = func(_ http.ResponseWriter, r *http.Request) { reached <- struct{}{}; <-r.Context().Done() }
	})
	v := keep(t, optionsFor(i.URL))
	v.clock.pass(v.clock.next(t))
	<-reached
	if err := v.stop(); err != nil {
		t.Error(err)
	}
	select {
	case r := <-v.fetched:
		t.Errorf("a fetch that nobody waits for is reported: %+v", r)
	default:
	}
}

func TestStart(t *testing.T) {
	i := newIssuer(t, false, fullSet()...)
	i.set(func(i *issuer) {
		i.before = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	})
	o := optionsFor(i.URL)
	o.After = newClock().After // no second attempt
	var reported error
	for o.StartupTimeout = 50 * time.Millisecond; o.StartupTimeout < time.Minute; o.StartupTimeout *= 2 {
		tokens, err := identity.NewTokenVerifier(o)
		must(err)
		if reported = tokens.Start(t.Context()); reported == nil || !strings.Contains(reported.Error(), "deadline exceeded") {
			break // else everything is so slow that there was no answer
		}
	}
	if reported == nil || !strings.Contains(reported.Error(), "status 500") {
		t.Errorf("started without keys: %v", reported)
	}
	o.StartWithoutKeys = true
	tokens, err := identity.NewTokenVerifier(o)
	must(err)
	if err := tokens.Start(t.Context()); err != nil || tokens.Ready() == nil {
		t.Errorf("start without keys: %v, ready %v", err, tokens.Ready())
	}
	// It comes up in between.
	c := newClock()
	o = optionsFor(i.URL)
	o.After = c.After
	tokens, err = identity.NewTokenVerifier(o)
	must(err)
	done := make(chan error)
	go func() { done <- tokens.Start(t.Context()) }()
	w := c.next(t)
	i.set(func(i *issuer) { i.before = nil })
	c.pass(w)
	if err := <-done; err != nil || tokens.Ready() != nil {
		t.Errorf("the issuer came up: %v, %v", err, tokens.Ready())
	}
	// A context that has ended.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tokens, err = identity.NewTokenVerifier(optionsFor(i.URL))
	must(err)
	if tokens.Start(ctx) == nil {
		t.Error("started though the context had ended")
	}
}

func TestKeyFile(t *testing.T) {
	k := private()
	path := filepath.Join(t.TempDir(), "keys.json")
	must(os.WriteFile(path, setOf(jwkOf(k.ed, members{"kid": "ed"})), 0o600))
	o := optionsFor("urn:example:issuer")
	o.JWKSFile = path
	v := keep(t, o)
	v.round(t)
	token := goodWith("urn:example:issuer", members{"exp": epoch.Add(10 * time.Hour).Unix()})
	if v.Authenticate(token) == nil {
		t.Fatalf("refused: %v", v.why.last(t))
	}
	for name, break_ := range map[string]func(){
		"gone":      func() { must(os.Remove(path)) },
		"cut":       func() { must(os.WriteFile(path, []byte(`{"keys":[{"kid":"`+canary), 0o600)) },
		"too large": func() { must(os.WriteFile(path, append([]byte(`{"keys":[]}`), make([]byte, 1<<20)...), 0o600)) },
		"a folder":  func() { must(errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o700))) },
	} {
		os.RemoveAll(path)
		must(os.WriteFile(path, setOf(jwkOf(k.ed, members{"kid": "ed"})), 0o600))
		break_()
		_, r := v.round(t)
		if r.Err == nil || !strings.Contains(r.Err.Error(), path) || v.Authenticate(token) == nil {
			t.Errorf("%s: %+v", name, r)
		} else {
			quiet(t, r.Err.Error())
		}
	}
	os.RemoveAll(path)
	must(os.WriteFile(path, setOf(jwkOf(k.p256, members{"kid": "ec"})), 0o600))
	if _, r := v.round(t); r.Err != nil || v.Authenticate(token) != nil {
		t.Errorf("a file without the key: %+v", r)
	}
}
