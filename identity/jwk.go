package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// The RSA keys that are accepted. Below the lowest they can be broken (RFC 7518,
// section 3.3); above the highest a forged token would cost too much to refuse.
// The exponents are those of FIPS 186-5, as far as crypto/rsa accepts them.
const (
	minRSABits     = 2048
	maxRSABits     = 8192
	minRSAExponent = 1<<16 + 1
	maxRSAExponent = 1<<31 - 1
)

// keyType is a type of public key: RSA, or the curve of the others.
type keyType string

const (
	rsaKey     keyType = "RSA"
	p256Key    keyType = "P-256"
	p384Key    keyType = "P-384"
	p521Key    keyType = "P-521"
	ed25519Key keyType = "Ed25519"
)

// keyTypes are the algorithms that can be configured, each with the one type of key that
// it needs (RFC 7518, section 3.1; RFC 8037, section 3.1). Those that need no key, or a
// secret one, are not among them.
var keyTypes = map[string]keyType{
	"RS256": rsaKey, "RS384": rsaKey, "RS512": rsaKey,
	"PS256": rsaKey, "PS384": rsaKey, "PS512": rsaKey,
	"ES256": p256Key, "ES384": p384Key, "ES512": p521Key,
	"EdDSA": ed25519Key,
}

// KnownAlgorithms are the algorithms that can be configured, in order.
func KnownAlgorithms() []string { return slices.Sorted(maps.Keys(keyTypes)) }

// typeOf returns the type of a public key; "" if it is not one of the known types.
func typeOf(key any) keyType {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return rsaKey
	case *ecdsa.PublicKey:
		return keyType(key.Params().Name)
	case ed25519.PublicKey:
		return ed25519Key
	}
	return ""
}

// readKey reads one JWK (RFC 7517, RFC 7518 section 6, RFC 8037). It is false
// for a key that no token can be verified with: of another type, too weak, for
// another use, of the wrong form, or one whose private half is published with it, so
// that anybody may have signed.
func readKey(jwk map[string]json.RawMessage) (jose.JSONWebKey, bool) {
	for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
		if _, ok := jwk[private]; ok {
			return jose.JSONWebKey{}, false
		}
	}
	var k jose.JSONWebKey
	for name, into := range map[string]*string{"kid": &k.KeyID, "alg": &k.Algorithm} {
		if raw, ok := jwk[name]; ok {
			if *into, ok = jsonString(raw); !ok || *into == "" || len(*into) > maxNameBytes {
				return jose.JSONWebKey{}, false
			}
		}
	}
	if !allowsVerifying(jwk) {
		return jose.JSONWebKey{}, false
	}
	k.Key = publicKey(jwk)
	return k, k.Key != nil
}

// allowsVerifying reports whether use and key_ops, if present, allow verifying
// signatures.
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

// keyMembers are the members that a public key consists of, by its kty.
var keyMembers = map[string][]string{"RSA": {"n", "e"}, "EC": {"x", "y"}, "OKP": {"x"}}

// publicKey returns the key of a JWK, or nil. It is read by go-jose, which gets no other
// members than the key's own. go-jose ignores line ends and spare bits in base64url, pads
// and cuts Ed25519 keys to their length, and keeps 64 bits of an RSA exponent. So each
// member must be in strict base64url, and equal what go-jose writes for the key.
func publicKey(jwk map[string]json.RawMessage) any {
	kty, _ := jsonString(jwk["kty"])
	names, known := keyMembers[kty]
	if !known {
		return nil
	}
	own := map[string]json.RawMessage{"kty": jwk["kty"]}
	if kty != "RSA" {
		own["crv"] = jwk["crv"]
	}
	for _, name := range names {
		own[name] = jwk[name]
	}
	var key jose.JSONWebKey
	if encoded, err := json.Marshal(own); err != nil || key.UnmarshalJSON(encoded) != nil {
		return nil
	}
	if public, ok := key.Key.(*rsa.PublicKey); ok && !acceptsRSA(public) {
		return nil
	}
	canonical, err := key.MarshalJSON()
	var decoded map[string]json.RawMessage
	if err != nil || json.Unmarshal(canonical, &decoded) != nil {
		return nil
	}
	for _, name := range names {
		given, ok := decodeMember(own, name)
		if kty == "RSA" {
			given = bytes.TrimLeft(given, "\x00") // some issuers write a sign bit
		}
		if read, _ := decodeMember(decoded, name); !ok || !bytes.Equal(given, read) {
			return nil
		}
	}
	return key.Key
}

func acceptsRSA(key *rsa.PublicKey) bool {
	bits := key.N.BitLen()
	return bits >= minRSABits && bits <= maxRSABits && key.N.Bit(0) == 1 &&
		key.E >= minRSAExponent && key.E <= maxRSAExponent && key.E&1 == 1
}

// decodeMember reads a member of base64url.
func decodeMember(jwk map[string]json.RawMessage, name string) ([]byte, bool) {
	encoded, ok := jsonString(jwk[name])
	if !ok {
		return nil, false
	}
	return decodeSegment(encoded)
}
