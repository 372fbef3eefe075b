package identity_test

import (
	"crypto/ed25519"
	"math/big"
	"strings"
	"testing"

	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

func TestKeysTaken(t *testing.T) {
	k := private()
	bits := func(n uint) string { return b64(new(big.Int).SetBit(big.NewInt(1), int(n)-1, 1).Bytes()) }
	rsaWith := func(m members) members { return jwkOf(k.rsa, m) }
	ecWith := func(m members) members { return jwkOf(k.p256, m) }
	edWith := func(m members) members { return jwkOf(k.ed, m) }
	point, err := k.p256.PublicKey.Bytes()
	must(err)
	for name, c := range map[string]struct {
		jwk   members
		taken int
	}{
		"RSA of 2048 bits":              {rsaWith(nil), 1},
		"RSA with a zero ahead":         {rsaWith(members{"n": b64(append([]byte{0}, k.rsa.N.Bytes()...))}), 1},
		"RSA of 8192 bits":              {rsaWith(members{"n": bits(8192)}), 1},
		"P-256":                         {ecWith(nil), 1},
		"P-384":                         {jwkOf(k.p384, nil), 1},
		"Ed25519":                       {edWith(nil), 1},
		"all that may be said of a use": {edWith(members{"use": "sig", "key_ops": []string{"verify"}, "alg": "EdDSA", "kid": "é"}), 1},

		"RSA of 2047 bits":                        {rsaWith(members{"n": bits(2047)}), 0},
		"RSA of 8193 bits":                        {rsaWith(members{"n": bits(8193)}), 0},
		"RSA of zero":                             {rsaWith(members{"n": "AA"}), 0},
		"RSA with an even modulus":                {rsaWith(members{"n": b64(new(big.Int).Lsh(big.NewInt(1), 2047).Bytes())}), 0},
		"RSA with the exponent 1":                 {rsaWith(members{"e": "AQ"}), 0},
		"RSA with the exponent 3":                 {rsaWith(members{"e": "Aw"}), 0},
		"RSA with an even exponent":               {rsaWith(members{"e": "AQAC"}), 0},
		"RSA with a huge exponent":                {rsaWith(members{"e": b64([]byte(strings.Repeat("\xff", 20)))}), 0},
		"RSA with an exponent cut to 64 bits":     {rsaWith(members{"e": b64([]byte{1, 0, 0, 0, 0, 0, 1, 0, 1})}), 0},
		"RSA without exponent":                    {rsaWith(members{"e": nil}), 0},
		"RSA with padding":                        {rsaWith(members{"e": "AQAB=="}), 0},
		"RSA with a line end":                     {rsaWith(members{"e": "AQ\nAB"}), 0},
		"RSA with a number":                       {rsaWith(members{"e": 65537}), 0},
		"P-256 beside the curve":                  {ecWith(members{"y": b64(make([]byte, 32))}), 0},
		"P-256 at infinity":                       {ecWith(members{"x": b64(make([]byte, 32)), "y": b64(make([]byte, 32))}), 0},
		"P-256 with a short x":                    {ecWith(members{"x": b64(make([]byte, 31))}), 0},
		"P-256 cut elsewhere":                     {ecWith(members{"x": b64(point[1:32]), "y": b64(point[32:])}), 0},
		"P-256 said to be P-384":                  {ecWith(members{"crv": "P-384"}), 0},
		"a curve that is not known":               {ecWith(members{"crv": "secp256k1"}), 0},
		"RSA for a curve":                         {ecWith(members{"crv": "RSA"}), 0},
		"Ed25519 that is short":                   {edWith(members{"x": b64(make([]byte, 31))}), 0},
		"Ed25519 that is long":                    {edWith(members{"x": b64(append(k.ed.Public().(ed25519.PublicKey), 0))}), 0},
		"Ed25519 of nothing":                      {edWith(members{"x": ""}), 0},
		"Ed25519 with spare bits set":             {edWith(members{"x": strings.Repeat("A", 42) + "B"}), 0},
		"X25519":                                  {edWith(members{"crv": "X25519"}), 0},
		"Ed25519 of type EC":                      {edWith(members{"kty": "EC"}), 0},
		"no type":                                 {edWith(members{"kty": nil}), 0},
		"a type of another case":                  {edWith(members{"kty": "okp"}), 0},
		"a secret":                                {members{"kty": "oct", "k": "AAAA"}, 0},
		"a private key":                           {edWith(members{"d": b64(k.ed.Seed())}), 0},
		"a kid of a number":                       {edWith(members{"kid": 1}), 0},
		"a kid that a lone surrogate would equal": {edWith(members{"kid": "\ufffd"}), 0},
		"an empty kid":                            {edWith(members{"kid": ""}), 0},
		"an alg of a number":                      {edWith(members{"alg": 1}), 0},
		"a use of a list":                         {edWith(members{"use": []string{"sig"}}), 0},
		"key_ops to sign":                         {edWith(members{"key_ops": []string{"sign"}}), 0},
		"key_ops of a text":                       {edWith(members{"key_ops": "verify"}), 0},
	} {
		taken, ignored, err := identity.ParseKeys(setOf(c.jwk))
		if err != nil || taken != c.taken || ignored != 1-c.taken {
			t.Errorf("%s: %d taken, %d ignored, %v", name, taken, ignored, err)
		}
	}
	// One kid for keys of two types is allowed (RFC 7517, section 4.5).
	if taken, _, err := identity.ParseKeys(setOf(rsaWith(members{"kid": "a"}), ecWith(members{"kid": "a"}))); taken != 2 || err != nil {
		t.Errorf("one kid for two types: %d, %v", taken, err)
	}
}

// TestClaimsAreStrictJSON has each document of a suite as a claim of a token
// that is signed and otherwise in order.
func TestClaimsAreStrictJSON(t *testing.T) {
	const name = "https://issuer.example"
	i := newIssuer(t, false, jwkOf(private().ed, members{"kid": "ed"}))
	o := optionsFor(name)
	o.JWKSURL = i.URL + "/keys"
	tokens := started(t, o)
	all := with(goodClaims(name), nil)
	judged, accepted := 0, 0
	for _, d := range corpora.Documents(t) {
		if d.Name[0] == 'i' {
			continue
		}
		judged++
		token := sign(`{"alg":"EdDSA"}`, all[:len(all)-1]+`,"x":`+string(d.Raw)+`}`, "EdDSA", private().ed)
		want := d.Name[0] == 'y' && !strings.HasPrefix(d.Name, "y_object_duplicated_key")
		got := tokens.Authenticate(token) != nil
		if got != want {
			t.Errorf("%s: let in: %v", d.Name, got)
		}
		if got {
			accepted++
		}
	}
	if judged < corpora.Count("json_suite", 250, 130) || accepted < corpora.Count("json_suite", 90, 40) {
		t.Errorf("%d of %d documents were let in", accepted, judged)
	}
}

// FuzzKeySet: reading never fails but with an error, and stays within its bounds.
func FuzzKeySet(f *testing.F) {
	f.Add(setOf(fullSet()[:3]...))
	f.Add([]byte(`{"keys":[]}`))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQ","e":"AQAB"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"","y":""}],"keys":1}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		taken, ignored, err := identity.ParseKeys(document)
		if taken < 0 || ignored < 0 || taken+ignored > 100 || err != nil && taken+ignored > 0 {
			t.Errorf("%d taken, %d ignored, %v", taken, ignored, err)
		}
	})
}
