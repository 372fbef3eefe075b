package identity

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/callgate/callgate/internal/oserr"
)

// keySource is a source of keys.
type keySource struct {
	name  string                                // for an operator, without a query
	fetch func(context.Context) ([]byte, error) // a JWK set of at most maxDocument bytes
}

// newSource returns the source for valid options.
func newSource(o TokenOptions) keySource {
	switch {
	case o.JWKSFile != "":
		return keySource{"the key file " + o.JWKSFile, func(context.Context) ([]byte, error) { return readKeyFile(o.JWKSFile) }}
	case o.JWKSURL != "":
		visible, _, _ := strings.Cut(o.JWKSURL, "?")
		client := newClient(o.JWKSURL, o.RootCAs)
		return keySource{"the keys at " + visible, func(ctx context.Context) ([]byte, error) { return client.fetch(ctx, o.JWKSURL) }}
	}
	client := newClient(o.Issuer, o.RootCAs)
	return keySource{"the keys of the issuer " + o.Issuer,
		func(ctx context.Context) ([]byte, error) { return client.discover(ctx, o.Issuer) }}
}

// readKeyFile reads a file with a JWK set.
func readKeyFile(path string) ([]byte, error) {
	// Opening a pipe would wait for a writer.
	if info, err := os.Stat(path); err != nil {
		return nil, oserr.Reason(err)
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("found no regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, oserr.Reason(err)
	}
	defer file.Close()
	return readBounded(file)
}

// discover finds the JWK set by the issuer's metadata (OpenID Connect Discovery
// 1.0, section 4), anew each time: an issuer may move its keys.
func (c *httpClient) discover(ctx context.Context, expected string) ([]byte, error) {
	raw, err := c.fetch(ctx, strings.TrimSuffix(expected, "/")+"/.well-known/openid-configuration")
	if err != nil {
		return nil, fmt.Errorf("the discovery document: %w", err)
	}
	members, err := decodeObject(raw)
	if err != nil {
		return nil, fmt.Errorf("the discovery document is %w", err)
	}
	// Section 4.3: it must be the issuer that was asked for, to the byte.
	if issuer, ok := jsonString(members["issuer"]); !ok || issuer != expected {
		return nil, errors.New("the discovery document is of another issuer")
	}
	location, ok := jsonString(members["jwks_uri"])
	if !ok {
		return nil, errors.New("the discovery document has no jwks_uri")
	}
	if found := urlProblem(location, true); found != "" {
		return nil, fmt.Errorf("the discovery document: its jwks_uri is %s", found)
	}
	// Keys are fetched without TLS only from this machine, and an issuer elsewhere must
	// not select a service of this machine.
	if u, err := url.Parse(location); err != nil || (u.Scheme == "http") != c.plainHTTP {
		return nil, errors.New("the discovery document: its jwks_uri is of another scheme than the issuer")
	}
	document, err := c.fetch(ctx, location)
	if err != nil {
		return nil, fmt.Errorf("the key set at its jwks_uri: %w", err)
	}
	return document, nil
}
