package identity_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/callgate/callgate/identity"
)

// ring is the private keys of the tests, made once.
type ring struct {
	rsa, rsa2, small *rsa.PrivateKey
	p256, p384       *ecdsa.PrivateKey
	ed               ed25519.PrivateKey
}

var private = sync.OnceValue(func() ring {
	rsaKey := func(bits int) *rsa.PrivateKey { k, err := rsa.GenerateKey(rand.Reader, bits); must(err); return k }
	ecKey := func(c elliptic.Curve) *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(c, rand.Reader)
		must(err)
		return k
	}
	return ring{
		rsa: rsaKey(2048), rsa2: rsaKey(2048), small: rsaKey(1024), p256: ecKey(elliptic.P256()), p384: ecKey(elliptic.P384()),
		ed: ed25519.NewKeyFromSeed([]byte("callgate's tests sign with this.")),
	}
})

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// members are those of a JSON object, in no order.
type members = map[string]any

func b64(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// jwkOf is the JWK of a key, with what more is given.
func jwkOf(signer crypto.Signer, more members) members {
	m := members{}
	switch k := signer.Public().(type) {
	case *rsa.PublicKey:
		m["kty"], m["n"], m["e"] = "RSA", b64(k.N.Bytes()), b64(big.NewInt(int64(k.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		must(err)
		size := len(point) / 2
		m["kty"], m["crv"], m["x"], m["y"] = "EC", k.Params().Name, b64(point[1:1+size]), b64(point[1+size:])
	case ed25519.PublicKey:
		m["kty"], m["crv"], m["x"] = "OKP", "Ed25519", b64(k)
	}
	for name, value := range more {
		m[name] = value
	}
	return m
}

func setOf(jwks ...members) []byte {
	raw, err := json.Marshal(members{"keys": jwks})
	must(err)
	return raw
}

// sign makes a token of the bytes of a header and of claims.
func sign(header, claims, alg string, key any) string {
	signed := b64([]byte(header)) + "." + b64([]byte(claims))
	signature, err := jwt.GetSigningMethod(alg).Sign(signed, key)
	must(err)
	return signed + "." + b64(signature)
}

// with is an object changed: nil takes a member out.
func with(object members, changes members) string {
	all := members{}
	for name, value := range object {
		all[name] = value
	}
	for name, value := range changes {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	raw, err := json.Marshal(all)
	must(err)
	return string(raw)
}

const audience = "callgate.example"

// epoch is when the tests take place.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func goodClaims(issuer string) members {
	return members{
		"iss": issuer, "aud": audience, "sub": "alice", "exp": epoch.Add(time.Hour).Unix(), "nbf": epoch.Unix(), "iat": epoch.Unix(),
		"callgate_agents": []string{"Analyst", "Intern"}, "callgate_workspace": "acme", "callgate_projects": "alpha beta",
	}
}

// issuer is a local issuer whose behaviour the tests choose.
type issuer struct {
	*httptest.Server
	mu        sync.Mutex
	keys      []byte
	discovery string           // instead of the right one
	before    http.HandlerFunc // answers instead of the issuer
	requests  map[string]int   // requests by path
}

func newIssuer(t testing.TB, secure bool, jwks ...members) *issuer {
	i := &issuer{keys: setOf(jwks...), requests: map[string]int{}}
	i.Server = httptest.NewUnstartedServer(i)
	i.Config.ErrorLog = log.New(io.Discard, "", 0)
	if secure {
		i.StartTLS()
	} else {
		i.Start()
	}
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.requests[r.URL.Path]++
	before, keys, doc := i.before, i.keys, i.discovery
	i.mu.Unlock()
	if before != nil {
		before(w, r)
		return
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		if doc == "" {
			doc = with(nil, members{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(doc))
	case "/keys":
		w.Header().Set("Content-Type", "application/json")
		w.Write(keys)
	default:
		http.NotFound(w, r)
	}
}

func (i *issuer) set(change func(*issuer)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(i)
}

func (i *issuer) fetches() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.requests["/keys"]
}

// reasons are why credentials were refused.
type reasons struct {
	mu  sync.Mutex
	all []identity.Reason
}

func (r *reasons) add(reason identity.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, reason)
}

// last returns the one reason since it was asked for last.
func (r *reasons) last(t *testing.T) identity.Reason {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) != 1 {
		t.Fatalf("the reasons %v; expected one", r.all)
	}
	reason := r.all[0]
	r.all = nil
	return reason
}

// optionsFor are what the tests judge by.
func optionsFor(issuer string) identity.TokenOptions {
	return identity.TokenOptions{
		Issuer: issuer, Audience: audience, ClockSkew: identity.DefaultClockSkew, Timeout: time.Minute,
		Now: func() time.Time { return epoch }, Random: func() float64 { return 0.5 },
	}
}

func started(t testing.TB, o identity.TokenOptions) *identity.TokenVerifier {
	t.Helper()
	tokens, err := identity.NewTokenVerifier(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := tokens.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tokens
}

// clock is a time that the tests move. The test gets its timers.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	waits chan wait
}

type wait struct {
	d    time.Duration
	fire chan time.Time
}

func newClock() *clock { return &clock{now: epoch, waits: make(chan wait, 100)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) After(d time.Duration) <-chan time.Time {
	w := wait{d, make(chan time.Time, 1)}
	c.waits <- w
	return w.fire
}

// next returns what is waited for next.
func (c *clock) next(t *testing.T) wait {
	t.Helper()
	select {
	case w := <-c.waits:
		return w
	case <-time.After(time.Minute):
		t.Fatal("nothing waits for the clock")
		return wait{}
	}
}

// pass lets the time of a wait pass.
func (c *clock) pass(w wait) {
	c.mu.Lock()
	c.now = c.now.Add(max(w.d, 0))
	now := c.now
	c.mu.Unlock()
	w.fire <- now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// canary is a text that must appear in nothing an operator reads.
const canary = "canary-7f3a"

func quiet(t *testing.T, what string) {
	t.Helper()
	if strings.Contains(what, canary) {
		t.Errorf("%q shows what a token or an answer said", what)
	}
}
