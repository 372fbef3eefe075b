package identity

// Reason says why a token was refused. It is for counters and the operator's
// log: it comes from this closed list and carries nothing of the token. The
// caller learns none of it.
type Reason string

const (
	// TooLong: over MaxToken bytes, or empty.
	TooLong Reason = "too_long"
	// Malformed: not three segments of base64url without padding, or a header
	// or claims that are not one JSON object of UTF-8, with each name once.
	Malformed Reason = "malformed"
	// BadHeader: a header member that is refused or of the wrong form.
	BadHeader Reason = "header"
	// BadAlgorithm: alg is not one of those that are believed.
	BadAlgorithm Reason = "algorithm"
	// NoKeys: there are no keys, or none that are fresh enough.
	NoKeys Reason = "no_keys"
	// UnknownKey: no key has the token's kid; without kid, not exactly one key fits.
	UnknownKey Reason = "unknown_key"
	// KeyMisfit: the key with that kid is not for this algorithm.
	KeyMisfit Reason = "key_misfit"
	// BadSignature: the key did not sign this.
	BadSignature Reason = "signature"
	// Expired, NotYet, WrongIssuer and WrongAudience: as the claims exp, nbf or
	// iat, iss and aud say.
	Expired       Reason = "expired"
	NotYet        Reason = "not_yet"
	WrongIssuer   Reason = "issuer"
	WrongAudience Reason = "audience"
	// BadClaim: a claim that is needed is missing or of the wrong form.
	BadClaim Reason = "claim"
	// Failed: the verifier itself failed.
	Failed Reason = "internal"
)

// Reasons returns the whole list.
func Reasons() []Reason {
	return []Reason{TooLong, Malformed, BadHeader, BadAlgorithm, NoKeys, UnknownKey, KeyMisfit, BadSignature, Expired, NotYet, WrongIssuer, WrongAudience, BadClaim, Failed}
}
