package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"math/big"
	"slices"
)

// The RSA keys that are taken. Below the lowest they can be broken (RFC 7518,
// section 3.3); above the highest a forged token would cost too much to refuse.
// The exponents are those of FIPS 186-5, as far as crypto/rsa takes them.
const (
	minRSABits     = 2048
	maxRSABits     = 8192
	minRSAExponent = 1<<16 + 1
	maxRSAExponent = 1<<31 - 1
)

// key is one public key of an issuer.
type key struct {
	id     string // its kid; empty where it has none
	alg    string // the one algorithm that it is for; empty where it does not say
	keys   family
	public any // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

func (k key) fits(a algorithm) bool {
	return k.keys == a.keys && (k.alg == "" || k.alg == a.name)
}

// keyOf reads one JWK (RFC 7517, RFC 7518 section 6, RFC 8037). It is false
// for a key that no token can be verified with: of another type, too weak, for
// another use, of the wrong form, or one whose private half stands beside it, so
// that anybody may have signed.
func keyOf(jwk map[string]json.RawMessage) (key, bool) {
	for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
		if _, ok := jwk[private]; ok {
			return key{}, false
		}
	}
	var k key
	for name, into := range map[string]*string{"kid": &k.id, "alg": &k.alg} {
		if raw, ok := jwk[name]; ok {
			if *into, ok = text(raw); !ok || *into == "" || len(*into) > maxText {
				return key{}, false
			}
		}
	}
	if !forVerifying(jwk) {
		return key{}, false
	}
	kind, _ := text(jwk["kty"])
	var ok bool
	switch kind {
	case "RSA":
		k.keys = rsaKeys
		k.public, ok = rsaOf(jwk)
	case "EC":
		k.keys, k.public, ok = ecdsaOf(jwk)
	case "OKP":
		k.keys = ed25519Keys
		k.public, ok = ed25519Of(jwk)
	}
	return k, ok
}

// forVerifying tells whether use and key_ops, where they are there, allow to
// verify signatures.
func forVerifying(jwk map[string]json.RawMessage) bool {
	if raw, ok := jwk["use"]; ok {
		if use, _ := text(raw); use != "sig" {
			return false
		}
	}
	if raw, ok := jwk["key_ops"]; ok {
		var ops []string
		if json.Unmarshal(raw, &ops) != nil || !slices.Contains(ops, "verify") {
			return false
		}
	}
	return true
}

// octets reads a member of base64url.
func octets(jwk map[string]json.RawMessage, name string) ([]byte, bool) {
	encoded, ok := text(jwk[name])
	if !ok || encoded == "" {
		return nil, false
	}
	return segment(encoded)
}

func rsaOf(jwk map[string]json.RawMessage) (*rsa.PublicKey, bool) {
	n, okN := octets(jwk, "n")
	e, okE := octets(jwk, "e")
	if !okN || !okE {
		return nil, false
	}
	modulus, exponent := new(big.Int).SetBytes(n), new(big.Int).SetBytes(e)
	if bits := modulus.BitLen(); bits < minRSABits || bits > maxRSABits || modulus.Bit(0) == 0 {
		return nil, false
	}
	if !exponent.IsInt64() || exponent.Int64() < minRSAExponent || exponent.Int64() > maxRSAExponent || exponent.Bit(0) == 0 {
		return nil, false
	}
	return &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}, true
}

func ecdsaOf(jwk map[string]json.RawMessage) (family, *ecdsa.PublicKey, bool) {
	name, _ := text(jwk["crv"])
	var curve elliptic.Curve
	switch family(name) {
	case p256Keys:
		curve = elliptic.P256()
	case p384Keys:
		curve = elliptic.P384()
	case p521Keys:
		curve = elliptic.P521()
	default:
		return "", nil, false
	}
	x, okX := octets(jwk, "x")
	y, okY := octets(jwk, "y")
	if size := (curve.Params().BitSize + 7) / 8; !okX || !okY || len(x) != size || len(y) != size {
		return "", nil, false
	}
	const uncompressed = 4 // SEC 1, section 2.3.3
	public, err := ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{uncompressed}, x, y))
	return family(name), public, err == nil
}

func ed25519Of(jwk map[string]json.RawMessage) (ed25519.PublicKey, bool) {
	curve, _ := text(jwk["crv"])
	x, ok := octets(jwk, "x")
	if !ok || curve != string(ed25519Keys) || len(x) != ed25519.PublicKeySize {
		return nil, false
	}
	return x, true
}
