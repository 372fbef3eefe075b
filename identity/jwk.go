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

// publicKey is one public key of an issuer.
type publicKey struct {
	id        string // its kid; empty where it has none
	algorithm string // the one algorithm that it is for; empty where it does not say
	family    family
	public    any // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

func (k publicKey) fits(a algorithm) bool {
	return k.family == a.family && (k.algorithm == "" || k.algorithm == a.name)
}

// parseKey reads one JWK (RFC 7517, RFC 7518 section 6, RFC 8037). It is false
// for a key that no token can be verified with: of another type, too weak, for
// another use, of the wrong form, or one whose private half stands beside it, so
// that anybody may have signed.
func parseKey(jwk map[string]json.RawMessage) (publicKey, bool) {
	for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
		if _, ok := jwk[private]; ok {
			return publicKey{}, false
		}
	}
	var k publicKey
	for name, into := range map[string]*string{"kid": &k.id, "alg": &k.algorithm} {
		if raw, ok := jwk[name]; ok {
			if *into, ok = jsonString(raw); !ok || *into == "" || len(*into) > maxNameBytes {
				return publicKey{}, false
			}
		}
	}
	if !allowsVerifying(jwk) {
		return publicKey{}, false
	}
	kind, _ := jsonString(jwk["kty"])
	var ok bool
	switch kind {
	case "RSA":
		k.family = rsaKeys
		k.public, ok = rsaKey(jwk)
	case "EC":
		k.family, k.public, ok = ecdsaKey(jwk)
	case "OKP":
		k.family = ed25519Keys
		k.public, ok = ed25519Key(jwk)
	}
	return k, ok
}

// allowsVerifying tells whether use and key_ops, where they are there, allow to
// verify signatures.
func allowsVerifying(jwk map[string]json.RawMessage) bool {
	if raw, ok := jwk["use"]; ok {
		if use, _ := jsonString(raw); use != "sig" {
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

// decodeMember reads a member of base64url.
func decodeMember(jwk map[string]json.RawMessage, name string) ([]byte, bool) {
	encoded, ok := jsonString(jwk[name])
	if !ok || encoded == "" {
		return nil, false
	}
	return decodeSegment(encoded)
}

func rsaKey(jwk map[string]json.RawMessage) (*rsa.PublicKey, bool) {
	n, okN := decodeMember(jwk, "n")
	e, okE := decodeMember(jwk, "e")
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

func ecdsaKey(jwk map[string]json.RawMessage) (family, *ecdsa.PublicKey, bool) {
	name, _ := jsonString(jwk["crv"])
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
	x, okX := decodeMember(jwk, "x")
	y, okY := decodeMember(jwk, "y")
	if size := (curve.Params().BitSize + 7) / 8; !okX || !okY || len(x) != size || len(y) != size {
		return "", nil, false
	}
	const uncompressed = 4 // SEC 1, section 2.3.3
	public, err := ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{uncompressed}, x, y))
	return family(name), public, err == nil
}

func ed25519Key(jwk map[string]json.RawMessage) (ed25519.PublicKey, bool) {
	curve, _ := jsonString(jwk["crv"])
	x, ok := decodeMember(jwk, "x")
	if !ok || curve != string(ed25519Keys) || len(x) != ed25519.PublicKeySize {
		return nil, false
	}
	return x, true
}
