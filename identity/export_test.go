package identity

import "context"

// ParseKeys reads a JWK set and counts its keys.
func ParseKeys(document []byte) (taken, ignored int, err error) {
	set, err := parseKeys(document)
	if err != nil {
		return 0, 0, err
	}
	return len(set.keys), set.unusable, nil
}

// FetchInTheClear fetches as for an issuer of http.
func FetchInTheClear(ctx context.Context, address string) error {
	_, err := newClient("http://127.0.0.1", nil).fetch(ctx, address)
	return err
}

// Reasons returns the whole list.
func Reasons() []Reason {
	return []Reason{TooLong, Malformed, BadHeader, BadAlgorithm, NoKeys, UnknownKey, KeyMisfit, BadSignature, Expired, NotYet, WrongIssuer, WrongAudience, BadClaim, Failed}
}
