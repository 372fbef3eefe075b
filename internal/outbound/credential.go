package outbound

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Authorize adds the credential of a server to a request, with its secrets as they are now; nil
// adds nothing. It refuses a request that has the header already: nothing else may stand where the
// credential belongs. No error holds any of a secret or a token.
func (o *Client) Authorize(request *http.Request, c *tool.Credential) error {
	if c == nil {
		return nil
	}
	value, _, err := o.Credential(request.Context(), c)
	if err != nil {
		return err
	}
	return setCredential(request, c, value)
}

// AuthorizeCall is Authorize for the request of a call, whose caller's token may be exchanged for it.
func (o *Client) AuthorizeCall(request *http.Request, call *tool.Call) error {
	c := call.Run.Credential
	if c == nil || c.In != tool.InExchange {
		return o.Authorize(request, c)
	}
	if refused := refuse.WithoutToken(call.Tool, call.Caller, o.now()); refused != nil {
		return refused
	}
	token, err := o.exchanged.get(request.Context(), c, call.Caller)
	if err != nil {
		return err
	}
	return setCredential(request, c, "Bearer "+token)
}

func setCredential(request *http.Request, c *tool.Credential, value string) error {
	name := http.CanonicalHeaderKey(c.Header())
	if _, taken := request.Header[name]; taken {
		return errors.New("the request has the header of its credential already, so nothing was sent")
	}
	request.Header[name] = []string{value}
	return nil
}

// Credential is the value of the header of a credential, and the texts in it that nobody else may see.
// No error holds any of a secret or a token.
func (o *Client) Credential(ctx context.Context, c *tool.Credential) (value string, secrets []string, err error) {
	switch c.In {
	case tool.InExchange:
		return "", nil, errors.New("its credential is only for calls of an authenticated caller")
	case tool.InOAuth:
		token, err := o.tokens.get(ctx, c)
		if err != nil {
			return "", nil, err
		}
		return "Bearer " + token, []string{token}, nil
	}
	secret, err := o.Secret(ctx, c.Secret)
	if err != nil {
		return "", nil, fmt.Errorf("its credential cannot be read: %w", err)
	}
	switch c.In {
	case tool.InBasic:
		user, err := o.nameOrReference(ctx, c.User)
		switch {
		case err != nil:
			return "", nil, fmt.Errorf("the user of its credential cannot be read: %w", err)
		case user == "" || strings.Contains(user, ":") || secret == "" || strings.ContainsFunc(user+secret, isControl):
			return "", nil, errors.New(
				"the user or the password of its credential is empty, or has characters that basic authentication does not take")
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(user + ":" + secret))
		return "Basic " + encoded, []string{secret, encoded}, nil
	case tool.InHeader:
		if secret == "" || !ascii.IsPrintable(secret) || strings.TrimSpace(secret) != secret {
			return "", nil, errors.New("its credential is empty, or has characters that no header takes")
		}
		return c.Prefix + secret, []string{secret}, nil
	}
	if secret == "" || !ascii.IsVisible(secret) {
		return "", nil, errors.New("its credential is empty, or has characters that no bearer token has")
	}
	return "Bearer " + secret, []string{secret}, nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// Secret is the secret that a reference leads to, as it is now. No error holds any of it.
func (o *Client) Secret(ctx context.Context, reference string) (string, error) {
	if o.secrets == nil {
		return "", errors.New("no secrets are configured")
	}
	return o.secrets(ctx, reference)
}

// nameOrReference is a name, or what stands where a reference leads to.
func (o *Client) nameOrReference(ctx context.Context, text string) (string, error) {
	if tool.IsReference(text) {
		return o.Secret(ctx, text)
	}
	return text, nil
}

// CredentialFailure is the failure of an attempt whose credential could not be had, so that nothing
// was sent to the tool. It says nothing about the health of the tool.
func CredentialFailure(ctx context.Context, call tool.Call, err error) *Failure {
	return &Failure{refusal: credentialRefusal(ctx, call, err), uncounted: true}
}

// credentialRefusal refuses a call whose credential could not be had.
func credentialRefusal(ctx context.Context, call tool.Call, err error) *refusal.Error {
	var (
		blocked *blockedError
		refused *refusal.Error
		caller  *callerError
	)
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &caller):
		return refuse.AsCaller(caller.code, "%s: %s", call.Tool, caller.reason)
	case errors.As(err, &blocked):
		return refuse.AddressBlocked("%s: its token was not fetched: %s", call.Tool, blocked.reason)
	case ctx.Err() != nil:
		return refuse.Stopped(ctx, call)
	}
	return refuse.Unavailable("%s: %w", call.Tool, err)
}

// Rejected notes that a server answered a request with status 401. It reports whether the request
// may be accepted with another token: the one that it carried is no longer used. Only credentials
// with tokens have another one.
func (o *Client) Rejected(request *http.Request, c *tool.Credential) bool {
	if c == nil || c.In != tool.InOAuth || request == nil {
		return false
	}
	token, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	return ok && o.tokens.reject(c, token)
}

// ResponseFailure is the failure of an attempt that got a response other than 2xx. One of 401 to a
// token that is no longer used may be tried again, as far as the effect of the call allows it.
func (o *Client) ResponseFailure(call tool.Call, response *http.Response) *Failure {
	if c := call.Run.Credential; c != nil && c.In == tool.InExchange {
		return o.exchangedFailure(call, response)
	}
	f := o.StatusFailure(call, response.StatusCode, response.Header.Get("Retry-After"))
	if response.StatusCode == http.StatusUnauthorized && o.Rejected(response.Request, call.Run.Credential) {
		f.retry = true
	}
	return f
}
