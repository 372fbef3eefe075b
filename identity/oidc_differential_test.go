package identity_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"pgregory.net/rapid"

	"github.com/callgate/callgate/identity"
)

// TestAgreesWithOIDC compares with another verifier: whatever is let in here,
// that one lets in too. It is laxer in what it does not look at, so that the
// reverse does not hold; but with everything in order both must agree.
func TestAgreesWithOIDC(t *testing.T) {
	i := newIssuer(t, false, fullSet()[:3]...)
	o := optionsFor(i.URL)
	o.ClockSkew = 0
	tokens := started(t, o)
	provider, err := oidc.NewProvider(t.Context(), i.URL)
	must(err)
	other := provider.Verifier(&oidc.Config{
		ClientID: audience, SupportedSigningAlgs: identity.DefaultAlgorithms(), Now: func() time.Time { return epoch },
	})
	k := private()
	both, theirs, neither := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.SampledFrom([]int64{-2, -1, 0, 0, 0, 1, 2})
		alg := rapid.SampledFrom([]string{"RS256", "ES256", "EdDSA", "EdDSA", "EdDSA", "EdDSA", "ES384"}).Draw(t, "alg")
		kid := rapid.SampledFrom([]string{"", "", "", "ed", "ed", "ed", "rsa", "ec", "none"}).Draw(t, "kid")
		signers := map[string]any{"RS256": k.rsa, "ES256": k.p256, "EdDSA": k.ed, "ES384": k.p384}
		header := members{"alg": alg, "typ": rapid.SampledFrom([]any{"JWT", "JWT", "JWT", "at+jwt", "x"}).Draw(t, "typ")}
		if kid != "" {
			header["kid"] = kid
		}
		claims := with(goodClaims(i.URL), members{
			"exp": epoch.Unix() + rapid.SampledFrom([]int64{1, 100, 100, 100, 100, 0, -1}).Draw(t, "exp"),
			"nbf": epoch.Unix() + offset.Draw(t, "nbf"), "iat": epoch.Unix() + offset.Draw(t, "iat"),
			"aud": rapid.SampledFrom([]any{audience, audience, audience, []string{"x", audience}, []string{"x", audience}, "x", []string{}, nil}).Draw(t, "aud"),
			"iss": rapid.SampledFrom([]any{i.URL, i.URL, i.URL, i.URL, i.URL, i.URL, i.URL + "/", nil}).Draw(t, "iss"),
		})
		token := sign(with(nil, header), claims, alg, signers[alg])
		if at := rapid.IntRange(-20, len(token)-1).Draw(t, "at"); at >= 0 && rapid.IntRange(0, 3).Draw(t, "spoil") == 0 {
			token = token[:at] + "A" + token[at+1:]
		}
		here := tokens.Authenticate(token) != nil
		_, err := other.Verify(t.Context(), token)
		switch {
		case here && err == nil:
			both++
		case here:
			t.Fatalf("let in here alone: %v: %s", err, token)
		case err == nil:
			theirs++
		default:
			neither++
		}
	})
	t.Logf("both %d, the other alone %d, neither %d", both, theirs, neither)
	for alg, signer := range map[string]any{"RS256": k.rsa, "ES256": k.p256, "EdDSA": k.ed} {
		token := sign(`{"alg":"`+alg+`"}`, with(goodClaims(i.URL), nil), alg, signer)
		if _, err := other.Verify(t.Context(), token); err != nil || tokens.Authenticate(token) == nil {
			t.Errorf("%s: a token in order is refused: %v", alg, err)
		}
	}
}

// FuzzToken: of all texts, only the one that was signed is let in.
func FuzzToken(f *testing.F) {
	i := newIssuer(f, false, jwkOf(private().ed, members{"kid": "ed"}))
	const name = "https://issuer.example"
	o := optionsFor(name)
	o.JWKSURL = i.URL + "/keys"
	tokens := started(f, o)
	good := goodWith(name, nil)
	if tokens.Authenticate(good) == nil {
		f.Fatal("the token that was signed is refused")
	}
	part := strings.Split(good, ".")
	f.Add(good)
	f.Add(good + "=")
	f.Add(b64([]byte(`{"alg":"none"}`)) + "." + part[1] + ".")
	f.Add(b64([]byte(`{"alg":"HS256","kid":"ed"}`)) + "." + part[1] + "." + part[2])
	f.Add(b64([]byte(`{"alg":"EdDSA","kid":"ed","crit":[]}`)) + "." + part[1] + "." + part[2])
	f.Add(part[0] + "." + part[2] + "." + part[1])
	f.Fuzz(func(t *testing.T, token string) {
		if tokens.Authenticate(token) != nil && token != good {
			t.Errorf("a token that nobody signed is let in: %q", token)
		}
	})
}
