package outbound

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	maxExchanges    = 2048 // tokens that are kept; beyond it, the one that ends first is dropped
	exchangedLife   = 5 * time.Minute
	exchangePause   = time.Second      // nothing is exchanged again so long after a failure of the same caller
	rejectionPause  = 10 * time.Second // no token is dropped so long after another of the same caller
	forgetEvery     = time.Minute
	urnTokenType    = "urn:ietf:params:oauth:token-type:"
	typeAccessToken = "access_token"
	grantExchange   = "urn:ietf:params:oauth:grant-type:token-exchange"
	grantJWTBearer  = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)

// callerError is why the token of a caller is not exchanged, because of what that token is.
type callerError struct {
	code   refusal.Code
	reason string
}

func (e *callerError) Error() string { return e.reason }

// exchanges are the tokens that token endpoints have issued for callers. The first call that needs one exchanges the
// token of its caller, and others of the same key wait for it. Nothing is fetched that no call waits for, since the token of
// the caller is that of a call. It is safe for concurrent use.
type exchanges struct {
	client *Client

	mu     sync.Mutex
	all    map[exchangeKey]*exchange
	forget time.Time // when those that have ended are forgotten next
}

// exchangeKey names the token that is issued for a caller. Who comes with another token of its own has another: it may
// have fewer rights.
type exchangeKey struct {
	credential, caller string
	token              [sha256.Size]byte
}

func keyOfExchange(c *tool.Credential, caller *tool.Caller) exchangeKey {
	return exchangeKey{c.Key(), caller.Name, sha256.Sum256([]byte(caller.Token()))}
}

// exchange is the state of one key, under the lock of all.
type exchange struct {
	flight     *flight // nil: no call exchanges the token now
	token      string
	until      time.Time
	failure    error // of the last exchange; nil if it is to be tried again at once
	nextTry    time.Time
	nextReject time.Time
}

// flight is one exchange, for all that wait for it.
type flight struct {
	done      chan struct{}
	token     string
	err       error
	abandoned bool // its call has ended: another may try
}

// get returns the token that was issued for a caller.
func (x *exchanges) get(ctx context.Context, c *tool.Credential, caller *tool.Caller) (string, error) {
	key := keyOfExchange(c, caller)
	for {
		x.mu.Lock()
		now := x.client.now()
		e := x.entry(key, now)
		switch {
		case e.token != "" && now.Before(e.until):
			defer x.mu.Unlock()
			return e.token, nil
		case e.flight == nil && e.failure != nil && now.Before(e.nextTry):
			defer x.mu.Unlock()
			return "", e.failure
		case e.flight == nil:
			f := &flight{done: make(chan struct{})}
			e.flight = f
			x.mu.Unlock()
			x.run(ctx, e, f, c, caller)
			return f.token, f.err
		}
		f := e.flight
		x.mu.Unlock()
		select {
		case <-f.done:
			if !f.abandoned {
				return f.token, f.err
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// run makes an exchange in the context of its call.
func (x *exchanges) run(ctx context.Context, e *exchange, f *flight, c *tool.Credential, caller *tool.Caller) {
	var until time.Time
	f.token, until, f.err = x.fetchSafely(ctx, c, caller)
	x.mu.Lock()
	defer x.mu.Unlock()
	defer close(f.done)
	e.flight, e.failure = nil, nil
	var asked *callerError
	switch {
	case f.err == nil:
		e.token, e.until = f.token, until
	case ctx.Err() != nil:
		f.abandoned = true
	case errors.As(f.err, &asked) && asked.code == refusal.StepUpRequired: // the user may have done so by the next call
	default:
		e.failure, e.nextTry = f.err, x.client.now().Add(exchangePause)
	}
}

func (x *exchanges) fetchSafely(ctx context.Context, c *tool.Credential, caller *tool.Caller) (token string, until time.Time, err error) {
	defer safe.Recover(&err)
	return x.fetch(ctx, c, caller)
}

// fetch exchanges the token of a caller once.
func (x *exchanges) fetch(ctx context.Context, c *tool.Credential, caller *tool.Caller) (token string, until time.Time, err error) {
	o := c.OAuth
	timeout, life := o.Timeout, o.MaxAge
	if timeout <= 0 {
		timeout = tokenTimeout
	}
	if life <= 0 {
		life = exchangedLife
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	issued, err := x.client.fetchToken(ctx, c, grantOf(o, caller))
	if err != nil {
		return "", time.Time{}, err
	}
	if why := faultOfIssued(o, caller, issued); why != "" {
		return "", time.Time{}, refuse.Reason("its token endpoint issued " + why)
	}
	until = x.client.now().Add(life)
	for _, end := range []time.Time{x.client.timed(issued).Until, caller.Expires} {
		if end.Before(until) {
			until = end
		}
	}
	return issued.AccessToken, until, nil
}

// grantOf are the parameters by which the token of a caller is exchanged.
func grantOf(o *tool.OAuth, caller *tool.Caller) url.Values {
	if o.Grant == tool.GrantTokenExchange {
		subject := o.SubjectType
		if subject == "" {
			subject = typeAccessToken
		}
		return url.Values{
			"grant_type": {grantExchange}, "subject_token": {caller.Token()}, "subject_token_type": {urnTokenType + subject},
			"requested_token_type": {urnTokenType + typeAccessToken},
		}
	}
	grant := url.Values{"grant_type": {grantJWTBearer}, "assertion": {caller.Token()}}
	if o.Grant == tool.GrantEntraOBO {
		grant.Set("requested_token_use", "on_behalf_of")
	}
	return grant
}

// faultOfIssued says what is wrong with a token that was issued; empty: nothing.
func faultOfIssued(o *tool.OAuth, caller *tool.Caller, issued *oauth2.Token) string {
	kind, hasKind := issued.Extra("issued_token_type").(string)
	scope, isText := issued.Extra("scope").(string)
	switch {
	case issued.TokenType == "":
		return "a token without a type"
	case issued.AccessToken == caller.Token():
		return "the token of the caller itself, which is not sent to a tool"
	case hasKind && kind != urnTokenType+typeAccessToken, !hasKind && o.Grant == tool.GrantTokenExchange:
		return "a token that it does not call an access token"
	case issued.Extra("scope") != nil && !isText:
		return "a token whose scope is no text"
	case len(o.Scopes) == 0, o.Grant == tool.GrantEntraOBO: // Entra lists all that the user has consented to
		return ""
	}
	for s := range strings.FieldsSeq(scope) {
		if !slices.Contains(o.Scopes, s) {
			return "a token with more scopes than were asked for"
		}
	}
	return ""
}

// entry is the state of a key. The lock must be held.
func (x *exchanges) entry(key exchangeKey, now time.Time) *exchange {
	e := x.all[key]
	if e != nil {
		return e
	}
	if !now.Before(x.forget) || len(x.all) >= maxExchanges {
		x.makeRoom(now)
	}
	e = &exchange{}
	x.all[key] = e
	return e
}

// makeRoom forgets the tokens that have ended, and one more if there is still no room for another. Those in flight stay.
func (x *exchanges) makeRoom(now time.Time) {
	x.forget = now.Add(forgetEvery)
	var first exchangeKey
	var ends time.Time // of first
	for key, e := range x.all {
		switch end := slices.MaxFunc([]time.Time{e.until, e.nextTry, e.nextReject}, time.Time.Compare); {
		case e.flight != nil:
		case !now.Before(end):
			delete(x.all, key)
		case ends.IsZero() || end.Before(ends):
			first, ends = key, end
		}
	}
	if len(x.all) >= maxExchanges {
		delete(x.all, first)
	}
}

// reject drops a token that a server did not accept, and reports whether another may be accepted: it may not if one was
// dropped lately, and this is the one that came after it.
func (x *exchanges) reject(c *tool.Credential, caller *tool.Caller, token string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	e, now := x.all[keyOfExchange(c, caller)], x.client.now()
	switch {
	case e == nil || e.token != token:
		return true
	case now.Before(e.nextReject):
		return false
	}
	e.token, e.nextReject = "", now.Add(rejectionPause)
	return true
}

// The error codes by which a token endpoint says that the token of a caller cannot be exchanged: with RFC 8693 an
// unacceptable one is an invalid request. The codes of stepUpErrors say that the user can change that.
var (
	callerErrors = []string{"invalid_request", "invalid_grant", "invalid_target", "access_denied"}
	stepUpErrors = []string{"interaction_required", "login_required", "consent_required", "insufficient_scope"}
	// Those of Entra, beside invalid_grant.
	stepUpSubErrors = []string{"consent_required", "basic_action", "additional_action", "user_password_expired"}
)

// notExchanged is why a token endpoint does not exchange the token of a caller; nil if that is no matter of the token.
func notExchanged(refused *oauth2.RetrieveError) *callerError {
	var more struct {
		SubError string `json:"suberror"`
	}
	_ = json.Unmarshal(refused.Body, &more) // without it there is none
	switch code := refused.ErrorCode; {
	case slices.Contains(stepUpErrors, code):
		return &callerError{refusal.StepUpRequired, "its token endpoint asks for the user: " + code}
	case slices.Contains(stepUpSubErrors, more.SubError):
		return &callerError{refusal.StepUpRequired, "its token endpoint asks for the user: " + more.SubError}
	case slices.Contains(callerErrors, code):
		return &callerError{refusal.CredentialUnavailable, "its token endpoint did not exchange the caller's token: " + code}
	}
	return nil
}

// stepUpChallenge is a challenge by which a server asks for the user: more scopes (RFC 6750), another authentication
// (RFC 9470), or what Entra asks for during the life of a token.
var stepUpChallenge = regexp.MustCompile(
	`(?i)\bbearer\b.*\berror="?(insufficient_scope|insufficient_user_authentication|insufficient_claims)\b`)

// exchangedFailure is the failure of an attempt with the token of a caller that got a response other than 2xx.
func (o *Client) exchangedFailure(call tool.Call, response *http.Response) *Failure {
	f, code := o.StatusFailure(call, response.StatusCode, response.Header.Get("Retry-After")), response.StatusCode
	if code != http.StatusUnauthorized && code != http.StatusForbidden {
		return f
	}
	for _, challenge := range response.Header.Values("Www-Authenticate") {
		if asked := stepUpChallenge.FindStringSubmatch(challenge); asked != nil {
			return FinalFailure(refuse.AsCaller(refusal.StepUpRequired, "%s answered with HTTP status %d: %s", call.Tool, code,
				strings.ToLower(asked[1])))
		}
	}
	f.refusal = refuse.Failed(fmt.Sprintf("The tool's server does not let the user do this (HTTP status %d), which only the user or the operator can change; continue without it.", code)).
		WithCause(fmt.Errorf("%s answered with HTTP status %d to the token that was issued for its caller", call.Tool, code))
	f.retry = code == http.StatusUnauthorized && o.exchanged.reject(call.Run.Credential, call.Caller, bearer(response.Request))
	return f
}

// bearer is the token that a request carries; empty: none.
func bearer(request *http.Request) string {
	if request == nil {
		return ""
	}
	token, _ := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	return token
}

// Repeats reports whether a result has the token that was issued for its caller, which the request carried.
func Repeats(result []byte, request *http.Request, c *tool.Credential) bool {
	return c != nil && c.In == tool.InExchange && bytes.Contains(result, []byte(bearer(request)))
}
