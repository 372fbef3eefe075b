package identity_test

import (
	"strings"
	"testing"
)

func BenchmarkTokens(b *testing.B) {
	i := newIssuer(b, false, fullSet()...)
	k := private()
	tokens := started(b, optionsFor(i.URL))
	all := with(goodClaims(i.URL), nil)
	for _, c := range []struct {
		name, token string
		good        bool
	}{
		{"RS256", sign(`{"alg":"RS256","kid":"rsa"}`, all, "RS256", k.rsa), true},
		{"ES256", sign(`{"alg":"ES256","kid":"ec"}`, all, "ES256", k.p256), true},
		{"EdDSA", sign(`{"alg":"EdDSA","kid":"ed"}`, all, "EdDSA", k.ed), true},
		{"refused/kid", sign(`{"alg":"EdDSA","kid":"made-up"}`, all, "EdDSA", k.ed), false},
		{"refused/alg", b64([]byte(`{"alg":"none"}`)) + "." + b64([]byte(all)) + ".", false},
		{"refused/8KiB", sign(`{"alg":"EdDSA","kid":"`+strings.Repeat("x", 5500)+`"}`, `{}`, "EdDSA", k.ed), false},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if (tokens.Authenticate(c.token) != nil) != c.good {
					b.Fatal("judged wrongly")
				}
			}
		})
	}
}

func BenchmarkTokensParallel(b *testing.B) {
	i := newIssuer(b, false, fullSet()...)
	tokens := started(b, optionsFor(i.URL))
	token := sign(`{"alg":"RS256","kid":"rsa"}`, with(goodClaims(i.URL), nil), "RS256", private().rsa)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if tokens.Authenticate(token) == nil {
				b.Fail()
			}
		}
	})
}
