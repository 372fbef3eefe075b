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

	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/safe"
)

// MaxToken bounds a token in bytes.
const MaxToken = 8 << 10

// TokenVerifier verifies the tokens of one issuer. A token is a JWT (RFC 7519) in the form
// of a signed compact JWS (RFC 7515), by the practices of RFC 8725:
//
//	token  = header "." claims "." signature     (base64url, no padding, no other byte)
//	header = alg [kid] [typ] and members that are ignored
//	claims = iss aud exp [nbf] [iat] and the four that a principal is read from
//
// The header alone selects the key, and the claims are read only after that key has
// verified them. typ, if present, is JWT or at+jwt (RFC 9068), so that a token made for
// another purpose is refused. crit is refused, whatever it lists, and so are members that
// state how to read the rest (b64, zip, cty, enc) or that bring a key (jku, jwk, x5u, x5c):
// keys come from the configured source alone. Keys are fetched by Start and Run; verifying
// a token never waits for the network.
//
// A principal of a token is named "jwt:" + issuer + "#" + name, as a subject is
// unique within its issuer only (OpenID Connect Core 1.0, section 2). An issuer
// holds no "#", so two pairs never make one name, and NewAPIKeys refuses names with that
// prefix: no principal of a token has the name of a principal of a key.
//
// It is safe for concurrent use. Nil and the zero value refuse every token.
type TokenVerifier struct {
	opts      TokenOptions // with its defaults
	validator *jwt.Validator
	source    keySource

	keys             atomic.Pointer[keySet] // nil before the first fetch
	refreshRequested chan struct{}          // because of an unknown kid

	adopted bool // the keys are from AdoptKeys; it does not change once Run runs

	fetchMu   sync.Mutex // held during a fetch
	running   atomic.Bool
	lastError atomic.Pointer[error] // of the last fetch; nil when it succeeded
}

// NewTokenVerifier returns a verifier without keys. The error is that of Validate.
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

// Ready returns nil while tokens can be verified, or else the error that prevents it.
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
		why = fmt.Sprintf("the keys were last confirmed over %s ago", duration.Spell(t.opts.StaleIfError))
	case len(set.keys) == 0:
		why = fmt.Sprintf("the issuer has no usable key, and %d that cannot be used", set.unusable)
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

// verify returns the principal of a token, or the reason for refusing it.
func (t *TokenVerifier) verify(token string) (p *Principal, reason Reason) {
	defer safe.Catch(func(error) { p, reason = nil, Failed })
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
	expires, err := c.GetExpirationTime()
	if !ok || err != nil || expires == nil {
		return nil, BadClaim
	}
	p.Expires = expires.Time
	if p.Until = expires.Add(t.opts.ClockSkew); p.Until.Unix() > maxDate {
		p.Until = time.Unix(maxDate, 0)
	}
	return p, ""
}

// reasonOf maps an error of the validator; of several faults the first counts.
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

// requestRefresh asks Run for an early fetch. It never blocks.
func (t *TokenVerifier) requestRefresh() {
	select {
	case t.refreshRequested <- struct{}{}:
	default:
	}
}
