package identity

import "github.com/golang-jwt/jwt/v5"

// family is a type of key together with what tells its members apart: an
// algorithm fits exactly one.
type family string

const (
	rsaKeys     family = "RSA"
	p256Keys    family = "P-256"
	p384Keys    family = "P-384"
	p521Keys    family = "P-521"
	ed25519Keys family = "Ed25519"
)

// algorithm is one way to sign (RFC 7518, section 3.1; RFC 8037).
type algorithm struct {
	name   string
	method jwt.SigningMethod
	family family
}

// algorithmOf returns the algorithm of a name. Those that need no key, or a
// secret one, are not among them.
func algorithmOf(name string) (algorithm, bool) {
	var method jwt.SigningMethod
	var keys family
	switch name {
	case "RS256":
		method, keys = jwt.SigningMethodRS256, rsaKeys
	case "RS384":
		method, keys = jwt.SigningMethodRS384, rsaKeys
	case "RS512":
		method, keys = jwt.SigningMethodRS512, rsaKeys
	case "PS256":
		method, keys = jwt.SigningMethodPS256, rsaKeys
	case "PS384":
		method, keys = jwt.SigningMethodPS384, rsaKeys
	case "PS512":
		method, keys = jwt.SigningMethodPS512, rsaKeys
	case "ES256":
		method, keys = jwt.SigningMethodES256, p256Keys
	case "ES384":
		method, keys = jwt.SigningMethodES384, p384Keys
	case "ES512":
		method, keys = jwt.SigningMethodES512, p521Keys
	case "EdDSA":
		method, keys = jwt.SigningMethodEdDSA, ed25519Keys
	default:
		return algorithm{}, false
	}
	return algorithm{name, method, keys}, true
}
