package identity_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// fullSet is an issuer's keys, one of each kind, and some that are not taken.
func fullSet() []members {
	k := private()
	return []members{
		jwkOf(k.rsa, members{"kid": "rsa", "use": "sig", "alg": "RS256"}),
		jwkOf(k.p256, members{"kid": "ec", "use": "sig"}),
		jwkOf(k.ed, members{"kid": "ed", "key_ops": []string{"verify"}}),
		jwkOf(k.p384, members{"kid": "p384"}),
		jwkOf(k.small, members{"kid": "small"}),
		jwkOf(k.rsa2, members{"kid": "enc", "use": "enc"}),
		jwkOf(k.rsa2, members{"kid": "wrap", "key_ops": []string{"wrapKey"}}),
		jwkOf(k.rsa2, members{"kid": "private", "d": "AQAB"}),
		jwkOf(k.rsa2, members{"kid": "ps", "alg": "PS256"}),
		{"kty": "oct", "kid": "oct", "k": b64([]byte("a secret that is none any more!!"))},
		{"kty": "new", "kid": "new"},
	}
}

func TestTokensAccepted(t *testing.T) {
	i := newIssuer(t, false, fullSet()...)
	k := private()
	why := &reasons{}
	o := optionsFor(i.URL)
	o.OnRefused = why.add
	o.Algorithms = []string{"RS256", "ES256", "EdDSA", "ES384", "PS256"}
	tokens := started(t, o)
	good := goodClaims(i.URL)
	want := identity.Principal{Name: "jwt:" + i.URL + "#alice", Agents: []string{"Analyst", "Intern"}, Workspace: "acme", Projects: []string{"alpha", "beta"}}
	header := func(m members) string { return with(nil, m) }
	for name, token := range map[string]string{
		"RS256":               sign(header(members{"alg": "RS256", "kid": "rsa", "typ": "JWT"}), with(good, nil), "RS256", k.rsa),
		"ES256":               sign(header(members{"alg": "ES256", "kid": "ec"}), with(good, nil), "ES256", k.p256),
		"ES384":               sign(header(members{"alg": "ES384", "kid": "p384"}), with(good, nil), "ES384", k.p384),
		"EdDSA":               sign(header(members{"alg": "EdDSA", "kid": "ed"}), with(good, nil), "EdDSA", k.ed),
		"PS256":               sign(header(members{"alg": "PS256", "kid": "ps"}), with(good, nil), "PS256", k.rsa2),
		"no kid, one fits":    sign(header(members{"alg": "EdDSA"}), with(good, nil), "EdDSA", k.ed),
		"typ at+jwt":          sign(header(members{"alg": "EdDSA", "typ": "application/AT+JWT"}), with(good, nil), "EdDSA", k.ed),
		"a header of no use":  sign(header(members{"alg": "EdDSA", "x5t": "abc", "nonce": 1}), with(good, nil), "EdDSA", k.ed),
		"several audiences":   sign(header(members{"alg": "EdDSA"}), with(good, members{"aud": []string{"x", audience}}), "EdDSA", k.ed),
		"agents as one text":  sign(header(members{"alg": "EdDSA"}), with(good, members{"callgate_agents": "Analyst Intern"}), "EdDSA", k.ed),
		"projects as a list":  sign(header(members{"alg": "EdDSA"}), with(good, members{"callgate_projects": []string{"alpha", "beta"}}), "EdDSA", k.ed),
		"expired within skew": sign(header(members{"alg": "EdDSA"}), with(good, members{"exp": epoch.Unix() - 29}), "EdDSA", k.ed),
		"early within skew":   sign(header(members{"alg": "EdDSA"}), with(good, members{"nbf": epoch.Unix() + 30, "iat": epoch.Unix() + 30}), "EdDSA", k.ed),
		"a fraction of time":  sign(header(members{"alg": "EdDSA"}), with(good, members{"exp": float64(epoch.Unix()) + 0.5}), "EdDSA", k.ed),
		"no nbf, no iat":      sign(header(members{"alg": "EdDSA"}), with(good, members{"nbf": nil, "iat": nil}), "EdDSA", k.ed),
		"claims of others":    sign(header(members{"alg": "EdDSA"}), with(good, members{"realm_access": members{"roles": []string{"a"}}, "azp": "x"}), "EdDSA", k.ed),
	} {
		p := tokens.Authenticate(token)
		if p == nil {
			t.Errorf("%s: refused: %v", name, why.last(t))
			continue
		}
		want.Until, want.Expires = p.Until, p.Expires // see TestUntil
		if fmt.Sprint(*p) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, want %+v", name, *p, want)
		}
	}
	for value, want := range map[any]bool{true: true, false: false, nil: false} {
		if p := tokens.Authenticate(goodWith(i.URL, members{"callgate_operator": value})); p == nil || p.Operator != want {
			t.Errorf("callgate_operator %v: %+v", value, p)
		}
	}
	for text, want := range map[string]any{"[]": []string{}, "[refunds]": []string{"refunds"}, "[refunds deploys]": "refunds deploys"} {
		if p := tokens.Authenticate(goodWith(i.URL, members{"callgate_approves": want})); p == nil || fmt.Sprint(p.Approves) != text || len(p.Agents) == 0 {
			t.Errorf("callgate_approves %v: %+v", want, p)
		}
	}
	for name, rights := range map[string]members{
		"an operator": {"callgate_operator": true}, "an approver": {"callgate_approves": "refunds"},
		"both": {"callgate_operator": true, "callgate_approves": []string{"refunds"}},
	} {
		for _, claim := range []string{"callgate_agents", "callgate_workspace", "callgate_projects"} {
			rights[claim] = nil
		}
		if p := tokens.Authenticate(goodWith(i.URL, rights)); p == nil || p.Agents != nil || p.Workspace != "" || p.Projects != nil {
			t.Errorf("%s without agents: %+v", name, p)
		}
	}
	if p := tokens.Authenticate(goodWith(i.URL, members{"Callgate_Operator": true})); p == nil || p.Operator {
		t.Errorf("a claim of another case: %+v", p)
	}
	if names := goodWith(i.URL, members{"sub": "auth0|CN=A B,O=x"}); tokens.Authenticate(names) == nil {
		t.Errorf("a subject with a space inside: %v", why.last(t))
	}
}

// goodWith is a token by the Ed25519 key with claims changed.
func goodWith(issuer string, changes members) string {
	return sign(`{"alg":"EdDSA","kid":"ed"}`, with(goodClaims(issuer), changes), "EdDSA", private().ed)
}

func TestTokensRefused(t *testing.T) {
	var canaryHits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		canaryHits.Add(1)
		w.Write(setOf(jwkOf(private().rsa2, members{"kid": canary})))
	}))
	defer elsewhere.Close()
	i := newIssuer(t, false, fullSet()...)
	k := private()
	why := &reasons{}
	o := optionsFor(i.URL)
	o.OnRefused = why.add
	tokens := started(t, o)
	good := goodClaims(i.URL)
	all := with(good, nil)
	header := func(m members) string { return with(nil, m) }
	ed := func(m members) string { return with(members{"alg": "EdDSA", "kid": "ed"}, m) }
	valid := goodWith(i.URL, nil)
	if tokens.Authenticate(valid) == nil {
		t.Fatalf("the token that the others differ from is refused: %v", why.last(t))
	}
	part := strings.Split(valid, ".")
	der, err := x509.MarshalPKIXPublicKey(k.rsa.Public())
	must(err)
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	claim := func(m members) string { return goodWith(i.URL, m) }
	rawClaims := func(text string) string { return sign(ed(nil), text, "EdDSA", k.ed) }
	rawHeader := func(text string) string { return sign(text, all, "EdDSA", k.ed) }
	own := jwkOf(k.rsa2, members{"kid": canary})
	// lastBits keeps what a lax decoder reads and changes the text: the two low
	// bits of an 86th character, which a signature of 64 bytes does not use.
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	lastBits := valid[:len(valid)-1] + string(digits[strings.IndexByte(digits, valid[len(valid)-1])|1])

	for _, c := range []struct {
		name   string
		reason identity.Reason
		token  string
	}{
		{"nothing", identity.TooLong, ""},
		{"a token of 8 KiB and a byte", identity.TooLong, valid + strings.Repeat("A", identity.MaxToken+1-len(valid))},
		{"a huge token that is signed", identity.TooLong, claim(members{"x": strings.Repeat(canary, 1000)})},

		{"alg none without a signature", identity.BadAlgorithm, b64([]byte(`{"alg":"none"}`)) + "." + b64([]byte(all)) + "."},
		{"alg None", identity.BadAlgorithm, b64([]byte(`{"alg":"None"}`)) + "." + b64([]byte(all)) + "."},
		{"alg none with a signature", identity.BadAlgorithm, b64([]byte(`{"alg":"none","kid":"ed"}`)) + "." + part[1] + "." + part[2]},
		{"HS256 with the public key in PEM", identity.BadAlgorithm, sign(header(members{"alg": "HS256", "kid": "rsa"}), all, "HS256", publicPEM)},
		{"HS256 with the public key in DER", identity.BadAlgorithm, sign(header(members{"alg": "HS256", "kid": "rsa"}), all, "HS256", der)},
		{"HS256 with the key of the set", identity.BadAlgorithm, sign(header(members{"alg": "HS256", "kid": "oct"}), all, "HS256", []byte("a secret that is none any more!!"))},
		{"an algorithm that is not believed", identity.BadAlgorithm, sign(header(members{"alg": "ES384", "kid": "p384"}), all, "ES384", k.p384)},
		{"alg in lower case", identity.BadAlgorithm, rawHeader(`{"alg":"eddsa","kid":"ed"}`)},
		{"no alg", identity.BadAlgorithm, rawHeader(`{"kid":"ed"}`)},
		{"ALG for alg", identity.BadAlgorithm, rawHeader(`{"ALG":"EdDSA","kid":"ed"}`)},
		{"alg of a list", identity.BadAlgorithm, rawHeader(`{"alg":["EdDSA"],"kid":"ed"}`)},

		{"ES256 with the RSA key", identity.KeyMisfit, sign(header(members{"alg": "ES256", "kid": "rsa"}), all, "ES256", k.p256)},
		{"RS256 with the key of P-256", identity.KeyMisfit, sign(header(members{"alg": "RS256", "kid": "ec"}), all, "RS256", k.rsa)},
		{"RS256 with a key for PS256", identity.KeyMisfit, sign(header(members{"alg": "RS256", "kid": "ps"}), all, "RS256", k.rsa2)},
		{"ES256 with the key of P-384", identity.KeyMisfit, sign(header(members{"alg": "ES256", "kid": "p384"}), all, "ES256", k.p256)},
		{"a small RSA key", identity.UnknownKey, sign(header(members{"alg": "RS256", "kid": "small"}), all, "RS256", k.small)},
		{"a key for encryption", identity.UnknownKey, sign(header(members{"alg": "RS256", "kid": "enc"}), all, "RS256", k.rsa2)},
		{"a key for wrapping", identity.UnknownKey, sign(header(members{"alg": "RS256", "kid": "wrap"}), all, "RS256", k.rsa2)},
		{"a key whose private half is published", identity.UnknownKey, sign(header(members{"alg": "RS256", "kid": "private"}), all, "RS256", k.rsa2)},
		{"a kid that is not there", identity.UnknownKey, sign(header(members{"alg": "EdDSA", "kid": canary}), all, "EdDSA", k.ed)},
		{"a kid of another case", identity.UnknownKey, rawHeader(`{"alg":"EdDSA","kid":"ED"}`)},
		{"a kid that walks the file system", identity.UnknownKey, rawHeader(`{"alg":"EdDSA","kid":"../../../../etc/passwd"}`)},
		{"a kid with SQL", identity.UnknownKey, rawHeader(`{"alg":"EdDSA","kid":"x' UNION SELECT 'ed"}`)},
		{"a kid that is a URL", identity.UnknownKey, rawHeader(`{"alg":"EdDSA","kid":"` + elsewhere.URL + `"}`)},
		{"an empty kid", identity.BadHeader, rawHeader(`{"alg":"EdDSA","kid":""}`)},
		{"a kid of a number", identity.BadHeader, rawHeader(`{"alg":"EdDSA","kid":1}`)},
		{"a kid of null", identity.BadHeader, rawHeader(`{"alg":"EdDSA","kid":null}`)},
		{"the right kid, another's signature", identity.BadSignature, sign(header(members{"alg": "RS256", "kid": "rsa"}), all, "RS256", k.rsa2)},

		{"crit", identity.BadHeader, rawHeader(`{"alg":"EdDSA","kid":"ed","crit":["exp"],"exp":1}`)},
		{"crit that is empty", identity.BadHeader, rawHeader(`{"alg":"EdDSA","kid":"ed","crit":[]}`)},
		{"b64", identity.BadHeader, rawHeader(`{"alg":"EdDSA","kid":"ed","b64":false}`)},
		{"zip", identity.BadHeader, rawHeader(`{"alg":"EdDSA","kid":"ed","zip":"DEF"}`)},
		{"enc", identity.BadHeader, rawHeader(`{"alg":"EdDSA","kid":"ed","enc":"A256GCM"}`)},
		{"jku of another host", identity.BadHeader, sign(header(members{"alg": "RS256", "kid": canary, "jku": elsewhere.URL}), all, "RS256", k.rsa2)},
		{"jku beside a good key", identity.BadHeader, rawHeader(ed(members{"jku": elsewhere.URL}))},
		{"an embedded jwk", identity.BadHeader, sign(header(members{"alg": "RS256", "jwk": own}), all, "RS256", k.rsa2)},
		{"x5u", identity.BadHeader, sign(header(members{"alg": "RS256", "x5u": elsewhere.URL}), all, "RS256", k.rsa2)},
		{"x5c", identity.BadHeader, sign(header(members{"alg": "RS256", "x5c": []string{base64.StdEncoding.EncodeToString(der)}}), all, "RS256", k.rsa2)},
		{"nested: cty JWT", identity.BadHeader, sign(ed(members{"cty": "JWT"}), valid, "EdDSA", k.ed)},
		{"nested without cty", identity.Malformed, sign(ed(nil), valid, "EdDSA", k.ed)},
		{"typ of a logout token", identity.BadHeader, rawHeader(ed(members{"typ": "logout+jwt"}))},
		{"typ of a proof", identity.BadHeader, rawHeader(ed(members{"typ": "dpop+jwt"}))},
		{"typ of null", identity.BadHeader, rawHeader(`{"alg":"EdDSA","kid":"ed","typ":null}`)},
		{"a header with alg twice", identity.Malformed, rawHeader(`{"alg":"none","alg":"EdDSA","kid":"ed"}`)},
		{"a header with alg twice, once escaped", identity.Malformed, rawHeader(`{"\u0061lg":"none","alg":"EdDSA","kid":"ed"}`)},
		{"a header that is a list", identity.Malformed, rawHeader(`[{"alg":"EdDSA"}]`)},
		{"a header of null", identity.Malformed, rawHeader(`null`)},
		{"two headers", identity.Malformed, rawHeader(`{"alg":"EdDSA"}{}`)},

		{"JWE: five segments", identity.Malformed, b64([]byte(`{"alg":"RSA-OAEP","enc":"A256GCM"}`)) + ".a.b.c.d"},
		{"four segments", identity.Malformed, valid + ".AAAA"},
		{"an empty fourth segment", identity.Malformed, valid + "."},
		{"two segments", identity.Malformed, part[0] + "." + part[1]},
		{"one segment", identity.Malformed, part[0]},
		{"two points", identity.Malformed, ".."},
		{"truncated by two bytes", identity.BadSignature, valid[:len(valid)-2]},
		{"truncated by one byte", identity.Malformed, valid[:len(valid)-1]},
		{"without its signature", identity.BadSignature, part[0] + "." + part[1] + "."},
		{"padding", identity.Malformed, valid + "=="},
		{"base64 of the other alphabet", identity.Malformed, part[0] + "." + part[1] + ".+/+/"},
		{"a line end inside", identity.Malformed, part[0] + "." + part[1] + "." + part[2][:10] + "\n" + part[2][10:]},
		{"a carriage return at the end", identity.Malformed, valid + "\r"},
		{"bits that a lax decoder drops", identity.Malformed, lastBits},
		{"a leading space", identity.Malformed, " " + valid},
		{"a trailing space", identity.Malformed, valid + " "},
		{"a key of Callgate", identity.Malformed, "cgk_" + strings.Repeat("A", 43)},

		{"another audience", identity.WrongAudience, claim(members{"aud": canary})},
		{"an audience that starts like ours", identity.WrongAudience, claim(members{"aud": audience + "/"})},
		{"other audiences", identity.WrongAudience, claim(members{"aud": []string{"a", "b"}})},
		{"no audience", identity.BadClaim, claim(members{"aud": nil})},
		{"no audience in a list", identity.BadClaim, claim(members{"aud": []string{}})},
		{"an audience of an object", identity.BadClaim, claim(members{"aud": members{audience: true}})},
		{"an audience beside a number", identity.BadClaim, claim(members{"aud": []any{audience, 1}})},
		{"too many audiences", identity.BadClaim, claim(members{"aud": append(make([]string, 100), audience)})},
		{"an audience with a lone surrogate", identity.BadClaim, rawClaims(strings.Replace(all, `"aud":`, `"aud":["`+audience+`","\ud800"],"_":`, 1))},
		{"another issuer", identity.WrongIssuer, claim(members{"iss": "https://" + canary})},
		{"the issuer with a slash more", identity.WrongIssuer, claim(members{"iss": i.URL + "/"})},
		{"no issuer", identity.BadClaim, claim(members{"iss": nil})},
		{"an issuer in a list", identity.BadClaim, claim(members{"iss": []string{i.URL}})},
		{"expired", identity.Expired, claim(members{"exp": epoch.Unix() - 31})},
		{"expired to the second", identity.Expired, claim(members{"exp": epoch.Unix() - 30})},
		{"nbf in the future", identity.NotYet, claim(members{"nbf": epoch.Unix() + 31})},
		{"iat in the future", identity.NotYet, claim(members{"iat": epoch.Unix() + 31})},
		{"no exp", identity.BadClaim, claim(members{"exp": nil})},
		{"exp of null", identity.BadClaim, rawClaims(strings.Replace(all, `"exp":`, `"exp":null,"_":`, 1))},
		{"exp of a string", identity.BadClaim, claim(members{"exp": "9999999999"})},
		{"exp beyond every calendar", identity.BadClaim, rawClaims(strings.Replace(all, `"exp":`, `"exp":1e300,"_":`, 1))},
		{"exp before 1970", identity.BadClaim, claim(members{"exp": -1})},
		{"nbf of a string", identity.BadClaim, claim(members{"nbf": "0"})},
		{"iat of true", identity.BadClaim, claim(members{"iat": true})},

		{"no sub", identity.BadClaim, claim(members{"sub": nil})},
		{"an empty sub", identity.BadClaim, claim(members{"sub": ""})},
		{"sub of a number", identity.BadClaim, claim(members{"sub": 7})},
		{"sub of null", identity.BadClaim, rawClaims(strings.Replace(all, `"sub":`, `"sub":null,"_":`, 1))},
		{"sub with a leading space", identity.BadClaim, claim(members{"sub": " alice"})},
		{"sub with a trailing space", identity.BadClaim, claim(members{"sub": "alice "})},
		{"sub with a Cyrillic letter", identity.BadClaim, claim(members{"sub": "\u0430lice"})},
		{"sub with a zero-width space", identity.BadClaim, claim(members{"sub": "ali\u200bce"})},
		{"sub written from right to left", identity.BadClaim, claim(members{"sub": "\u202eecila"})},
		{"sub with a line end", identity.BadClaim, claim(members{"sub": "alice\nbob"})},
		{"sub with NUL", identity.BadClaim, claim(members{"sub": "alice\x00"})},
		{"sub with a lone surrogate", identity.BadClaim, rawClaims(strings.Replace(all, `"alice"`, `"\ud800"`, 1))},
		{"sub over 255 bytes", identity.BadClaim, claim(members{"sub": strings.Repeat("a", 256)})},
		{"sub twice", identity.Malformed, rawClaims(strings.Replace(all, `{`, `{"sub":"bob",`, 1))},
		{"agents twice, once escaped", identity.Malformed, rawClaims(strings.Replace(all, `{`, `{"callgate\u005fagents":["Admin"],`, 1))},
		{"a name twice, deep inside", identity.Malformed, rawClaims(strings.Replace(all, `{`, `{"x":[{"a":{"b":1,"b":2}}],`, 1))},
		{"nested too deeply", identity.Malformed, rawClaims(strings.Replace(all, `{`, `{"x":`+strings.Repeat("[", 16)+strings.Repeat("]", 16)+`,`, 1))},
		{"claims that are no UTF-8", identity.Malformed, rawClaims(strings.Replace(all, "alice", "al\xffice", 1))},
		{"claims that are no object", identity.Malformed, rawClaims(`"alice"`)},
		{"claims cut short", identity.Malformed, rawClaims(all[:len(all)-1])},
		{"claims and more", identity.Malformed, rawClaims(all + "{}")},
		{"no claims", identity.Malformed, rawClaims("")},

		{"no agents", identity.BadClaim, claim(members{"callgate_agents": nil})},
		{"an empty list of agents", identity.BadClaim, claim(members{"callgate_agents": []string{}})},
		{"an empty text of agents", identity.BadClaim, claim(members{"callgate_agents": ""})},
		{"an empty agent", identity.BadClaim, claim(members{"callgate_agents": []string{"Analyst", ""}})},
		{"agents of a number", identity.BadClaim, claim(members{"callgate_agents": 1})},
		{"agents of an object", identity.BadClaim, claim(members{"callgate_agents": members{"Analyst": true}})},
		{"agents beside a number", identity.BadClaim, claim(members{"callgate_agents": []any{"Analyst", 1}})},
		{"agents in a list in a list", identity.BadClaim, claim(members{"callgate_agents": []any{[]string{"Analyst"}}})},
		{"an agent named like a role", identity.BadClaim, claim(members{"callgate_agents": []string{"role:admin"}})},
		{"an agent named like a role, in a text", identity.BadClaim, claim(members{"callgate_agents": "Analyst role:admin"})},
		{"an agent twice", identity.BadClaim, claim(members{"callgate_agents": "Analyst Analyst"})},
		{"agents with two spaces between", identity.BadClaim, claim(members{"callgate_agents": "Analyst  Intern"})},
		{"agents with a tab between", identity.BadClaim, claim(members{"callgate_agents": "Analyst\tIntern"})},
		{"an agent with a space at an end", identity.BadClaim, claim(members{"callgate_agents": []string{"Analyst "}})},
		{"too many agents", identity.BadClaim, claim(members{"callgate_agents": strings.Split(strings.Repeat("a,", 101), ",")})},
		{"agents under a name of another case", identity.BadClaim, claim(members{"callgate_agents": nil, "Callgate_Agents": []string{"Analyst"}})},
		{"no workspace", identity.BadClaim, claim(members{"callgate_workspace": nil})},
		{"a list of workspaces", identity.BadClaim, claim(members{"callgate_workspace": []string{"acme"}})},
		{"an empty workspace", identity.BadClaim, claim(members{"callgate_workspace": ""})},
		{"no projects", identity.BadClaim, claim(members{"callgate_projects": nil})},
		{"an empty list of projects", identity.BadClaim, claim(members{"callgate_projects": []string{}})},
		{"rules as a number", identity.BadClaim, claim(members{"callgate_approves": 1})},
		{"rules by an empty text", identity.BadClaim, claim(members{"callgate_approves": ""})},
		{"a rule twice", identity.BadClaim, claim(members{"callgate_approves": "refunds refunds"})},
		{"rules by null", identity.BadClaim, rawClaims(strings.Replace(all, "{", `{"callgate_approves":null,`, 1))},
		{"too many rules", identity.BadClaim, claim(members{"callgate_approves": strings.Split(strings.Repeat("a,", 101), ",")})},
		{"an approver with agents alone", identity.BadClaim, claim(members{"callgate_approves": "a", "callgate_workspace": nil, "callgate_projects": nil})},
		{"an operator with a workspace alone", identity.BadClaim, claim(members{"callgate_operator": true, "callgate_agents": nil, "callgate_projects": nil})},
		{"no agents, and no operator", identity.BadClaim, claim(members{"callgate_operator": false, "callgate_agents": nil, "callgate_workspace": nil, "callgate_projects": nil})},
		{"no agents, and no rules", identity.BadClaim, claim(members{"callgate_approves": []string{}, "callgate_agents": nil, "callgate_workspace": nil, "callgate_projects": nil})},
		{"an operator by a text", identity.BadClaim, claim(members{"callgate_operator": "true"})},
		{"an operator by a number", identity.BadClaim, claim(members{"callgate_operator": 1})},
		{"an operator by null", identity.BadClaim, rawClaims(strings.Replace(all, "{", `{"callgate_operator":null,`, 1))},
		{"an operator by a list", identity.BadClaim, claim(members{"callgate_operator": []bool{true}})},
	} {
		t.Run(c.name, func(t *testing.T) {
			if p := tokens.Authenticate(c.token); p != nil {
				t.Fatalf("let in as %+v", *p)
			}
			if got := why.last(t); got != c.reason {
				t.Errorf("refused for %q, want %q", got, c.reason)
			} else if !slices.Contains(identity.Reasons(), got) {
				t.Errorf("%q is not in the list of reasons", got)
			}
		})
	}
	if n := canaryHits.Load(); n != 0 {
		t.Errorf("an address in a token was fetched %d times", n)
	}
	if n := i.fetches(); n != 1 {
		t.Errorf("judging tokens fetched the keys %d times", n-1)
	}
}

func TestWithoutKid(t *testing.T) {
	k := private()
	i := newIssuer(t, false, jwkOf(k.rsa, nil), jwkOf(k.rsa2, members{"kid": "two"}), jwkOf(k.p256, members{"kid": "ec"}))
	why := &reasons{}
	o := optionsFor(i.URL)
	o.OnRefused = why.add
	tokens := started(t, o)
	all := with(goodClaims(i.URL), nil)
	if tokens.Authenticate(sign(`{"alg":"RS256"}`, all, "RS256", k.rsa)) != nil || why.last(t) != identity.UnknownKey {
		t.Error("of two keys that fit, one is chosen")
	}
	if tokens.Authenticate(sign(`{"alg":"ES256"}`, all, "ES256", k.p256)) == nil {
		t.Errorf("the one key that fits: %v", why.last(t))
	}
}

func TestNobody(t *testing.T) {
	token := goodWith("https://issuer.example", nil)
	var none *identity.TokenVerifier
	if none.Authenticate(token) != nil || (&identity.TokenVerifier{}).Authenticate(token) != nil || none.Ready() == nil || (&identity.TokenVerifier{}).Ready() == nil {
		t.Error("a verifier that is none lets somebody in")
	}
	why := &reasons{}
	o := optionsFor("https://issuer.example")
	o.OnRefused = why.add
	tokens, err := identity.NewTokenVerifier(o)
	must(err)
	if tokens.Authenticate(token) != nil || why.last(t) != identity.NoKeys || tokens.Ready() == nil {
		t.Error("a token is let in before there are keys")
	}
}

// TestPanic has the clock fail within the judgement.
func TestPanic(t *testing.T) {
	i := newIssuer(t, false, fullSet()...)
	why := &reasons{}
	var broken atomic.Bool
	o := optionsFor(i.URL)
	o.OnRefused = why.add
	o.Now = func() time.Time {
		if broken.Load() {
			panic(canary)
		}
		return epoch
	}
	tokens := started(t, o)
	broken.Store(true)
	if tokens.Authenticate(goodWith(i.URL, nil)) != nil || why.last(t) != identity.Failed {
		t.Error("a verifier that fails lets somebody in")
	}
}

func TestClaimNames(t *testing.T) {
	i := newIssuer(t, false, fullSet()...)
	o := optionsFor(i.URL)
	o.Claims = identity.ClaimNames{Name: "email", Agents: "https://callgate.example/agents", Workspace: "tenant", Projects: "scope"}
	tokens := started(t, o)
	token := goodWith(i.URL, members{
		"sub": nil, "email": "a@example.com", "https://callgate.example/agents": "Intern", "tenant": "acme", "scope": "alpha",
		"callgate_agents": "Admin", "callgate_workspace": "other", "callgate_projects": "other",
	})
	p := tokens.Authenticate(token)
	if p == nil || p.Name != "jwt:"+i.URL+"#a@example.com" || fmt.Sprintf("%v %s %v", p.Agents, p.Workspace, p.Projects) != "[Intern] acme [alpha]" {
		t.Errorf("%+v", p)
	}
	if tokens.Authenticate(goodWith(i.URL, nil)) != nil {
		t.Error("claims of other names are read")
	}
}

func TestKeyPrincipalsAreApart(t *testing.T) {
	_, sha := identity.NewAPIKey()
	if _, err := identity.NewAPIKeys(map[string]*identity.Principal{sha: {Name: "jwt:https://issuer.example#alice"}}); err == nil {
		t.Error("a key bears the name of a token's principal")
	}
}
