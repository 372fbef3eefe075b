package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// MaxToken bounds a token in bytes.
const MaxToken = 8 << 10

// TokenVerifier are the principals whose names an issuer signs. A token is a JWT (RFC
// 7519) as a signed compact JWS (RFC 7515), held to the practices of RFC 8725:
//
//	token  = header "." claims "." signature     (base64url, no padding, no other byte)
//	header = alg [kid] [typ] and members without meaning here
//	claims = iss aud exp [nbf] [iat] and the four that a principal is read from
//
// The header decides alone which key is tried, and the claims are not looked at
// before that key has verified them. typ, where it is there, is JWT or at+jwt
// (RFC 9068), so that no token made for another purpose is taken. crit is
// refused, whatever it lists, and so are members that say how to read the rest
// (b64, zip, cty, enc) or that bring a key along (jku, jwk, x5u, x5c): keys come
// from the configured source alone. Keys are fetched by Start and Run; judging a
// token never waits for the network.
//
// A principal of a token is named "jwt:" + issuer + "#" + name, as a subject is
// unique within its issuer only (OpenID Connect Core 1.0, section 2). An issuer
// holds no "#", so two pairs never make one name, and NewAPIKeys refuses names that
// start so: a token's principal never is a key's.
//
// Its methods may be called from any goroutine. Nil and the zero value know
// nobody.
type TokenVerifier struct {
	opts      TokenOptions // with its defaults
	validator *jwt.Validator
	source    keySource

	keys             atomic.Pointer[keySet] // nil until they are there
	refreshRequested chan struct{}          // an unknown kid was met

	adopted bool // the keys are another's; it does not change once Run runs

	fetchMu   sync.Mutex // held by the one that fetches
	running   atomic.Bool
	lastError atomic.Pointer[error] // of the last fetch; nil when it succeeded
}

// NewTokenVerifier returns a verifier that knows no keys yet. The error is that of
// Validate.
func NewTokenVerifier(o TokenOptions) (*TokenVerifier, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	t := &TokenVerifier{opts: o, refreshRequested: make(chan struct{}, 1), source: newSource(o)}
	t.validator = jwt.NewValidator(
		jwt.WithTimeFunc(o.Now), jwt.WithLeeway(o.ClockSkew), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithIssuer(o.Issuer), jwt.WithAudience(o.Audience),
	)
	return t, nil
}

// Authenticate returns the principal of a token, or nil.
func (t *TokenVerifier) Authenticate(credential string) *Principal {
	if t == nil {
		return nil
	}
	p, reason := t.verify(credential)
	if reason != "" {
		if t.opts.OnRefused != nil {
			t.opts.OnRefused(reason)
		}
		return nil
	}
	return p
}

// Ready returns nil while tokens can be verified, or else why not.
func (t *TokenVerifier) Ready() error {
	if t == nil {
		return errors.New("identity: no verifier of tokens")
	}
	set := t.keys.Load()
	var why string
	switch {
	case set == nil:
		why = "no keys yet"
	case t.stale(set):
		why = fmt.Sprintf("the keys were last confirmed over %v ago", t.opts.StaleIfError)
	case len(set.keys) == 0:
		why = fmt.Sprintf("the issuer offers no key that can be used, and %d that cannot", set.unusable)
	default:
		return nil
	}
	if failure := t.lastError.Load(); failure != nil {
		return fmt.Errorf("identity: tokens: %s: %w", why, *failure)
	}
	return fmt.Errorf("identity: tokens: %s", why)
}

func (t *TokenVerifier) stale(set *keySet) bool {
	return t.opts.Now().Sub(set.confirmedAt) > t.opts.StaleIfError
}

// verify returns the principal of a token, or why there is none.
func (t *TokenVerifier) verify(token string) (p *Principal, reason Reason) {
	defer func() {
		if recover() != nil {
			p, reason = nil, Failed
		}
	}()
	if token == "" || len(token) > MaxToken {
		return nil, TooLong
	}
	set := t.keys.Load()
	if set == nil || t.stale(set) {
		return nil, NoKeys
	}
	segments := strings.SplitN(token, ".", 4)
	if len(segments) != 3 {
		return nil, Malformed
	}
	algorithm, kid, reason := t.header(segments[0])
	if reason != "" {
		return nil, reason
	}
	public, reason := set.find(algorithm, kid)
	if reason != "" {
		if reason == UnknownKey && kid != "" {
			t.requestRefresh()
		}
		return nil, reason
	}
	signature, ok := decodeSegment(segments[2])
	if !ok {
		return nil, Malformed
	}
	signed := token[:len(segments[0])+1+len(segments[1])]
	if jwt.GetSigningMethod(algorithm).Verify(signed, signature, public) != nil {
		return nil, BadSignature
	}
	return t.claims(segments[1])
}

// header reads the first segment: the algorithm, and the kid or "".
func (t *TokenVerifier) header(encoded string) (algorithm, kid string, reason Reason) {
	raw, ok := decodeSegment(encoded)
	if !ok {
		return "", "", Malformed
	}
	members, err := decodeObject(raw)
	if err != nil {
		return "", "", Malformed
	}
	for _, refused := range []string{"crit", "b64", "zip", "cty", "enc", "jku", "jwk", "x5u", "x5c"} {
		if _, there := members[refused]; there {
			return "", "", BadHeader
		}
	}
	if raw, there := members["typ"]; there && !isTokenType(raw) {
		return "", "", BadHeader
	}
	algorithm, _ = jsonString(members["alg"])
	if !slices.Contains(t.opts.Algorithms, algorithm) {
		return "", "", BadAlgorithm
	}
	if raw, there := members["kid"]; there {
		if kid, ok = jsonString(raw); !ok || kid == "" {
			return "", "", BadHeader
		}
	}
	return algorithm, kid, ""
}

// isTokenType reports whether typ is that of a token. A media type has no case, and
// may leave "application/" out (RFC 7515, section 4.1.9).
func isTokenType(raw json.RawMessage) bool {
	typ, _ := jsonString(raw)
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	return typ == "jwt" || typ == "at+jwt"
}

// claims reads the second segment, whose signature has been verified.
func (t *TokenVerifier) claims(encoded string) (*Principal, Reason) {
	raw, ok := decodeSegment(encoded)
	if !ok {
		return nil, Malformed
	}
	members, err := decodeObject(raw)
	if err != nil {
		return nil, Malformed
	}
	c := claims(members)
	if err := t.validator.Validate(c); err != nil {
		return nil, reasonOf(err)
	}
	p, ok := c.principal(t.opts.Issuer, t.opts.Claims)
	if !ok {
		return nil, BadClaim
	}
	return p, ""
}

// reasonOf maps what the validator says; of several faults the first counts.
func reasonOf(err error) Reason {
	for _, r := range []struct {
		err    error
		reason Reason
	}{
		{errClaim, BadClaim}, {jwt.ErrTokenRequiredClaimMissing, BadClaim},
		{jwt.ErrTokenInvalidIssuer, WrongIssuer}, {jwt.ErrTokenInvalidAudience, WrongAudience},
		{jwt.ErrTokenExpired, Expired}, {jwt.ErrTokenNotValidYet, NotYet}, {jwt.ErrTokenUsedBeforeIssued, NotYet},
	} {
		if errors.Is(err, r.err) {
			return r.reason
		}
	}
	return Failed
}

// requestRefresh wants the keys to be fetched early. It never waits.
func (t *TokenVerifier) requestRefresh() {
	select {
	case t.refreshRequested <- struct{}{}:
	default:
	}
}
