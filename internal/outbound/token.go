package outbound

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/internal/renew"
	"github.com/callgate/callgate/tool"
)

const (
	maxTokens       = 256 // credentials; beyond it, all tokens are fetched again
	maxTokenAnswer  = 64 << 10
	maxToken        = 16 << 10
	tokenTimeout    = 10 * time.Second
	maxTokenLife    = 24 * time.Hour
	unknownLife     = 5 * time.Minute // of a token that does not say when it expires
	tokenRenewal    = time.Minute     // a token is fetched again so long before it expires, at most
	tokenExpirySlop = 5 * time.Second // it is not used so long before it expires, at most
)

// tokens are the tokens of OAuth clients, by their credentials. Each is fetched once for all calls
// that wait for it, and again before it expires. It is safe for concurrent use.
type tokens struct {
	client *Client
	group  renew.Group

	mu  sync.Mutex
	all map[string]*renew.Value[string]
}

// of returns the token of a credential.
func (t *tokens) of(c *tool.Credential) *renew.Value[string] {
	key := c.Key()
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.all[key]
	if v == nil {
		if len(t.all) >= maxTokens {
			clear(t.all)
		}
		timeout := c.OAuth.Timeout
		if timeout <= 0 {
			timeout = tokenTimeout
		}
		v = renew.New(renew.Source[string]{
			Group: &t.group, Now: t.client.now, Timeout: timeout,
			Fetch: func(ctx context.Context) (renew.Fetched[string], error) { return t.fetch(ctx, c) },
		})
		t.all[key] = v
	}
	return v
}

// get returns the token of a credential.
func (t *tokens) get(ctx context.Context, c *tool.Credential) (string, error) {
	return t.of(c).Get(ctx)
}

// reject drops a token that a server did not accept, and reports whether another may be.
func (t *tokens) reject(c *tool.Credential, token string) bool { return t.of(c).Drop(token) }

// fetch fetches the token of a client.
func (t *tokens) fetch(ctx context.Context, c *tool.Credential) (renew.Fetched[string], error) {
	token, err := t.client.fetchToken(ctx, c, url.Values{})
	if err != nil {
		return renew.Fetched[string]{}, err
	}
	return t.client.timed(token), nil
}

// fetchToken asks the token endpoint of a credential once. grant has the parameters of a grant other than that of
// client credentials. Its error holds nothing of a secret or of grant, and nothing of the answer but a status and an
// error code; it is a *callerError where the token of a caller was not exchanged because of what that is.
func (o *Client) fetchToken(ctx context.Context, c *tool.Credential, grant url.Values) (*oauth2.Token, error) {
	settings := c.OAuth
	id, err := o.nameOrReference(ctx, settings.ClientID)
	if err != nil {
		return nil, fmt.Errorf("the id of its client cannot be read: %w", err)
	}
	secret, err := o.Secret(ctx, c.Secret)
	if err != nil {
		return nil, fmt.Errorf("the secret of its client cannot be read: %w", err)
	}
	transport, err := o.tokenTransport(ctx, settings)
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	config := clientcredentials.Config{
		ClientID: id, ClientSecret: secret, TokenURL: settings.TokenURL, Scopes: settings.Scopes, EndpointParams: grant,
		AuthStyle: oauth2.AuthStyleInHeader,
	}
	if settings.InBody {
		config.AuthStyle = oauth2.AuthStyleInParams
	}
	for name, value := range settings.Parameters {
		config.EndpointParams.Set(name, value)
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	var refused *oauth2.RetrieveError
	switch {
	case err != nil && c.In == tool.InExchange && errors.As(err, &refused) && notExchanged(refused) != nil:
		return nil, notExchanged(refused)
	case err != nil:
		return nil, describeTokenError(ctx, err)
	case token.TokenType != "" && token.Type() != "Bearer":
		return nil, refuse.Reason("its token endpoint issued a token of another type than bearer")
	case len(token.AccessToken) > maxToken || !ascii.IsVisible(token.AccessToken):
		return nil, refuse.Reason("its token endpoint issued a token that no header takes")
	}
	return token, nil
}

// timed is a token with the times by which it is used, by the client's clock.
func (o *Client) timed(token *oauth2.Token) renew.Fetched[string] {
	life := unknownLife
	switch {
	case !token.Expiry.IsZero():
		life = min(max(time.Until(token.Expiry), 0), maxTokenLife)
	case token.Extra("expires_in") != nil: // zero
		life = 0
	}
	now := o.now()
	return renew.Fetched[string]{
		Value: token.AccessToken,
		Renew: now.Add(life - min(tokenRenewal, life/4)),
		Until: now.Add(life - min(tokenExpirySlop, life/8)),
	}
}

// tokenErrors are the error codes of RFC 6749, section 5.2, which an error may repeat.
var tokenErrors = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
	"invalid_scope"}

// describeTokenError describes why there is no token in words of our own: the errors of the library
// quote the answer.
func describeTokenError(ctx context.Context, err error) error {
	var (
		refused *oauth2.RetrieveError
		blocked *blockedError
	)
	switch {
	case errors.As(err, &blocked):
		return blocked
	case errors.As(err, &refused) && slices.Contains(tokenErrors, refused.ErrorCode):
		return refuse.Reason("its token endpoint refused the client: " + refused.ErrorCode)
	case errors.As(err, &refused) && refused.Response != nil:
		return refuse.Reason(fmt.Sprintf("its token endpoint answered with HTTP status %d and no token", refused.Response.StatusCode))
	case ctx.Err() != nil:
		return refuse.Reason("its token endpoint did not answer in time")
	}
	return refuse.Reason("its token endpoint gave no token: " + DescribeError(err))
}

// tokenTransport sends one request for a token, by the address policy of the credential.
type tokenTransport struct{ *http.Transport }

func (o *Client) tokenTransport(ctx context.Context, settings *tool.OAuth) (*tokenTransport, error) {
	policy, err := newAddressPolicy(settings.Addresses, o.pool.resolver, o.pool.interfaces)
	if err != nil {
		return nil, fmt.Errorf("its token endpoint: %w", err)
	}
	config := o.pool.tlsConfig()
	if settings.CAFile != "" {
		certificates, err := o.Secret(ctx, settings.CAFile)
		if err != nil {
			return nil, fmt.Errorf("the certificates of its token endpoint cannot be read: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(certificates)) {
			return nil, refuse.Reason("the certificates of its token endpoint are not in PEM")
		}
	}
	return &tokenTransport{&http.Transport{
		DialContext: policy.dial, TLSClientConfig: config, DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: maxHeadBytes,
	}}, nil
}

// RoundTrip sends the request. A body that is too long, or an answer of 200 that is not JSON, is an
// error.
func (t *tokenTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "callgate")
	response, err := t.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); response.StatusCode == http.StatusOK &&
		(err != nil || media != "application/json") {
		_ = response.Body.Close()
		return nil, refuse.Reason("its answer is not JSON by its content type")
	}
	response.Body = &boundedAnswer{ReadCloser: response.Body, left: maxTokenAnswer}
	return response, nil
}

// boundedAnswer is a body that fails once it is too long.
type boundedAnswer struct {
	io.ReadCloser
	left int
}

func (b *boundedAnswer) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, refuse.Reason("its answer is too long")
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
