package identity

// Reason is why a token was refused, from a closed list. It is for counters and the
// operator's log, holds nothing of the token, and is not shown to the caller.
type Reason string

const (
	// TooLong: over MaxToken bytes, or empty.
	TooLong Reason = "too_long"
	// Malformed: not three segments of base64url without padding, or a header
	// or claims that are not one JSON object of UTF-8, with each name once.
	Malformed Reason = "malformed"
	// BadHeader: a header member is forbidden or of the wrong form.
	BadHeader Reason = "header"
	// BadAlgorithm: alg is not one of the accepted algorithms.
	BadAlgorithm Reason = "algorithm"
	// NoKeys: there are no keys, or they are stale.
	NoKeys Reason = "no_keys"
	// UnknownKey: no key has the token's kid; without kid, not exactly one key fits.
	UnknownKey Reason = "unknown_key"
	// KeyMisfit: the key with that kid is not for this algorithm.
	KeyMisfit Reason = "key_misfit"
	// BadSignature: the key did not sign this.
	BadSignature Reason = "signature"
	// Expired, NotYet, WrongIssuer and WrongAudience: by the claims exp, nbf or iat, iss
	// and aud.
	Expired       Reason = "expired"
	NotYet        Reason = "not_yet"  // nbf or iat is in the future
	WrongIssuer   Reason = "issuer"   // iss is not the configured one
	WrongAudience Reason = "audience" // aud does not name this gateway
	// BadClaim: a claim that is needed is missing or of the wrong form.
	BadClaim Reason = "claim"
	// Failed: the verifier itself failed.
	Failed Reason = "internal"
)
