package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// members are those of a JSON object.
type members = map[string]any

// signer is a key of an issuer, with its kid.
type signer struct {
	id      string
	private ed25519.PrivateKey
}

func newSigner(t testing.TB, id string) signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{id, private}
}

// keySet is the JWK set of some keys.
func keySet(t testing.TB, signers ...signer) []byte {
	t.Helper()
	keys := []members{}
	for _, s := range signers {
		public := s.private.Public().(ed25519.PublicKey)
		keys = append(keys, members{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": s.id, "x": base64.RawURLEncoding.EncodeToString(public)})
	}
	return marshalled(t, members{"keys": keys})
}

func marshalled(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// sign makes a token of a header and claims.
func (s signer) sign(t testing.TB, header, claims members) string {
	t.Helper()
	signed := base64.RawURLEncoding.EncodeToString(marshalled(t, header)) + "." + base64.RawURLEncoding.EncodeToString(marshalled(t, claims))
	return signed + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(s.private, []byte(signed)))
}

// token makes one that is good, but for what is changed: nil takes a claim out.
func (s signer) token(t testing.TB, issuer string, changes members) string {
	t.Helper()
	now := time.Now()
	claims := members{
		"iss": issuer, "aud": "callgate", "sub": "alice", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"callgate_agents": []string{"Analyst"}, "callgate_workspace": "acme", "callgate_projects": []string{"alpha"},
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return s.sign(t, members{"alg": "EdDSA", "typ": "JWT", "kid": s.id}, claims)
}

// issuer is a local one, found by OpenID discovery.
type issuer struct {
	*httptest.Server
	mu   sync.Mutex
	keys []byte
	down bool
}

func newIssuer(t testing.TB, signers ...signer) *issuer {
	t.Helper()
	i := &issuer{keys: keySet(t, signers...)}
	i.Server = httptest.NewUnstartedServer(i)
	i.Config.ErrorLog = log.New(io.Discard, "", 0)
	i.Start()
	t.Cleanup(i.Close)
	return i
}

// set changes what it answers, or whether.
func (i *issuer) set(keys []byte, down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys, i.down = keys, down
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	keys, down := i.keys, i.down
	i.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case down:
		http.Error(w, "away", http.StatusBadGateway)
	case r.URL.Path == "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(members{"issuer": i.URL, "jwks_uri": i.URL + "/keys"}) // who asked has left
	case r.URL.Path == "/keys":
		_, _ = w.Write(keys)
	default:
		http.NotFound(w, r)
	}
}
